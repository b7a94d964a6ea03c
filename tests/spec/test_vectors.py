"""The vectors are right, whatever derivation.py says: their ids are computed here from the files alone."""

import hashlib
import json
import re
import unicodedata
from importlib import resources

import pytest
import rfc8785
from jsonschema import Draft202012Validator

from continuity_spec.derivation import defines, derive, opening, salted

FOLDER = resources.files("continuity_spec")
SCHEMA = json.loads(FOLDER.joinpath("schemas/vectors.schema.json").read_text(encoding="utf-8"))


def vectors(version):
    return json.loads(FOLDER.joinpath(f"vectors/derivation-v{version}.json").read_text(encoding="ascii"))


def by_description(version):
    return {vector["description"]: vector for vector in vectors(version)}


EVERY = [pytest.param(v, vector, id=f"v{v}: {vector['description']}") for v in (1, 2) for vector in vectors(v)]


TEXTS = {"text", "input_text", "output_text"}


def flat(messages, roles):
    """The texts of the messages with these roles, one a message."""
    contents = [message["content"] for message in messages if message["role"] in roles]
    lists = [[{"type": "text", "text": it}] if isinstance(it, str) else it for it in contents]
    return ["\n".join(part["text"] for part in parts if part["type"] in TEXTS and part["text"]) for parts in lists]


def seed_v1(system, first_user):
    return b"\n".join([system.encode("utf-8"), first_user.encode("utf-8")])


def seed_v2(system, first_user):
    return rfc8785.dumps([system, first_user])


SEEDS = {1: ("api-", 16, seed_v1), 2: ("api2-", 32, seed_v2)}


@pytest.mark.parametrize(("version", "vector"), EVERY)
def test_the_id_is_the_hash_of_the_opening(version, vector):
    messages = vector["messages"]
    first = [message["role"] for message in messages].index("user")
    prompts = {1: flat(messages, {"system"}), 2: flat(messages[:first], {"system", "developer"})}
    system, first_user = "\n".join(prompts[version]), flat(messages, {"user"})[0]
    prefix, digits, seed = SEEDS[version]

    assert vector["id"] == prefix + hashlib.sha256(seed(system, first_user)).hexdigest()[:digits]


@pytest.mark.parametrize(("version", "vector"), EVERY)
def test_the_module_derives_the_same_id(version, vector):
    assert derive(f"content-v{version}", vector["messages"]) == vector["id"]


@pytest.mark.parametrize(("version", "vector"), EVERY)
def test_the_derivation_defines_the_id_of_every_vector(version, vector):
    assert defines(f"content-v{version}", vector["messages"])


@pytest.mark.parametrize(("version", "count"), [(1, 87), (2, 53)])
def test_the_number_of_vectors_is_the_one_in_the_readme(version, count):
    readme = FOLDER.joinpath("vectors/README.md").read_text(encoding="utf-8")

    assert len(vectors(version)) == count
    assert f"| `derivation-v{version}.json` | `derivation: content-v{version}` | {count} |" in readme


@pytest.mark.parametrize("version", [1, 2])
class TestForm:
    def test_a_file_validates_against_its_schema(self, version):
        Draft202012Validator.check_schema(SCHEMA)

        assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(vectors(version))] == []

    def test_the_ids_are_those_of_the_version(self, version):
        prefix, digits, _ = SEEDS[version]

        assert all(re.fullmatch(f"{prefix}[0-9a-f]{{{digits}}}", vector["id"]) for vector in vectors(version))

    def test_descriptions_are_unique_and_short(self, version):
        descriptions = [vector["description"] for vector in vectors(version)]

        assert len(set(descriptions)) == len(descriptions)
        assert max(len(description) for description in descriptions) < 70

    def test_descriptions_say_neither_should_nor_test_that(self, version):
        words = " ".join(vector["description"] for vector in vectors(version)).lower()

        assert "should" not in words
        assert "test that" not in words

    def test_one_vector_stands_on_one_line(self, version):
        lines = FOLDER.joinpath(f"vectors/derivation-v{version}.json").read_text(encoding="ascii").splitlines()

        assert len(lines) == len(vectors(version)) + 2

    def test_every_text_is_one_that_json_can_carry(self, version):
        texts = "".join("".join(opening(f"content-v{version}", vector["messages"])) for vector in vectors(version))

        assert "\0" not in texts
        assert texts.encode().decode() == texts

    def test_the_last_user_message_is_never_blank(self, version):
        """Real servers refuse a blank turn; what is blank in a vector is the first message of a longer conversation."""
        last = [[m for m in vector["messages"] if m["role"] == "user"][-1]["content"] for vector in vectors(version)]

        assert all(content if isinstance(content, list) else content.strip() for content in last)

    def test_salted_vectors_have_ids_that_no_vector_has(self, version):
        ids = {vector["id"] for vector in vectors(version)}
        fresh = {derive(f"content-v{version}", salted(vector["messages"], "5a17")) for vector in vectors(version)}

        assert not ids & fresh

    def test_salting_keeps_apart_what_was_apart(self, version):
        """But for the pair that collides in v1: the salt moves with the first user message and parts them."""
        unsalted = {vector["id"] for vector in vectors(version)}
        fresh = {derive(f"content-v{version}", salted(vector["messages"], "5a17")) for vector in vectors(version)}

        assert len(fresh) >= len(unsalted)


class TestCoverage:
    @pytest.mark.parametrize("version", [1, 2])
    def test_nfc_and_nfd_of_one_text_have_two_ids(self, version):
        nfc, nfd = by_description(version)["NFC is kept"], by_description(version)["NFD is kept"]

        assert unicodedata.normalize("NFD", nfc["messages"][0]["content"]) == nfd["messages"][0]["content"]
        assert nfc["id"] != nfd["id"]

    @pytest.mark.parametrize(("version", "ids"), [(1, 1), (2, 2)])
    def test_the_border_pair_collides_in_v1_alone(self, version, ids):
        known = by_description(version)
        pair = [known[f"border of the two texts, line feed on the {side}"] for side in ("right", "left")]

        assert [opening(f"content-v{version}", vector["messages"]) for vector in pair] == [("a", "b\nc"), ("a\nb", "c")]
        assert len({vector["id"] for vector in pair}) == ids

    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.parametrize(
        "character",
        [
            "\U0001f600",
            "\u2028",
            "\u0001",
            "\u007f",
            "\u200b",
            "\ufeff",
            "\u05e9",
            "\r\n",
            '"',
            "\\",
            "\u00e9",
            "e\u0301",
        ],
    )
    def test_the_difficult_characters_occur(self, version, character):
        assert any(
            character in "".join(opening(f"content-v{version}", vector["messages"])) for vector in vectors(version)
        )

    @pytest.mark.parametrize("version", [1, 2])
    def test_a_text_of_20000_characters_occurs(self, version):
        assert max(len(opening(f"content-v{version}", vector["messages"])[1]) for vector in vectors(version)) == 20_000

    @pytest.mark.parametrize("version", [1, 2])
    def test_equal_openings_have_equal_ids_and_other_openings_other_ids(self, version):
        """v1 has its collisions: all that differ in nothing but the border of the two texts."""
        ids = {vector["id"] for vector in vectors(version)}
        openings = {opening(f"content-v{version}", vector["messages"]) for vector in vectors(version)}
        seeds = {SEEDS[version][2](*texts) for texts in openings}

        assert len(ids) == len(seeds)
