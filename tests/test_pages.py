"""The built documentation in a real browser, on a desktop and on a phone."""

import functools
import http.server
import shutil
import threading
from pathlib import Path

import pytest

PAGES = Path(__file__).parent.parent / "docs" / "_build" / "html"
WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@pytest.fixture(scope="module")
def site():
    if not (PAGES / "index.html").exists():
        pytest.skip("the documentation is not built: python -m sphinx -b html docs docs/_build/html")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(PAGES)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    system = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_api.sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=system, args=["--no-sandbox"])
        except sync_api.Error as error:
            pytest.skip(f"no Chromium on this machine ({str(error).splitlines()[0]})")
        yield opened
        opened.close()


@pytest.fixture(params=WIDTHS)
def page(request, browser):
    width, height = WIDTHS[request.param]
    opened = browser.new_page(viewport={"width": width, "height": height})
    # A page must not need anything from another host.
    opened.asked = []
    opened.on("request", lambda request: opened.asked.append(request.url))
    yield opened
    opened.close()


@pytest.mark.parametrize("name", ["index", "guide/quick_start", "guide/method"])
def test_pages_fit_the_screen_and_need_no_other_host(site, page, name, tmp_path):
    page.goto(f"{site}/{name}.html", wait_until="networkidle")
    assert [url for url in page.asked if not url.startswith((site, "data:"))] == []
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width + 1
    shot = tmp_path / "page.png"
    page.screenshot(path=shot)
    assert shot.stat().st_size > 10_000  # an empty page is smaller


def test_the_picture_of_the_landing_page_is_seen_without_scrolling(site, page):
    page.goto(f"{site}/index.html", wait_until="networkidle")
    picture = page.locator("article img").first
    assert picture.evaluate("image => image.naturalWidth") > 600
    box = picture.bounding_box()
    assert box["width"] > 250
    assert box["y"] < page.viewport_size["height"]


def test_formulas_are_drawn_and_can_be_scrolled_to_their_left_edge(site, page):
    page.goto(f"{site}/guide/method.html", wait_until="networkidle")
    page.wait_for_selector("mjx-container[display='true']")
    formulas = page.locator("div.math mjx-container[display='true']")
    lefts = formulas.evaluate_all("found => found.map(formula => formula.getBoundingClientRect().left)")
    assert len(lefts) > 5
    assert min(lefts) >= 0


@pytest.mark.parametrize("word", ["novelty detection", "Mahalanobis", "out of distribution"])
def test_search_finds_the_words_that_people_look_for(site, browser, word):
    opened = browser.new_page()
    opened.goto(f"{site}/search.html?q={word.replace(' ', '+')}", wait_until="networkidle")
    opened.wait_for_selector("ul.search li a")
    assert opened.locator("ul.search li").count() > 0
    opened.close()
