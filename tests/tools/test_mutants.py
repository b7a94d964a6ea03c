"""The machinery of the mutants works, and what is published of them is whole. The hunt itself is `make mutants`."""

import ast

import pytest
from catalogue import mutants, mutated
from edits import Text, edits_of
from hunt import STILLBORN, fate
from published import PAGE, count, named, page, read_fates, words
from rounds import Round
from sql import sql_edits

KNOWN = {mutant.id: mutant for mutant in mutants()}


def one(module: str, function: str, operator: str, before: str, after: str):
    """The only mutant that is this."""
    (found,) = [
        mutant
        for mutant in KNOWN.values()
        if (mutant.module, mutant.function, mutant.edit.operator, mutant.edit.before, mutant.edit.after)
        == (module, function, operator, before, after)
    ]
    return found


def changes(code: str) -> set[str]:
    """Every change that is made to a piece of code, as the whole of it."""
    text = Text(code)
    found = [edit for node in ast.walk(ast.parse(code)) for edit in edits_of(text, node, [ast.Module([], [])])]
    return {text.part(0, edit.start) + edit.new + text.part(edit.end, len(text.bytes)) for edit in found}


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("a < b", {"a <= b", "pass"}),
        ("x = a is b", {"x = a is not b"}),
        ("x = a and b", {"x = (a)", "x = (b)"}),
        ("x = 1 if not a else b", {"x = (1 + 1) if not a else b", "x = 1 if (a) else b"}),
        ("x = f(owner, session)", {"x = f(session, owner)"}),
        ("x = f(a, b=c)", {"x = f(a, )"}),
        ("x = [*a, *b]", {"x = [*(), *b]", "x = [*a, *()]"}),
        ("x = a[1:]", {"x = a[(1 + 1):]", "x = a[None:]"}),
        ("with a: b", {"if True: b", "with a: pass"}),
        ("x = [a for a in b if c]", {"x = [a for a in b if True]"}),
        ("logger.info(a, b)", set()),
        ('"""Said to people."""', set()),
    ],
)
def test_an_operator_makes_small_changes(code, changed):
    assert changes(code) - {"pass"} == changed - {"pass"}


def test_a_condition_of_sql_is_weakened_and_still_takes_its_value():
    weakened = {whole for _, _, whole in sql_edits("DELETE FROM a WHERE owner=? AND id=?")}

    assert weakened == {"DELETE FROM a WHERE (owner=? OR 1) AND id=?", "DELETE FROM a WHERE owner=? AND (id=? OR 1)"}


def test_a_mutant_is_killed_by_a_requirement_that_fails_on_it():
    mutant = one("turn.commit", "Committer._messages", "element", "*output.messages", "left out")

    assert fate(mutant, [Round("default", ("HISTORY-02",))]).killer == "HISTORY-02"


def test_an_equivalent_mutant_survives():
    mutant = one("rules.isolate", "IsolateRules.minted", "constant", "16", "17")

    assert not fate(mutant, [Round("default", ("HISTORY-02",))]).killed


def test_a_mutant_that_does_not_start_is_noticed():
    mutant = one("rules.contract", "", "constant", '"inf"', "'inf~'")

    assert fate(mutant, [Round("default", ("HISTORY-02",))]).killer == STILLBORN


def test_words_are_said_of_mutants_that_exist_and_once():
    said = [mutant for word in words() for mutant in word.mutants]

    assert set(said) <= set(KNOWN)
    assert len(said) == len(set(said))


def test_every_mutant_was_killed_or_has_a_word():
    fates = read_fates()
    killed = {mutant for mutant in KNOWN if mutant in fates and fates[mutant].killed}
    others = {mutant for word in words() for mutant in word.mutants}

    assert killed | others == set(KNOWN), "play the new ones: make mutants MUTANTS=--new"
    assert not killed & others


def test_no_mutant_is_open():
    """A mutant that survives after its line changed is called a gap or equivalent, with a sentence."""
    assert not named("open")


def test_the_suite_kills_97_of_100_that_are_not_equivalent():
    assert count(mutants()).share >= 0.97


def test_the_page_tells_what_became_of_the_mutants():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_mutant_can_be_compiled_and_has_an_id_of_its_own():
    found = mutants()

    assert len(KNOWN) == len(found)
    assert all(compile(mutated(mutant), mutant.module, "exec") for mutant in found)
