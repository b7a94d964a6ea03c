"""The page of `continuity ui` in a real browser, with real servers: examine, run, watch, and look at a failure."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from chromium import brightness, chromium
from playwright.sync_api import Browser, Page, expect
from processes import CONTINUITY, serving, started

DESK, PHONE = {"width": 1200, "height": 900}, {"width": 360, "height": 740}
KEY = "sk-typed-into-the-page-4711"
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address that `continuity ui` prints."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}
    with started([CONTINUITY, "ui"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ui:
        yield re.search(r"http://\S+", ui.stdout.readline())[0]
        ui.terminate()
        _, errors = ui.communicate(timeout=60)
    assert errors == ""


@pytest.fixture(scope="module")
def good() -> Iterator[str]:
    with serving("--key", f"alice={KEY}") as url:
        yield url


@pytest.fixture(scope="module")
def doubling() -> Iterator[str]:
    with serving("--defect", "history-doubles") as url:
        yield url


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Open]:
    """Open the page. At the end the browser may have complained about nothing, and asked no other host."""
    complaints: list[str] = []
    contexts = ExitStack()

    def open_page(**options) -> Page:
        context = browser.new_context(**{"viewport": DESK, **options})
        contexts.callback(context.close)
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url) if not own(request.url) else None)
        page.goto(address)
        return page

    def own(url: str) -> bool:
        return url.startswith((address.partition("?")[0], "data:"))

    expect.set_options(timeout=60_000)
    with contexts:
        yield open_page
    assert complaints == []


def run(page: Page, url: str, only: str, key: str = "") -> None:
    """Fill in the form and run these requirements to the end."""
    page.fill("#target", url)
    page.fill("#key", key)
    open_choice(page)
    page.fill("#only", only)
    expect_summary_after(page, lambda: page.click("#run"))


def expect_summary_after(page: Page, start: Callable[[], None]) -> None:
    """Start a run and wait for its end: a page that is opened shows the run before."""
    with page.expect_response(lambda answer: answer.request.method == "POST") as answer:
        start()
    name = answer.value.json()["run"]
    expect(page.locator(f"#summary[data-run='{name}'] .verdict")).to_be_visible()


def open_choice(page: Page) -> None:
    if not page.is_visible("#only"):
        page.click("summary:has-text('What to run')")


def tile(page: Page, identity: str):
    return page.locator(f".tile[data-requirement='{identity}']")


def test_from_the_address_to_green(opened: Open, good: str):
    page = opened()
    page.fill("#target", good)
    page.fill("#key", KEY)
    page.click("#examine")
    expect(page.locator("#findings")).to_contain_text("a key is required")
    found, profile = page.inner_text("#findings"), page.input_value("#profile")
    run(page, good, "ECHO-01 or ECHO-02", KEY)

    assert "accepts connections" in found
    assert "principals: {alice: $TARGET_KEY}" in profile
    for identity in ("ECHO-01", "ECHO-02"):
        expect(tile(page, identity)).to_have_attribute("data-verdict", "pass")
        expect(tile(page, identity)).to_have_attribute("aria-label", f"{identity} passed")
    assert page.inner_text(".group h3") == "Core 2 of 2 passed"
    assert "2 of 2 decided · 2 passed" in page.inner_text("#count")
    green = page.evaluate("getComputedStyle(document.querySelector('.tile')).color").removeprefix("rgb(").split(", ")
    assert int(green[1]) > int(green[0])


def test_tiles_change_while_the_run_goes_on(opened: Open, good: str):
    page = opened()
    page.fill("#target", good)
    page.fill("#key", KEY)
    open_choice(page)
    page.check("input[value=Core]")
    chosen = page.inner_text("#chosen")
    page.uncheck("input[value=Core]")
    page.click("#run")
    expect(page.locator("#stop")).to_be_visible()
    expect(page.locator("#count")).to_contain_text(re.compile(r"of 1\d\d decided · \d+ passed"))
    waiting = page.locator(".tile[data-verdict='']").count()
    page.click("#stop")
    expect(page.locator("#summary")).to_contain_text("The run did not finish")

    assert waiting > 0
    assert chosen == "Core"


def test_a_failure_is_red_with_its_cause_first_and_its_dialogue(opened: Open, doubling: str):
    page = opened()
    run(page, doubling, "HISTORY-02 or ECHO-01")
    expect(tile(page, "HISTORY-02")).to_have_attribute("data-verdict", "fail")
    cause, board = page.locator(".causes li").first, page.locator("#board")
    first = page.locator("#summary h3").first.inner_text()

    assert first.startswith("Causes")
    assert "Every stored turn reaches the model twice" in cause.inner_text()
    assert cause.bounding_box()["y"] < board.bounding_box()["y"]

    tile(page, "HISTORY-02").click()
    expect(page.locator("#shown h2")).to_contain_text("HISTORY-02")
    shown = page.locator("#shown")
    assert shown.locator(".pair pre").all_inner_texts()[:2] == ["red, blue", "red, red, blue"]
    assert shown.locator(".talk .saw").nth(1).locator("span").all_inner_texts() == ["red", "red", "blue"]
    shown.locator(".dialogue summary").click()
    assert "─▶│" in shown.locator(".drawn").inner_text()


def test_a_pass_shows_the_dialogue_of_the_spec(opened: Open, good: str):
    page = opened()
    run(page, good, "HISTORY-02", KEY)
    tile(page, "HISTORY-02").click()
    expect(page.locator("#shown .drawn")).to_be_visible()

    assert "sees red, blue" in page.inner_text("#shown .drawn")


def test_reports_are_opened_and_downloaded(opened: Open, doubling: str):
    page = opened()
    run(page, doubling, "HISTORY-02 or ECHO-01")
    with page.expect_popup() as popup:
        page.click("text=Open report.html")
    report = popup.value
    report.wait_for_load_state()
    report.fill("#text", "history-02")
    rows = report.locator("details.row:not([hidden])").all()
    with page.expect_download() as download:
        page.click(".files a:has-text('results.json')")
    with page.expect_download() as issue:
        page.click("text=Issue to paste into a tracker")

    assert report.inner_text("h1") == "NOT conformant"
    assert [row.get_attribute("id") for row in rows] == ["HISTORY-02"]
    assert Path(download.value.path()).read_text().startswith("{")
    assert issue.value.suggested_filename == "01-history-doubles.md"


def test_a_run_is_compared_with_the_one_before(opened: Open, doubling: str):
    page = opened()
    run(page, doubling, "HISTORY-02")
    run(page, doubling, "HISTORY-02")
    expect(page.locator(".changes")).to_contain_text("The verdicts are the same.")
    with page.expect_popup() as popup:
        page.click("text=side by side")

    assert "HISTORY-02" in popup.value.inner_text("body")
    assert page.locator("#earlier li").count() >= 2


def test_the_keyboard_is_enough(opened: Open, doubling: str):
    page = opened()
    page.keyboard.type(doubling)
    page.keyboard.press("Tab")
    open_choice(page)
    page.focus("#only")
    page.keyboard.type("HISTORY-02")
    expect_summary_after(page, lambda: page.keyboard.press("Enter"))
    after_run = page.evaluate("document.activeElement.id")
    tile(page, "HISTORY-02").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#shown h2")).to_contain_text("HISTORY-02")
    page.keyboard.press("Escape")

    assert after_run == "summary"
    expect(page.locator("#detail")).not_to_be_visible()
    assert page.evaluate("document.activeElement.dataset.requirement") == "HISTORY-02"


def test_an_earlier_run_takes_the_focus_from_nobody(opened: Open, good: str):
    run(opened(), good, "ECHO-01", KEY)
    page = opened()
    page.focus("#key")
    expect(page.locator("#summary .verdict")).to_be_visible()

    assert page.evaluate("document.activeElement.id") == "key"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("", "the address of the target is empty. Write it as http://host:port"),
        ("http://127.0.0.1:1", "Nothing answers"),
        ("refrence", 'There is no target "refrence". Did you mean "reference"?'),
    ],
)
def test_a_mistake_is_one_message(opened: Open, target: str, words: str):
    page = opened()
    page.fill("#target", target)
    page.click("#run")
    expect(page.locator("#message")).to_contain_text(words)
    expect(page.locator("#run")).to_be_enabled()

    assert page.is_hidden("#board")
    assert page.is_hidden("#summary")


def test_a_wrong_key_is_one_message(opened: Open, good: str):
    page = opened()
    page.fill("#target", good)
    page.fill("#key", "wrong-key-of-somebody")
    page.click("#examine")
    expect(page.locator("#message")).to_contain_text("401")

    assert "wrong-key-of-somebody" not in page.inner_text("body")


def test_the_key_is_in_no_address_and_in_no_storage(opened: Open, good: str):
    page = opened()
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    run(page, good, "ECHO-01", KEY)
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])")
    page.reload()

    assert addresses
    assert KEY not in "".join([*addresses, kept, page.content()])
    assert "token" not in page.url
    assert page.input_value("#key") == ""


def test_a_page_that_is_loaded_again_shows_the_run(opened: Open, doubling: str):
    page = opened()
    run(page, doubling, "HISTORY-02 or ECHO-01")
    page.reload()
    expect(tile(page, "HISTORY-02")).to_have_attribute("data-verdict", "fail")
    expect(page.locator("#summary .verdict")).to_have_text("NOT conformant")


def test_a_profile_of_another_address_is_forgotten(opened: Open, good: str):
    page = opened()
    page.fill("#target", good)
    page.fill("#key", KEY)
    page.click("#examine")
    expect(page.locator("#profile")).not_to_have_value("")
    page.fill("#target", "http://127.0.0.1:1")

    assert page.input_value("#profile") == ""


def test_findings_of_another_address_are_hidden(opened: Open, good: str, doubling: str):
    page = opened()
    page.fill("#target", good)
    page.fill("#key", KEY)
    page.click("#examine")
    expect(page.locator("#findings")).to_be_visible()

    assert page.is_hidden("#message")

    page.fill("#target", doubling)

    assert page.is_hidden("#findings")


def test_what_does_not_apply_is_not_counted(opened: Open, good: str):
    page = opened()
    run(page, good, "ECHO-01 or ECHO-02 or ECHO-07 or ENV-03", KEY)

    expect(tile(page, "ECHO-07")).to_have_attribute("data-verdict", "not_applicable")
    assert page.locator(".group h3").all_inner_texts() == [
        "Core 2 of 2 passed",
        "Sessions not applicable",
        "Environment 0 of 1 passed",
    ]


def test_nothing_is_wider_than_a_phone(opened: Open, good: str, doubling: str):
    page = opened(viewport=PHONE)
    page.fill("#target", good)
    page.fill("#key", KEY)
    page.click("#examine")
    expect(page.locator("#findings")).to_contain_text("a key is required")
    run(page, doubling, "HISTORY-02 or ECHO-01")
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    of_the_page = page.evaluate("document.documentElement.scrollWidth")
    tile(page, "HISTORY-02").click()
    expect(page.locator("#shown .pair").first).to_be_visible()
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    of_the_dialog = page.evaluate(
        "[document.querySelector('#detail').scrollWidth, document.querySelector('#detail').clientWidth]"
    )

    assert of_the_page <= PHONE["width"]
    assert of_the_dialog[0] <= of_the_dialog[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_colour_schemes(opened: Open, scheme: str):
    page = opened(color_scheme=scheme)
    of_the_body = [brightness(page, f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor")]
    of_a_field = [
        brightness(page, f"getComputedStyle(document.getElementById('target')).{name}")
        for name in ("color", "backgroundColor")
    ]

    for ink, paper in (of_the_body, of_a_field):
        assert (paper > 200 and ink < 60) if scheme == "light" else (paper < 50 and ink > 200)
