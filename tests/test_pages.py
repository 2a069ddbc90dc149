"""The built documentation: its links, and its look in a real browser, on a desktop and on a phone."""

import functools
import html.parser
import http.server
import importlib
import inspect
import json
import re
import threading
import urllib.parse
from pathlib import Path

import pytest

NOT_BUILT = "the documentation is not built: python -m sphinx -b html docs docs/_build/html"
PAGES = Path(__file__).parent.parent / "docs" / "_build" / "html"
WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}


class _Links(html.parser.HTMLParser):
    """Collects what a page links to, and the anchors that links can lead to."""

    def __init__(self, path):
        super().__init__()
        self.targets, self.anchors = set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.targets |= {value for name, value in attrs if name in {"href", "src"} and value}
        self.anchors |= {value for name, value in attrs if name == "id" or (name == "name" and tag == "a")}


@functools.cache
def links(path):
    return _Links(path)


@pytest.fixture(scope="module")
def built():
    """Pages of the last build; the folder may hold older ones, which no page links to."""
    index = PAGES / "searchindex.js"
    if not index.exists():
        pytest.skip(NOT_BUILT)
    text = re.fullmatch(r"Search\.setIndex\((.*)\)", index.read_text(encoding="utf-8"), re.S)[1]
    names = json.loads(text)["docnames"]
    return [PAGES / f"{name}.html" for name in [*names, "genindex", "search"]]


def test_links_between_pages_lead_somewhere(built):
    broken = []
    for page in built:
        for target in links(page).targets:
            url = urllib.parse.urlsplit(target)
            if url.scheme or url.netloc:
                continue
            path = (page.parent / urllib.parse.unquote(url.path)).resolve() if url.path else page
            anchor = urllib.parse.unquote(url.fragment)
            if not path.exists() or (anchor and path.suffix == ".html" and anchor not in links(path).anchors):
                broken.append(f"{page.relative_to(PAGES)}: {target}")
    assert built
    assert broken == []


@pytest.mark.parametrize(
    "module",
    [
        "skellipsoid",
        "skellipsoid.baselines",
        "skellipsoid.metrics",
        "skellipsoid.model_selection",
        "skellipsoid.plotting",
        "skellipsoid_bench",
        "skellipsoid_bench.literature",
    ],
)
def test_class_pages_list_and_describe_every_method(built, module):
    found = importlib.import_module(module)
    classes = [value for name in found.__all__ if inspect.isclass(value := getattr(found, name))]
    classes = [each for each in classes if not issubclass(each, Exception)]
    assert classes
    for each in classes:
        page = PAGES / "generated" / f"{found.__name__}.{each.__name__}.html"
        tables = re.findall(r'<table class="[^"]*autosummary.*?</table>', page.read_text(encoding="utf-8"), re.S)
        methods = {
            name
            for name in dir(each)
            if not name.startswith("_")
            and inspect.isroutine(inspect.getattr_static(each, name))
            # These are described where they come from: scikit-learn and tuple.
            and not re.fullmatch(r"set_\w+_request|[gs]et_params|get_metadata_routing|set_output|count|index", name)
        }
        names = {f"{found.__name__}.{each.__name__}.{name}" for name in methods}
        assert names - links(page).anchors == set()
        assert {name for name in names if f'href="#{name}"' not in "".join(tables)} == set()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@pytest.fixture(scope="module")
def site():
    if not (PAGES / "index.html").exists():
        pytest.skip(NOT_BUILT)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(PAGES)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(params=WIDTHS)
def page(request, browser):
    width, height = WIDTHS[request.param]
    opened = browser.new_page(viewport={"width": width, "height": height})
    # A page must not need anything from another host.
    opened.asked = []
    opened.on("request", lambda request: opened.asked.append(request.url))
    yield opened
    opened.close()


CLASS_PAGE = "generated/skellipsoid.EllipsoidOpenSetClassifier"


@pytest.mark.parametrize(
    "name", ["index", "guide/quick_start", "guide/method", "guide/benchmarks", "api", "genindex", CLASS_PAGE]
)
def test_pages_fit_the_screen_and_need_no_other_host(site, page, name, tmp_path):
    page.goto(f"{site}/{name}.html", wait_until="networkidle")
    assert [url for url in page.asked if not url.startswith((site, "data:"))] == []
    for part in ("document.documentElement", "document.querySelector('.bd-article-container')"):
        assert page.evaluate(f"{part}.scrollWidth - {part}.clientWidth") <= 1
    shot = tmp_path / "page.png"
    page.screenshot(path=shot)
    assert shot.stat().st_size > 10_000  # an empty page is smaller


def test_formulas_are_drawn_and_can_be_scrolled_to_their_left_edge(site, page):
    page.goto(f"{site}/guide/method.html", wait_until="networkidle")
    page.wait_for_selector("mjx-container[display='true']")
    formulas = page.locator("div.math mjx-container[display='true']")
    lefts = formulas.evaluate_all("found => found.map(formula => formula.getBoundingClientRect().left)")
    assert len(lefts) > 5
    assert min(lefts) >= 0


def test_titles_and_inline_code_stay_on_the_screen(site, page):
    for name in ("guide/quick_start", CLASS_PAGE):
        page.goto(f"{site}/{name}.html", wait_until="networkidle")
        texts = page.locator("article :is(h1, p code, dt.sig .sig-name)")
        rights = texts.evaluate_all("found => found.map(text => text.getBoundingClientRect().right)")
        assert len(rights) > 3
        assert max(rights) <= page.viewport_size["width"]


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("threshold", "guide/operating_point"),
        ("ask back", "guide/asking_back"),
        ("OOD", "guide/troubleshooting"),
        ("out of distribution", "guide/troubleshooting"),
        ("licence", ""),
        ("German", ""),
    ],
)
def test_search_finds_the_words_that_people_look_for(site, browser, word, first):
    opened = browser.new_page()
    opened.goto(f"{site}/search.html?q={word.replace(' ', '+')}", wait_until="networkidle")
    opened.wait_for_selector("ul.search li a")
    assert first in opened.locator("ul.search li a").first.get_attribute("href")
    opened.close()
