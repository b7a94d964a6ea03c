"""YAML becomes plain data with places, and what is not allowed is refused with its place."""

import pytest

from continuity_spec import NotYamlError, UnreadableFileError, read_yaml


def test_words_of_other_yaml_readers_stay_strings(write):
    path = write("{on: no, time: 1:30, day: 2026-01-31, yes: off, number: 010, true: 1.5, none: ~}")

    assert read_yaml(path).data == {
        "on": "no",
        "time": "1:30",
        "day": "2026-01-31",
        "yes": "off",
        "number": "010",
        "true": 1.5,
        "none": None,
    }


def test_a_duplicate_key_is_an_error(write):
    with pytest.raises(NotYamlError) as caught:
        read_yaml(write("- a: 1\n  b: 2\n  a: 3\n"))

    assert caught.value.where.endswith("slug.yaml:3:3")
    assert caught.value.what == 'duplicate key "a"'


@pytest.mark.parametrize(
    "text", ["a: [1, 2", "a: {b: ${x}}", "a: *nobody", 'a: "\x01"', "a: !!python/name:os.system x", "a\n---\nb"]
)
def test_what_is_not_yaml_is_refused_with_its_file(write, text):
    with pytest.raises(NotYamlError, match=r"slug\.yaml"):
        read_yaml(write(text))


NINE_TIMES_EACH = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        (f"a0: &a0 [x]\n{NINE_TIMES_EACH}", "2:10", 'the alias "*a0" is not allowed'),
        ("a: &a [*a]\n", "1:8", 'the alias "*a" is not allowed'),
        ("[" * 100_000, "1:51", "nested more than 50 levels deep"),
        ("{a: " * 100_000, "1:201", "nested more than 50 levels deep"),
        ("- " * 100_000, "1:101", "nested more than 50 levels deep"),
        ("a: " + "9" * 5_000, "1:4", "a number has too many digits"),
        ("a\n---\nb", "2:1", "a second document begins"),
    ],
    ids=["alias bomb", "recursive alias", "lists", "mappings", "block lists", "digits", "two documents"],
)
def test_a_hostile_file_is_refused_at_once(write, text, where, what):
    with pytest.raises(NotYamlError) as caught:
        read_yaml(write(text))

    assert caught.value.where.endswith(f"slug.yaml:{where}")
    assert caught.value.what == what


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        read_yaml(tmp_path / "nowhere.yaml")


def test_a_file_that_is_not_utf8_is_an_error(tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"a: \xe9\n")

    with pytest.raises(UnreadableFileError, match="byte 3 is not UTF-8"):
        read_yaml(path)
