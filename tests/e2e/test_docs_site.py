"""The built site: whole, without dead links, without requests to other hosts, in light and dark, on a phone."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from chromium import chromium
from playwright.sync_api import Browser

from continuity_spec import load_spec

ROOT = Path(__file__).parents[2]
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
SHOWN = [
    "index.html",
    "reference/spec.html",
    "reference/requirements/SLUG-05.html",
    "reference/requirements/COMPRESS-02.html",
    "reference/commands.html",
    "reference/profile.html",
    "results/compatibility.html",
    "tutorial/first-verdict.html",
]
OF_THE_THEME = {"404.html"}
"""Its links begin at the root of wherever the site is served."""


def build(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("mkdocs"), "build", "--strict", "--site-dir", folder, *arguments]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)

    assert done.returncode == 0, done.stderr
    return folder


class Links(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        self.links += [found.get("href", "#")] if tag == "a" else []
        self.loaded += [found[name] for name in ("src", "href") if name in found and tag != "a"]


@cache
def read(page: Path) -> Links:
    found = Links()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def leads_nowhere(page: Path, link: str) -> bool:
    parts = urlsplit(link)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return True
    return bool(parts.fragment) and target.suffix == ".html" and unquote(parts.fragment) not in read(target).anchors


def test_no_link_leads_nowhere(site: Path):
    pages = [page for page in site.rglob("*.html") if page.name not in OF_THE_THEME]
    dead = {
        f"{page.relative_to(site)}: {link}"
        for page in pages
        for link in read(page).links
        if link != "#" and not urlsplit(link).scheme and leads_nowhere(page, link)
    }

    assert len(pages) > len(load_spec().requirements)
    assert dead == set()


def test_no_page_loads_anything_from_another_host(site: Path):
    loaded = {link for page in site.rglob("*.html") for link in read(page).loaded if urlsplit(link).netloc}
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))

    assert loaded == set()
    assert re.findall(r"@import|url\(['\"]?(?:https?:)?//", styles) == []


def test_every_link_of_llms_txt_is_a_file(site: Path):
    links = re.findall(r"\]\(([^)]+)\)", (site / "llms.txt").read_text(encoding="utf-8"))

    assert len(links) > len(load_spec().requirements)
    assert [link for link in links if not (site / link).is_file()] == []


def test_every_requirement_is_a_page_and_plain_markdown(site: Path):
    folder = site / "reference" / "requirements"
    ids = [each.id for each in load_spec().requirements]

    assert [identity for identity in ids if not (folder / f"{identity}.html").is_file()] == []
    assert [
        identity for identity in ids if not (folder / f"{identity}.md").read_text().startswith(f"# {identity}\n")
    ] == []


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
def test_pages_fit_their_screen_and_ask_no_other_host(
    browser: Browser, served: str, screen: dict[str, int], colours: str
):
    context = browser.new_context(viewport=screen, color_scheme=colours)
    context.set_default_timeout(60_000)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: (
            complaints.append(request.url) if not request.url.startswith((served, "data:", "blob:")) else None
        ),
    )
    for name in SHOWN:
        page.goto(served + name)
        assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"], name
        scheme = page.evaluate("document.body.getAttribute('data-md-color-scheme')")
        assert scheme == ("slate" if colours == "dark" else "default"), name
    context.close()

    assert complaints == []


def test_the_matrix_opens_and_its_cells_lead_to_their_evidence(browser: Browser, served: str):
    page = browser.new_page(viewport=PHONE)
    page.goto(f"{served}results/compatibility.html")
    page.locator(".matrix summary").first.click(position={"x": 60, "y": 12})
    page.locator(".matrix details[open] td.fail a").first.click()
    page.wait_for_url(re.compile(r"/failures\.html#[a-z]+-\d+$"))
    page.close()


def left_edge(page, selector: str) -> float:
    return page.locator(selector).first.bounding_box()["x"]


def test_a_class_of_the_matrix_fits_a_desk_and_keeps_its_ids_in_sight_on_a_phone(browser: Browser, served: str):
    for screen in (DESK, PHONE):
        page = browser.new_page(viewport=screen)
        page.goto(f"{served}results/compatibility.html")
        page.evaluate("document.querySelector('.matrix details').open = true")
        table, ident = ".matrix details[open] table", ".matrix details[open] tbody tr > :first-child"
        before = left_edge(page, ident)
        page.evaluate(f"document.querySelector('{table}').scrollLeft = 1000")
        scrolled = page.evaluate(f"document.querySelector('{table}').scrollLeft")

        assert (scrolled == 0) == (screen is DESK)
        assert left_edge(page, ident) == pytest.approx(before, abs=2)
        page.close()


@pytest.mark.parametrize("name", ["reference/requirements/index.html", "reference/classes.html"])
def test_the_text_of_a_requirement_has_most_of_a_phone(browser: Browser, served: str, name: str):
    page = browser.new_page(viewport=PHONE)
    page.goto(served + name)
    text = page.locator("article table tbody tr td:nth-child(3)").first.bounding_box()

    assert text["width"] > PHONE["width"] / 2
    page.close()


def test_the_search_finds_a_requirement(browser: Browser, served: str):
    page = browser.new_page(viewport=DESK)
    page.goto(f"{served}index.html")
    page.locator(".md-search__input").fill("eviction")
    page.locator(".md-search-result__item").first.wait_for(timeout=60_000)
    page.close()


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A page\n\n[gone](gone.md) [no anchor](#nowhere)\n")
    (tmp_path / "mkdocs.yml").write_text(
        f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: docs\nhooks: []\nnav: [index.md]\nwatch: []\nextra_css: []\ntheme: {{favicon: ''}}\n"
    )
    done = build(tmp_path / "site", "--config-file", str(tmp_path / "mkdocs.yml"))

    assert done.returncode == 1
    assert "'gone.md'" in done.stderr
    assert "'#nowhere'" in done.stderr
