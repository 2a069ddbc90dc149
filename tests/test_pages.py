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


def test_the_landing_page_is_one_screen(site, page):
    is_phone = page.viewport_size["width"] < 577
    if not is_phone:
        page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{site}/index.html", wait_until="networkidle")
    picture = page.locator("article figure img").first
    assert picture.evaluate("image => image.naturalWidth") > 1200  # twice the density
    parts = [page.locator(f"article {part}").first for part in (".lead", ".install-line", ".numbers", ".buttons")]
    tops = [part.bounding_box()["y"] for part in (*parts, picture)]
    assert tops == sorted(tops)
    box = picture.bounding_box()
    assert box["width"] > 250
    assert box["y"] + box["height"] < page.viewport_size["height"]
    # On a phone one number.
    assert page.locator("article .numbers .later").first.is_visible() != is_phone


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


#: What people type, and the page that should come first: written down before the pages had entries for them
#: (other languages have moved from *Recipes* to *Text*, and with the choice of a model to *Embedding models* since).
WORDS = {
    "drift": "guide/monitoring",
    "hyperparameter": "guide/parameters",
    "active learning": "guide/traffic",
    "incremental": "guide/changing",
    "partial_fit": "guide/changing",
    "clarification": "guide/asking_back",
    "fallback": "guide/asking_back",
    "out-of-scope": "guide/quick_start",
    "CUDA": "install",
    "export": "guide/serving",
    "GPU": "install",
    "ONNX": "guide/serving",
    "grid search": "guide/parameters",
    "GridSearchCV": "guide/parameters",
    "cross-validation": "guide/parameters",
    "threshold": "guide/operating_point",
    "false positives": "guide/operating_point",
    "calibration": "guide/traffic",
    "own embeddings": "guide/features",
    "images": "guide/features",
    "sentence-transformers": "guide/embedding_models",
    "fine-tuning": "guide/text",
    "multilingual": "guide/embedding_models",
    "multi-label": "guide/recipes",
    "CSV": "guide/month",
    "Excel": "guide/command_line",
    "Rasa": "guide/coming_from",
    "Dialogflow": "guide/coming_from",
    "REST API": "guide/serving",
    "docker": "guide/serving",
    "cite": "cite",
    "bibtex": "cite",
    "report a bug": "contributing",
    "explain": "guide/inspecting",
    "pickle": "guide/persistence",
    "share a model": "guide/persistence",
    "Dask": "guide/large_data",
    "duplicates": "guide/features",
    "topic discovery": "guide/monitoring",
    "outlier": "guide/quick_start",
    # Those that stood here before.
    "out of scope": "guide/quick_start",
    "ask back": "guide/asking_back",
    "OOD": "guide/troubleshooting",
    "novelty detection": "guide/troubleshooting",
    "out of distribution": "guide/troubleshooting",
    "open set recognition": "guide/troubleshooting",
    "Mahalanobis": "",
    "reject option": "",
    "licence": "",
    "license": "",
    "language": "",
    "German": "",
}
#: Three times twenty, drawn later, each before the entries that it led to: what answers is among the first three pages.
AFTERWARDS = {
    "confidence": "guide/operating_point guide/inspecting",
    "latency": "guide/serving guide/large_data",
    "few-shot": "guide/text guide/troubleshooting",
    "class imbalance": "guide/features guide/troubleshooting",
    "Windows": "install",
    "label noise": "guide/recipes",
    "new intent": "guide/monitoring guide/changing",
    "A/B test": "guide/recipes",
    "embeddings from OpenAI": "guide/features",
    "batch": "guide/command_line guide/serving",
    "privacy": "guide/text guide/serving guide/persistence",
    "reproducible": "guide/troubleshooting guide/benchmarks",
    "p-value": "guide/operating_point",
    "human in the loop": "guide/traffic guide/asking_back",
    "retrain": "guide/changing",
    "confusion matrix": "guide/command_line generated/skellipsoid.plotting.OpenSetConfusionMatrixDisplay",
    "memory usage": "guide/large_data",
    "typos": "guide/text guide/troubleshooting",
    "visualize": "guide/inspecting",
    "upgrade": "api changes",
}
LAST = {
    "how many examples per class": "guide/text guide/troubleshooting",
    "parquet": "guide/command_line guide/large_data",
    "exit code": "guide/command_line",
    "thread safe": "guide/serving",
    "model size": "guide/persistence guide/serving guide/changing",
    "statistical significance": "guide/benchmark_runner guide/benchmarks generated/skellipsoid_bench.paired_test",
    "encoding error": "guide/command_line guide/troubleshooting",
    "nan values": "guide/features guide/troubleshooting",
    "sklearn pipeline": "guide/quick_start guide/text guide/recipes",
    "cost-sensitive": "guide/operating_point guide/traffic guide/asking_back",
    "data leakage": "guide/features guide/parameters guide/text",
    "container image": "guide/serving",
    "log file": "guide/serving",
    "unseen classes": "guide/quick_start guide/how_it_works guide/monitoring",
    "retraining schedule": "guide/changing guide/month",
    "zero-shot classification": "guide/language_models",
    "covariance matrix": "guide/method guide/how_it_works",
    "Jupyter notebook": "auto_examples/plot_tutorial auto_examples/index",
    "abstain": "guide/quick_start guide/operating_point",
    "LLM router": "guide/coming_from",
}
THIRD = {
    "merge two intents": "guide/changing",
    "precision recall": "guide/command_line guide/operating_point guide/quick_start",
    "how to install": "install",
    "docker compose": "guide/serving",
    "unknown class": "guide/quick_start",
    "train on my own data": "guide/month guide/command_line guide/quick_start guide/features",
    "slow prediction": "guide/troubleshooting guide/text guide/serving guide/large_data",
    "German language": "guide/embedding_models guide/troubleshooting",
    "vector database": "guide/features",
    "probability of a class": "guide/traffic",
    "save and load": "guide/persistence",
    "API key": "guide/language_models",
    "BERT model": "guide/embedding_models",
    "noise in labels": "guide/recipes",
    "monitoring dashboard": "guide/serving guide/monitoring",
    "new category": "guide/changing guide/monitoring",
    "DOI of the paper": "cite",
    "ask for help": "contributing",
    "macOS install": "install",
    "rejecting too much": "guide/troubleshooting guide/operating_point",
}


@pytest.fixture(scope="module")
def search(site, browser):
    """Addresses of the pages that a search finds, best first, each once: ``search(words)``."""
    opened = browser.new_page()

    def run(words):
        opened.goto(f"{site}/search.html?q={urllib.parse.quote_plus(words)}", wait_until="domcontentloaded")
        opened.wait_for_function("document.querySelector('.search-summary')?.textContent.match(/found|did not/)")
        found = opened.locator("ul.search li > a").evaluate_all("all => all.map(link => link.pathname.slice(1, -5))")
        return list(dict.fromkeys(found))

    yield run
    opened.close()


def test_search_finds_the_words_that_people_look_for(search):
    found = {word: search(word)[:1] for word in WORDS}
    wrong = {word: pages for word, pages in found.items() if not pages or WORDS[word] not in pages[0]}
    assert wrong == {}


@pytest.mark.parametrize("words", [AFTERWARDS, LAST, THIRD], ids=["first", "second", "third"])
def test_search_finds_words_that_were_drawn_afterwards(search, words):
    found = {word: search(word)[:3] for word in words}
    missed = {word: pages for word, pages in found.items() if not {*pages} & {*words[word].split()}}
    assert len(words) - len(missed) >= 16, missed
