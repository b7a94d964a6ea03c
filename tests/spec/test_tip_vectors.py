"""The vectors of tip resolution are right: their tips are found here from the file alone, in two ways."""

import json
from importlib import resources

import pytest
from jsonschema import Draft202012Validator

FOLDER = resources.files("continuity_spec")
SCHEMA = json.loads(FOLDER.joinpath("schemas/tip-resolution.schema.json").read_text(encoding="utf-8"))
TEXT = FOLDER.joinpath("vectors/tip-resolution.json").read_text(encoding="ascii")
VECTORS = json.loads(TEXT)
EVERY = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["description"])


def by_next(vector):
    """The child of each session, as its `next` names it."""
    known = {session["id"] for session in vector["sessions"]}
    return {session["id"]: [session["next"]] if session["next"] in known else [] for session in vector["sessions"]}


def by_parent(vector):
    """The children of each session, as they name their parent."""
    children = {session["id"]: [] for session in vector["sessions"]}
    for session in vector["sessions"]:
        if session["kind"] == "compression" and session["parent"] in children:
            children[session["parent"]].append(session["id"])
    return children


def walk(children, start):
    """Follow only children until there is none, or one that was visited."""
    visited = [start]
    while fresh := [child for child in children[visited[-1]] if child not in visited]:
        visited.append(fresh[0])
    return visited


def two_children(vector):
    return any(len(children) > 1 for children in by_parent(vector).values())


@EVERY
def test_the_tip_is_the_end_of_the_walk_along_next(vector):
    assert walk(by_next(vector), vector["from"])[-1] == vector["tip"]


@pytest.mark.parametrize(
    "vector", [vector for vector in VECTORS if not two_children(vector)], ids=lambda vector: vector["description"]
)
def test_a_store_that_knows_only_parents_finds_the_same_tip(vector):
    assert walk(by_parent(vector), vector["from"])[-1] == vector["tip"]


@EVERY
def test_a_fork_or_branch_is_nobodys_next(vector):
    compressed = {session["id"] for session in vector["sessions"] if session["kind"] in {"fork", "branch"}}

    assert not compressed & {session["next"] for session in vector["sessions"]}


@EVERY
def test_ids_are_unique_and_from_and_tip_exist(vector):
    ids = [session["id"] for session in vector["sessions"]]

    assert len(set(ids)) == len(ids)
    assert {vector["from"], vector["tip"]} <= set(ids)


def test_the_file_validates_against_its_schema():
    Draft202012Validator.check_schema(SCHEMA)

    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(VECTORS)] == []


def test_descriptions_are_unique():
    descriptions = [vector["description"] for vector in VECTORS]

    assert len(set(descriptions)) == len(descriptions)


def test_one_vector_stands_on_one_line():
    assert len(TEXT.splitlines()) == len(VECTORS) + 2


def test_the_number_of_vectors_is_the_one_in_the_readme():
    readme = FOLDER.joinpath("vectors/README.md").read_text(encoding="utf-8")

    assert f"| `tip-resolution.json` | `compaction: rotate` | {len(VECTORS)} |" in readme


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda vector: vector["from"], id="the id that was sent"),
        pytest.param(lambda vector: walk(by_next(vector), vector["from"])[:2][-1], id="one hop"),
        pytest.param(lambda vector: vector["sessions"][-1]["id"], id="the newest session"),
        pytest.param(lambda vector: max(session["id"] for session in vector["sessions"]), id="the greatest id"),
        pytest.param(
            lambda vector: [session["id"] for session in vector["sessions"] if session["next"] is None][-1:],
            id="any session without next",
        ),
    ],
)
def test_a_wrong_rule_fails_several_vectors(wrong):
    assert len([vector for vector in VECTORS if wrong(vector) != vector["tip"]]) >= 5
