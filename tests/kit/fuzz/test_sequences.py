"""Sequences in any order: the same from the same seed, scenarios of our own, and short where one fails."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from continuity_conformance.core.failure import Unmet
from continuity_conformance.fuzz.sequence.counterexample import Counterexample, parsed_steps, read_back
from continuity_conformance.fuzz.sequence.generator import LINKS, SequenceGenerator, SequenceScope, generate
from continuity_conformance.fuzz.sequence.search import SearchResult, scope_of, search
from continuity_conformance.results.redaction import redactor_of
from continuity_conformance.run.scheduler import Scheduler
from continuity_conformance.scenario.context import Context
from continuity_conformance.target.profile import DEFAULT_OPTIONS
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import Place
from continuity_spec.lint import lint_files
from continuity_spec.openapi.document import load_openapi

EVERYTHING = frozenset(
    {
        "chat",
        "responses",
        "stored-responses",
        "streaming",
        "sessions",
        "idempotency",
        "lose",
        "evict",
        "compress",
        "restart",
    }
)
BOTH = ("alice", "bob")


def test_a_seed_always_draws_the_same_sequences():
    scope = SequenceScope(DEFAULT_OPTIONS, EVERYTHING, BOTH)

    assert [generate(scope, 7, number) for number in range(5)] == [generate(scope, 7, number) for number in range(5)]
    assert generate(scope, 7, 0) != generate(scope, 8, 0)


def test_a_sequence_is_played_as_it_is_saved():
    scope = SequenceScope(DEFAULT_OPTIONS, EVERYTHING, BOTH)
    drawn = [generate(scope, 1, number).steps for number in range(60)]
    nowhere = Place("", 1, 1)

    saved = [[replace(step, place=nowhere) for step in parsed_steps(steps)] for steps in drawn]
    played = [[replace(step, place=nowhere) for step in read_back(steps)] for steps in drawn]

    assert played == saved


def test_every_rule_is_drawn():
    scope = SequenceScope(DEFAULT_OPTIONS, EVERYTHING, BOTH)
    drawn = [step for number in range(60) for step in generate(scope, 1, number).steps]
    verbs = {word for step in drawn for word in (step if isinstance(step, dict) else {step: 0})}

    assert verbs == {"chat", "respond", "get", "delete", "evict", "restart", "expect"}


@pytest.mark.parametrize(
    "options",
    [{}, {"echo": "alias"}, {"compaction": "in-place"}, {"derivation": "none"}, {"tells": "nothing"}],
    ids=lambda options: " ".join(options.values()) or "default",
)
def test_every_sequence_is_a_requirement_without_complaints(options, tmp_path):
    scope = SequenceScope({**DEFAULT_OPTIONS, **options}, EVERYTHING, BOTH)
    unmet = Unmet("red", "blue", expectation="sees", step="chat", number="1")
    drawn = [generate(scope, 1, number) for number in range(20)]
    files = [Counterexample(one.steps, unmet).save(tmp_path, scope.options) for one in drawn]

    assert [lint_files([file]) for file in files] == [[] for _ in files]


@pytest.mark.parametrize(
    ("left_out", "verb"), [("chat", "chat"), ("responses", "respond"), ("stored-responses", "get")]
)
def test_what_is_not_offered_is_not_drawn(left_out, verb):
    scope = SequenceScope(DEFAULT_OPTIONS, EVERYTHING - {left_out, "sessions"}, BOTH)
    drawn = [step for number in range(20) for step in generate(scope, 1, number).steps]

    assert drawn
    assert not [step for step in drawn if verb in step]


@pytest.mark.parametrize("reading", ["own_branches", "one_history"])
def test_each_reading_of_a_target_draws_requirements_without_complaints(reading, tmp_path):
    scope = SequenceScope(DEFAULT_OPTIONS, EVERYTHING, BOTH, **{reading: False})
    unmet = Unmet("red", "blue", expectation="sees", step="chat", number="1")
    drawn = [generate(scope, 1, number) for number in range(20)]
    files = [Counterexample(one.steps, unmet).save(tmp_path, scope.options) for one in drawn]

    assert [lint_files([file]) for file in files] == [[] for _ in files]


def test_every_link_of_the_openapi_document_is_a_rule():
    document = load_openapi()
    links = {
        name
        for item in document["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict)
        for answer in operation["responses"].values()
        for name in answer.get("links", {})
    }

    assert links - {"ListSessionMessages"} == set(LINKS), (
        "what the model saw tells the history better than a list of it"
    )
    assert all(callable(getattr(SequenceGenerator, rule)) for rule in LINKS.values())


@asynccontextmanager
async def context_of(defect: str) -> AsyncIterator[Context]:
    profile = reference_profile((f"--defect={defect}",))
    scheduler = Scheduler(resolve(None, profile), redactor_of(profile))
    try:
        await scheduler.open()
        yield scheduler.context
    finally:
        await scheduler.close()


def test_what_is_found_is_made_short():
    async def searched() -> SearchResult:
        async with context_of("evicted-slug-misses-rotation") as context:
            return await search(context, scope_of(context, losses=True), examples=48, seed=1, shrinks=150)

    found = asyncio.run(searched()).counterexample

    assert found is not None
    first, *middle, last = [next(iter(step)) for step in found.steps]
    assert (first, sorted(middle), last) == ("respond", ["chat", "evict"], "respond"), "in either order"
