"""Lint: every rule fires on an entry that breaks it, and is silent on the same entry put right."""

import textwrap
from pathlib import Path

import pytest

from continuity_spec import load_requirements
from continuity_spec.lint import RULES, lint_files, lint_requirements

CLEAN = """\
    - chat: {session: $id, say: red}
      expect: {session: $id, sees: [red]}
    - chat: {session: $id, say: blue}
      expect: {session: $id, sees: [red, blue]}
"""

RECALL = """\
    - respond: {conversation: $c, say: blue}
      expect: {session: $s, sees: [red, blue]}
"""

BROKEN = {
    "unsaid-label": [
        "    - chat: {session: $id, say: red}\n      expect: {sees: [rad, red]}\n",
        "    - chat: {session: $id, say: red}\n      expect: {forgets: [blue]}\n",
        "    - chat: {session: $id, say: red}\n      expect: {ran: {blue: 1}}\n",
        "    - chat: {session: $id, system: pirate, say: red}\n      expect: {system: [pirat]}\n",
        "    - chat: {session: $id, say: red}\n      expect: {either: [{sees: [rad, red]}, {session: $id}]}\n",
    ],
    "view-without-end": [
        CLEAN.replace("[red, blue]", "[blue, red]"),
        CLEAN.replace("sees: [red, blue]", "recalls: [red]"),
        "    - chat: {say: red}\n    - get: {response: $r}\n      expect: {sees: [red]}\n",
        CLEAN.replace("{session: $id, sees: [red, blue]}", "{by echo: {tip: {sees: [red]}, alias: {session: $id}}}"),
    ],
    "modifier-out-of-place": [
        CLEAN.replace("sees: [red, blue]", "sees: [verbatim red, blue]"),
        CLEAN.replace("sees: [red, blue]", "recalls: [maybe red, blue]"),
    ],
    "sees-after-compression": [
        CLEAN.replace("say: red}", "say: red, compress: true}"),
        CLEAN.replace("say: blue}", "say: blue, compress: true}"),
    ],
    "refusal-without-twin": [
        "    - chat: {session: $id, say: red}\n    - respond: {say: blue}\n      expect: {status: 400}\n",
        "    - chat: {session: $id, say: red}\n      expect: {status: [404, 5xx]}\n",
        "    - chat: {session: $id, say: red}\n      expect: {either: [{status: 400}, {session: $id}]}\n",
        "    - chat: {say: red}\n      expect: {by degraded: {answer: {session: $s}, refuse: {status: 503}}}\n",
    ],
    "name-of-two-kinds": [
        "    - respond: {conversation: $id, say: red}\n      expect: {session: $id}\n",
        "    - respond: {say: red}\n      expect: {response: $r}\n    - chat: {session: $r, say: blue}\n",
        "    - chat: {session: $id, say: red, model: {writes: $id}}\n      expect: {session: $id}\n",
        "    - chat: {session: [$id, $k], say: red, idempotency_key: $k}\n      expect: {status: 200}\n",
        "    - respond: {conversation: $slug, say: red}\n      expect: {headers: {$HEADER: $slug}}\n",
    ],
    "expects-nothing": ["    - chat: {session: $id, say: red}\n    - restart\n    - chat: {session: $id, say: blue}\n"],
    "returns-without-call": [
        "    - chat: {session: $id, say: red}\n    - chat: {session: $id, returns: red}\n      expect: {sees: [red]}\n"
    ],
}


@pytest.fixture
def found(tmp_path):
    """Gives the codes of the problems that lint finds in an entry."""

    def found(steps="  steps:\n" + CLEAN, text="What is said here MUST be true.", more="", refuted_by="some-defect"):
        entry = f"- id: AREA-01\n  level: MUST\n  text: {text}\n  why: Somebody is hurt where it is not.\n{more}"
        path = tmp_path / "area.yaml"
        path.write_text(f"{entry}{steps}  refuted_by: [{refuted_by}]\n", encoding="utf-8")
        return [problem.code for problem in lint_requirements(load_requirements(path))]

    return found


def test_a_clean_entry_has_no_problems(found):
    assert found() == []


@pytest.mark.parametrize(("code", "steps"), [(code, steps) for code, cases in BROKEN.items() for steps in cases])
def test_a_rule_fires_on_broken_steps(found, code, steps):
    assert code in found("  steps:\n" + steps)


@pytest.mark.parametrize(
    "steps",
    [
        "    - chat: {session: $id, say: red}\n      at_once: 3\n      expect: {session: $id, ran: {red/3: 1}}\n",
        CLEAN.replace("say: red}", "say: red}\n      at_once: 2").replace("[red, blue]", "[each red, blue]"),
        CLEAN.replace("[red, blue]", "[maybe red, blue]"),
        "    - legacy: {rows: [{conversation: $c, response: $r, session: $s, turns: [red]}]}\n" + RECALL,
        "    - chat: {session: $id, history: [forged], say: red}\n      expect: {sees: [red], forgets: [forged]}\n",
        "    - chat: {say: red, model: calls client}\n    - chat: {returns: red}\n      expect: {sees: [red]}\n",
        CLEAN.replace("sees: [red, blue]", "recalls: [red, blue]").replace("say: blue}", "say: blue, compress: true}"),
        CLEAN + '    - chat: {session: "${id}x", say: green}\n      expect: {status: 400}\n',
        "    - chat: {session: $id, say: red, model: fails}\n      expect: {status: any}\n",
    ],
)
def test_right_uses_are_left_alone(found, steps):
    assert found("  steps:\n" + steps) == []


@pytest.mark.parametrize(
    "text", ["A server should and MUST answer.", "Test that a server MUST answer.", "This tests that it MUST answer."]
)
def test_a_text_states_a_fact(found, text):
    assert found(text=text) == ["discouraged-words"]


@pytest.mark.parametrize(
    "text", ["A server must answer at once.", "A server SHOULD answer at once.", "A server MUSTY answers."]
)
def test_a_text_says_the_keyword_of_its_level(found, text):
    assert found(text=text) == ["missing-keyword"]


def test_a_must_may_be_said_as_must_not(found):
    assert found(text="A server MUST NOT hang up.") == []


def test_scenario_names_tell_scenarios_apart(found):
    steps = textwrap.indent(CLEAN, "    ")
    scenarios = f"  scenarios:\n    - name: plain\n      steps:\n{steps}    - name: Plain\n      steps:\n{steps}"

    assert found(scenarios) == ["repeated-scenario-name"]


def test_needs_say_only_what_the_steps_do_not_show(found):
    streamed = "  steps:\n" + CLEAN.replace("say: red}", "say: red, stream: true}")

    assert found(streamed, more="  needs: [streaming]\n") == ["needless-need"]
    assert found(streamed, more="  needs: [cors]\n") == []


def test_a_defect_is_named_by_what_is_broken(found):
    assert found(refuted_by="broken") == ["short-defect-name"]


def test_two_entries_have_two_texts(tmp_path):
    entry = (
        "- id: AREA-0{number}\n  level: MUST\n  text: What is said here MUST be true.\n"
        "  why: Somebody is hurt where it is not.\n  check: some_check\n  refuted_by: [some-defect]\n"
    )
    path = tmp_path / "area.yaml"
    path.write_text(entry.format(number=1) + entry.format(number=2), encoding="utf-8")

    [problem] = lint_requirements(load_requirements(path))
    assert (problem.code, problem.entry, problem.place.line) == ("repeated-text", "AREA-02", 7)


def test_every_rule_is_shown_firing():
    elsewhere = {"needless-need", "discouraged-words", "missing-keyword", "repeated-scenario-name", "short-defect-name"}

    assert set(RULES) == set(BROKEN) | elsewhere


def test_a_problem_says_where_what_and_what_to_do(tmp_path):
    path = tmp_path / "area.yaml"
    path.write_text(
        "- id: AREA-01\n  level: MUST\n  text: What is said here MUST be true.\n"
        "  why: Somebody is hurt where it is not.\n  steps:\n    - chat: {say: red}\n      expect: {sees: [rad, red]}\n"
        "  refuted_by: [some-defect]\n"
    )

    assert lint_files([path]) == [
        f'{path}:6:7: AREA-01: "rad" is expected, but no step says it. Correct the label, or add a step that says it. [unsaid-label]'
    ]


def test_a_broken_file_does_not_hide_the_problems_of_another(tmp_path):
    broken, nothing = tmp_path / "broken.yaml", tmp_path / "nothing.yaml"
    broken.write_text("- id: [\n")
    nothing.write_text(
        "- id: AREA-01\n  level: MUST\n  text: What is said here MUST be true.\n"
        "  why: Somebody is hurt where it is not.\n  steps:\n    - chat: {say: red}\n  refuted_by: [some-defect]\n"
    )
    first, second = lint_files([broken, nothing])

    assert "broken.yaml:2:1: not YAML" in first
    assert second.endswith("[expects-nothing]")


def test_every_rule_is_in_the_reference():
    reference = (Path(__file__).parents[2] / "docs" / "reference" / "vocabulary.md").read_text(encoding="utf-8")

    assert [code for code in (*RULES, "repeated-text") if f"`{code}`" not in reference] == []
