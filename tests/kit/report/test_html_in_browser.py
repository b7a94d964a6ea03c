"""report.html in a real browser: Debian's Chromium, headless, from file://, with no network."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chromium import brightness, chromium
from playwright.sync_api import Browser, Page
from recorded import load

DESK, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Open a page. At the end nothing may have been complained about, asked, or fetched."""
    complaints: list[str] = []
    contexts = []

    def open_page(folder: Path, fragment: str = "", **options) -> Page:
        context = browser.new_context(**{"viewport": DESK, **options})
        context.set_default_timeout(90_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: complaints.append(request.url) if "report.html" not in request.url else None)
        page.goto(f"{(folder / 'report.html').as_uri()}{fragment}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [each for each in complaints if not each.startswith("data:")] == []


def shown(page: Page) -> list[str]:
    return page.eval_on_selector_all("details.row:not([hidden])", "rows => rows.map(row => row.id)")


def open_rows(page: Page) -> list[str]:
    return page.eval_on_selector_all("details.row[open]", "rows => rows.map(row => row.id)")


def with_verdict(folder: Path, *verdicts: str) -> list[str]:
    return [each["id"] for each in load(folder)["requirements"] if each["verdict"] in verdicts]


def test_the_verdict_stands_first(opened: Open, failing: Path):
    page = opened(failing)

    assert page.inner_text("h1") == "NOT conformant"
    assert page.locator("h1").bounding_box()["y"] < 200


def test_every_requirement_is_listed_and_closed(opened: Open, failing: Path):
    page = opened(failing)

    assert shown(page) == [each["id"] for each in load(failing)["requirements"]]
    assert open_rows(page) == []


@pytest.mark.parametrize(("field", "value"), [("area", "ECHO"), ("level", "SHOULD"), ("verdict", "fail")])
def test_a_filter_shows_what_fits(opened: Open, failing: Path, field: str, value: str):
    page = opened(failing)
    page.select_option(f"#{field}", value)
    wanted = [each["id"] for each in load(failing)["requirements"] if each[field] == value]

    assert shown(page) == wanted
    assert page.inner_text("#shown") == f"{len(wanted)} of {len(load(failing)['requirements'])}"


def test_filters_go_together(opened: Open, failing: Path):
    page = opened(failing)
    page.select_option("#verdict", "fail")
    page.fill("#text", "earlier TURN")

    assert shown(page) == ["HISTORY-02"]


def test_text_finds_an_id_and_what_was_said(opened: Open, failing: Path):
    page = opened(failing)
    page.fill("#text", "slug-03")
    by_id = shown(page)
    page.fill("#text", "nowhere to be found")

    assert by_id == ["SLUG-03"]
    assert shown(page) == []
    assert page.is_visible("#none")


def test_a_deep_link_opens_its_requirement(opened: Open, failing: Path):
    page = opened(failing, "#HISTORY-02")

    assert open_rows(page) == ["HISTORY-02"]
    assert 0 <= page.locator("#HISTORY-02 > summary").bounding_box()["y"] < DESK["height"] / 2


def test_a_link_to_what_is_filtered_out_shows_it(opened: Open, failing: Path):
    page = opened(failing)
    page.select_option("#area", "ECHO")
    page.evaluate("location.hash = '#HISTORY-02'")
    page.wait_for_selector("#HISTORY-02[open]")

    assert page.is_visible("#HISTORY-02")


def test_a_failure_line_leads_to_its_evidence(opened: Open, failing: Path):
    page = opened(failing)
    page.click(".lines a >> text=HISTORY-02")
    page.wait_for_selector("#HISTORY-02[open]")

    assert page.is_visible("#HISTORY-02 .pair")


def test_a_failure_tells_text_reason_steps_expected_actual_and_how_to_run_it(opened: Open, failing: Path):
    page = opened(failing, "#HISTORY-02")
    told = page.inner_text("#HISTORY-02")
    expected, actual = page.locator("#HISTORY-02 .pair pre").all()[:2]

    assert "the model MUST see every earlier turn exactly once" in told
    assert "It is what the word conversation means." in told
    assert "chat {session: $id, say: blue}" in told
    assert (expected.inner_text(), actual.inner_text()) == ("red, blue", "red, red, blue")
    assert expected.bounding_box()["y"] == actual.bounding_box()["y"]
    assert "continuity run HISTORY-02 --target reference" in told
    assert 'curl -i -X POST -H "Authorization: Bearer $KEY"' in told


def test_the_picture_tells_who_said_what_under_which_id_and_what_the_model_saw(opened: Open, failing: Path):
    page = opened(failing, "#HISTORY-02")
    talk = page.locator("#HISTORY-02 .talk").first
    ids = talk.locator(".tag code").all()

    assert talk.locator(".lanes span").all_inner_texts() == ["client", "server", "model"]
    assert [" ".join(each.split()[:4]) for each in talk.locator(".ask").all_inner_texts()] == [
        "1 alice says red",
        "2 alice says blue",
    ]
    assert talk.locator(".saw").nth(1).locator("span").all_inner_texts() == ["red", "red", "blue"]
    assert len({each.inner_text() for each in ids}) == len({each.get_attribute("class") for each in ids}) == 1


def test_the_lanes_of_the_picture_stand_side_by_side(opened: Open, failing: Path):
    talk = opened(failing, "#HISTORY-02").locator("#HISTORY-02 .talk").first
    ask, saw, told = (talk.locator(f".{name}").first.bounding_box() for name in ("ask", "saw", "told"))

    assert ask["x"] + ask["width"] <= saw["x"]
    assert ask["y"] < saw["y"] < told["y"]


def test_a_step_that_is_no_request_stands_in_the_picture(opened: Open, forking: Path):
    talk = opened(forking, "#SLUG-03").locator("#SLUG-03 .talk").first

    (told,) = talk.locator(".event").all_inner_texts()
    does, how = told.splitlines()

    assert does == "2 evict {response: $gone}"
    assert how.startswith("by the control API: POST /conformance/v1/evict {response_id: resp_")


def test_a_summary_that_the_model_saw_stands_in_the_picture(opened: Open, losing: Path):
    saw = opened(losing, "#COMPRESS-09").locator("#COMPRESS-09 .talk").first.locator(".saw").last

    assert saw.locator("span").all_inner_texts() == ["summary of red, white", "green"]


def test_the_keyboard_moves_opens_and_closes(opened: Open, failing: Path):
    page = opened(failing)
    first, second = shown(page)[:2]
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    at_second, address = open_rows(page), page.evaluate("location.hash")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")

    assert (at_second, address) == ([second], f"#{second}")
    assert open_rows(page) == [second]
    assert page.evaluate("document.querySelector('.row.at').id") == first


def test_enter_opens_what_tab_led_to(opened: Open, failing: Path):
    page = opened(failing)
    page.keyboard.press("j")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    assert open_rows(page) == [shown(page)[1]]


def test_n_goes_from_failure_to_failure(opened: Open, failing: Path):
    page = opened(failing)
    visited = []
    for _ in with_verdict(failing, "fail", "error"):
        page.keyboard.press("n")
        visited.append(page.evaluate("document.querySelector('.row.at').id"))

    assert visited == with_verdict(failing, "fail", "error")


def test_slash_finds_and_escape_resets(opened: Open, failing: Path):
    page = opened(failing)
    page.keyboard.press("/")
    page.keyboard.type("jk/n echo")
    while_typing = page.input_value("#text")
    page.keyboard.press("Escape")

    assert while_typing == "jk/n echo"
    assert page.input_value("#text") == ""
    assert len(shown(page)) == len(load(failing)["requirements"])


def test_a_curl_is_copied(opened: Open, failing: Path):
    page = opened(failing, "#HISTORY-02", permissions=["clipboard-read", "clipboard-write"])
    block = page.locator("#HISTORY-02 .curl").first
    block.locator("button").click()
    page.wait_for_function("document.querySelector('#HISTORY-02 .curl button').textContent !== 'copy'")
    selected = page.evaluate("getSelection().toString()")
    copied = selected or page.evaluate("navigator.clipboard.readText()")

    assert copied.strip() == block.locator("pre").inner_text().strip()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_colour_schemes(opened: Open, failing: Path, scheme: str):
    page = opened(failing, color_scheme=scheme)
    ink, paper = (brightness(page, f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))

    assert (paper > 200 and ink < 60) if scheme == "light" else (paper < 40 and ink > 200)


@pytest.mark.parametrize("run", ["failing", "nasty", "large"])
def test_nothing_is_wider_than_a_phone(opened: Open, request, run: str):
    page = opened(request.getfixturevalue(run), viewport=PHONE)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")

    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_failures_are_open_on_paper_and_closed_again_after(opened: Open, failing: Path):
    page = opened(failing)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    printed, filtered = open_rows(page), page.is_visible("form.filter")
    page.evaluate("dispatchEvent(new Event('afterprint'))")

    assert printed == with_verdict(failing, "fail", "error")
    assert not filtered
    assert open_rows(page) == []


def test_it_can_be_printed(opened: Open, failing: Path):
    assert opened(failing).pdf(format="A4").startswith(b"%PDF")


def test_a_hostile_server_runs_nothing(opened: Open, nasty: Path):
    page = opened(nasty)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    page.mouse.move(300, 300)
    page.keyboard.press("j")

    assert page.evaluate("window.pwned") is None
    assert page.locator("main script, main img, main svg, main iframe").count() == 0


def test_it_tells_everything_without_scripts(opened: Open, failing: Path):
    page = opened(failing, java_script_enabled=False)
    page.click("#HISTORY-02 > summary")

    assert page.is_visible("#HISTORY-02 .pair")


def test_130_failures_with_evidence_open_in_under_a_second(browser: Browser, large: Path):
    """Processor time of the page: how long others keep the machine busy is not its fault."""
    page = browser.new_context(viewport=DESK).new_page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto((large / "report.html").as_uri())
    page.wait_for_selector("footer")
    spent = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    page.context.close()

    assert spent["TaskDuration"] < 1.0
