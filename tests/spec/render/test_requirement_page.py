"""A requirement is one page of plain text: its scenario is drawn, and nothing that its entry says is lost."""

import pytest

from continuity_conformance.checks.registry import CHECKS
from continuity_conformance.suite.defects import defects
from continuity_spec import UnknownScenario, load_requirements, load_spec
from continuity_spec.load.schema import schema
from continuity_spec.render.arrows import Arrow, Lane, elements
from continuity_spec.render.diagram import ASCII, UNICODE, draw, line_style_for
from continuity_spec.render.page import RequirementPage, choose_scenarios
from continuity_spec.render.phrases import ANSWER_WORDS, MODEL_WORDS

SPEC = load_spec()
DEFECTS = defects()
STYLES = pytest.mark.parametrize("style", [UNICODE, ASCII], ids=["unicode", "ascii"])
EVERY_ENTRY = pytest.mark.parametrize("entry", SPEC.requirements, ids=lambda entry: entry.id)
ENTRY = """
- id: SLUG-99
  level: MUST
  text: An entry that has everything which can be drawn.
  why: What is drawn wrongly is understood wrongly.
  steps:
{steps}
  refuted_by: [slug-drawn-wrongly]
"""


@pytest.fixture
def drawn(tmp_path):
    """The diagram of these steps."""

    def diagram(steps, style=UNICODE):
        path = tmp_path / "slug.yaml"
        path.write_text(ENTRY.format(steps="\n".join(f"    {line}" for line in steps.strip().splitlines())))
        [entry] = load_requirements(path)
        return "\n".join(draw(elements(entry.scenarios[0]), style))

    return diagram


def shown(identity, **options):
    entry = SPEC.requirement(identity)
    chosen = choose_scenarios(entry, options.pop("scenario", None), every=options.pop("every", False))
    return RequirementPage(**options).render(entry, chosen)


def test_slug_03_is_one_page():
    texts = {
        "slug-forks-on-eviction": "A slug whose last response was evicted starts another session.",
        "slug-lost-on-eviction": "A slug whose last response was evicted is 404 for good.",
    }

    assert (
        shown("SLUG-03", defects=texts)
        == f"""\
SLUG-03 (MUST, Recovery)  When the response that a slug last named is evicted,
  the slug MUST keep its session.
  why        Otherwise every eviction splits the conversation, and a list of
             conversations shows it several times.
  origin     hermes-agent#16517, hermes-agent PR 16607, hermes-agent PR 16635
  written in {SPEC.requirement("SLUG-03").place}

  plain turns (only tells=header)
 alice                                       server                       model
1  │─ respond "red", conversation $slug ───────▶│────────────────────────────▶│
   │◀─ 2xx, session $s, response $gone ─────────│◀────────────────────────────│
2  ╪═ evict response $gone ═════════════════════╪═════════════════════════════╪
3  │─ respond "blue", conversation $slug ──────▶│────────────────────────────▶│
   │◀─ 200, session $s ─────────────────────────│◀────────────────────────────│
4  │─ respond "green", conversation $other ────▶│────────────────────────────▶│
   │◀─ 2xx, session $another ───────────────────│◀────────────────────────────│
  also, drawn by --all or --scenario NAME:
    streamed turns (only tells=header): the same, streamed
    again and again (only tells=header): red ▸ evict ▸ blue ▸ evict ▸ green ▸...
    every response of the slug (only tells=header): red ▸ blue ▸ evict ▸ evic...
    shown by what the model sees (only tells=nothing): red ▸ evict ▸ blue ▸ g...
    every response, streamed, shown by what the model sees (only tells=nothin...

  defects made to break it:
    slug-forks-on-eviction  A slug whose last response was evicted starts
      another session.
    slug-lost-on-eviction  A slug whose last response was evicted is 404 for
      good."""
    )


@pytest.mark.parametrize("width", [80, 100])
@EVERY_ENTRY
def test_every_requirement_is_one_page(entry, width):
    """With all that the command adds: a sentence for each defect, and what a Python check says of itself."""
    texts = {defect.name: defect.text for defect in DEFECTS.values()}
    checks = {name: (check.__doc__ or "").partition(": ")[2] for name, check in CHECKS.items()}
    text = RequirementPage(width=width, defects=texts, checks=checks).render(
        entry, choose_scenarios(entry, None, every=False)
    )

    assert len(text.splitlines()) <= 50


def test_branches_that_differ_only_in_their_option_become_one(drawn):
    steps = """
- request: {method: GET, path: /v1/capabilities}
  expect:
    by turns: {serialize: {body: {turns: serialize}}, reject: {body: {turns: reject}}}
    by echo: {tip: {session: $tip}, alias: {session: $hers}}
"""

    assert (
        drawn(steps)
        == """\
 alice                                       server                       model
1  │─ GET /v1/capabilities ────────────────────▶│                             │
   │◀─ 2xx ─────────────────────────────────────│                             │
   │   turns=serialize or reject: body {turns:  │                             │
   │     that}                                  │                             │
   │   echo=tip: session $tip                   │                             │
   │   echo=alias: session $hers                │                             │"""
    )


def test_a_refusal_stops_at_the_server_and_a_failing_model_at_the_model(drawn):
    steps = """
- chat: {session: $id, say: red}
  expect: {session: $id, sees: [red]}
- chat: {session: $id, say: blue, model: fails}
  expect: {status: [4xx, 5xx]}
- chat: {session: [$id, $other], say: green}
  expect: {status: 400, body: {error: {type: present}}}
- get: {session: $id}
  expect: {status: 404}
"""

    assert (
        drawn(steps)
        == """\
 alice                                       server                       model
1  │─ chat "red", session $id ─────────────────▶│─ sees red ─────────────────▶│
   │◀─ 2xx, session $id ────────────────────────│◀────────────────────────────│
2  │─ chat "blue", session $id ────────────────▶│────────────────────────────▶✗
   │◀─ 4xx or 5xx ──────────────────────────────│◀─ fails ────────────────────│
3  │─ chat "green", session $id, $other ───────▶✗                             │
   │◀─ 400, body {error: {type: present}} ──────│                             │
4  │─ get session $id ─────────────────────────▶✗                             │
   │◀─ 404 ─────────────────────────────────────│                             │"""
    )


def test_requests_sent_together_come_before_their_answers(drawn):
    steps = """
- together:
    - respond: {conversation: $slug, say: red}
      at_once: 5
      expect: {session: $hers}
    - respond: {as: bob, conversation: $slug, say: blue}
      expect: {session: $his}
- respond: {conversation: $slug, say: green, compress: true}
  expect: {session: {tip: $tip, alias: $hers}, recalls: [each red, green]}
"""

    assert (
        drawn(steps)
        == """\
        client                                  server                    model
  1        ╪═ together, all at once: ══════════════╪══════════════════════════╪
1.1 alice  │─ 5 x respond "red", conversation ────▶│─────────────────────────▶│
           │    $slug                              │                          │
1.2 bob    │─ respond "blue", conversation $slug ─▶│─────────────────────────▶│
1.1 alice  │◀─ 2xx, session $hers ─────────────────│◀─────────────────────────│
1.2 bob    │◀─ 2xx, session $his ──────────────────│◀─────────────────────────│
  2 alice  │─ respond "green", conversation $slug ▶│─ recalls each red, ─────▶│
           │                                       │    green                 │
           ╪═ the server compresses in this turn ══╪══════════════════════════╪
           │◀─ 2xx, session $tip (echo=alias: ─────│◀─────────────────────────│
           │     $hers)                            │                          │"""
    )


def test_what_happens_during_a_turn_is_between_its_request_and_its_answer(drawn):
    steps = """
- chat: {session: $id, say: red}
  during:
    - chat: {session: $other, say: blue}
      expect: {session: $other}
    - kill
  expect: {status: any}
- break_store: writes
- chat: {session: $id, say: green}
  expect: {either: [{status: [4xx, 5xx]}, {headers: {X-Session-Degraded: present}}]}
"""

    assert (
        drawn(steps, ASCII)
        == """\
   alice                                      server                      model
  1  |- chat "red", session $id ---------------->|--------------------------->|
     |= the model holds its answer; meanwhile: ==|============================|
1.1  |- chat "blue", session $other ------------>|--------------------------->|
     |<- 2xx, session $other --------------------|<---------------------------|
1.2  |= kill ====================================|============================|
  1  |<- any status, or none --------------------|<---------------------------|
  2  |= break_store writes ======================|============================|
  3  |- chat "green", session $id -------------->|--------------------------->|
     |<- either 4xx or 5xx ----------------------|<---------------------------|
     |   or 2xx, headers {X-Session-Degraded:    |                            |
     |     present}                              |                            |"""
    )


def test_letters_that_look_alike_are_written_as_escapes():
    text = shown("DERIVE-09", every=True, style=ASCII)

    assert r"caf\xe9" in text
    assert r"cafe\u0301" in text
    assert text.isascii()


def test_an_always_requirement_is_one_exchange_and_a_manual_one_a_question():
    assert "─ every chat ─" in shown("ECHO-01")
    assert "2xx, headers {$HEADER: present}" in shown("ECHO-01")
    assert "A reviewer answers: Does the log have one line" in shown("SLUG-16")


def test_a_python_check_says_what_it_does():
    assert "by openai_client: reads both forms" in shown("ECHO-09", checks={"openai_client": "reads both forms"})


@STYLES
@EVERY_ENTRY
def test_every_entry_is_drawn_whole_within_80_columns(entry, style):
    text = shown(entry.id, every=True, style=style)

    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith(f"{entry.id} ({entry.level.value}, {entry.class_name})")
    assert all(defect in text for defect in entry.refuted_by)
    assert all(scenario.name in text for scenario in entry.scenarios)


@EVERY_ENTRY
def test_every_turn_is_asked_and_answered(entry):
    for scenario in entry.scenarios:
        arrows = [element for element in elements(scenario) if isinstance(element, Arrow)]
        asked = [arrow.number for arrow in arrows if arrow.start is Lane.CLIENT]
        answered = [arrow.number for arrow in arrows if arrow.end is Lane.CLIENT]

        assert sorted(asked) == sorted(answered)


@EVERY_ENTRY
def test_scenarios_that_are_not_drawn_have_a_line_each(entry):
    text = shown(entry.id)

    assert max(map(len, text.splitlines())) <= 80
    assert all(f"\n    {scenario.name}" in text for scenario in entry.scenarios[1:])


def test_one_scenario_can_be_asked_for():
    assert "\n  again and again (only tells=header)\n" in shown("SLUG-03", scenario="Again and again")
    with pytest.raises(UnknownScenario, match='Did you mean "again and again"'):
        shown("SLUG-03", scenario="again and agan")


def test_every_expectation_of_the_vocabulary_can_be_drawn():
    words = set(schema("requirements")["$defs"]["expectations"]["properties"])

    assert {word for word in words if not word.startswith("by ")} == {
        *MODEL_WORDS,
        *ANSWER_WORDS,
        "status",
        "only_if",
        "either",
    }


@pytest.mark.parametrize(
    ("encoding", "style"), [("utf-8", UNICODE), ("ascii", ASCII), ("latin-1", ASCII), (None, ASCII), ("odd", ASCII)]
)
def test_lines_are_drawn_with_what_the_terminal_has(encoding, style):
    assert line_style_for(encoding) is style


def test_the_model_is_not_called_for_a_replay():
    scenario = load_spec().requirement("ISOLATE-10").scenarios[0]
    calls = [each.number for each in elements(scenario) if isinstance(each, Arrow) and each.end is Lane.MODEL]

    assert calls == ["1", "2", "3"]
