"""Whatever is in a profile or a YAML file, reading it ends quickly, in data or in an error of one line. Never in a traceback, and never with all memory."""

import json
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import called

from continuity_conformance.core.errors import UsageError
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.profile_file import load_profile
from continuity_spec import Document, SpecError
from continuity_spec.load.yaml_document import parse_yaml

WHOLE = """\
name: my-gateway 2.1
header: [X-My-Session, X-Session-Id]
model: fast
principals: {alice: $PATH, bob: {key: $HOME, headers: {X-User: bob}}}
options: {compaction: in-place, turns: reject}
offers: [responses, streaming, cors]
limits: {parallel: 8, at_once: 10, turn_seconds: 20}
process: {start: [my-gateway, --port, "{port}"], ready: /health, env: {A: "{folder}"}, files: {a.yaml: "b: {probe}"}}
controls: {evict: {http: "POST /test/evict/{response}"}, compress: {turns: 4, characters: 3000}, token: t}
sessions: {path: /api/sessions, field: session, fields: {parent_id: parent}}
tools: {write: {name: write, arguments: '{"path": "{name}", "content": "{content}"}'}}
legacy: "{folder}/old.db"
ids: conv_{hex:24}
auth: "X-Api-Key: {key}"
summary: Summarise
"""
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "an alias bomb": (BOMB, "the alias"),
    "an alias of itself": ("a: &a [*a]\n", "the alias"),
    "a merge key of itself": ("a: &a {<<: *a}\n", "the alias"),
    "100,000 brackets": ("[" * 100_000, "nested more than 50 levels deep"),
    "100,000 braces": ("{a: " * 100_000, "nested more than 50 levels deep"),
    "100,000 nested keys": ("\n".join(" " * depth + "a:" for depth in range(2_000)), "nested more than 50 levels deep"),
    "a number of 5,000 digits": (f"name: {'9' * 5_000}", "too many digits"),
    "a tag of Python": ("!!python/object/apply:os.system [id]", ""),
    "bytes that are no text": ("\x00\x01", ""),
    "a second document": ("a: 1\n---\nb: 2\n", "a second document"),
    "an endless key": (f"? {'x' * 100_000}\n: 1\n", ""),
    "nothing": ("", ""),
}
TOKENS = [
    "[",
    "]",
    "{",
    "}",
    ":",
    " ",
    "\n",
    "- ",
    "&a",
    "*a",
    "!!",
    "|",
    ">",
    "#",
    '"',
    "'",
    "%",
    "@",
    "~",
    "null",
    "1e999",
    "-",
    "$",
    "${X}",
    "\t",
    "\ufeff",
]
KEYS = [line.partition(":")[0] for line in WHOLE.splitlines()]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["{port}", "$HOME", "$", "{name}", "uuid"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from(["start", "env", "http", "key", "path"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
QUICKLY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def read_profile(content: bytes) -> Profile | str:
    """The profile, or the loader's own words about a file that it refuses."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "profile.yaml")
        file.write_bytes(content)
        try:
            return load_profile(file)
        except (SpecError, UsageError) as error:
            return str(error)


def read_document(text: str) -> Document | str:
    try:
        return parse_yaml(text, "fuzz.yaml")
    except SpecError as error:
        return str(error)


def one_line(read: object) -> bool:
    """Whether a refusal is told in one line. What was accepted needs no words."""
    return not isinstance(read, str) or (bool(read) and "\n" not in read)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_clear_line(name, tmp_path):
    content, says = HOSTILE[name]
    (tmp_path / "hostile.yaml").write_text(content, encoding="utf-8")
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()

    done = called("check", "--profile", str(tmp_path / "hostile.yaml"))

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert time.process_time() - began < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


def test_the_whole_profile_is_accepted():
    """So that changes of it go deep into the loader."""
    assert isinstance(read_profile(WHOLE.encode()), Profile)


@QUICKLY
@given(st.binary(max_size=200))
def test_bytes_are_a_profile_or_an_error_of_the_loader(content):
    assert one_line(read_profile(content))


@QUICKLY
@given(st.lists(st.sampled_from([*TOKENS, *KEYS]), max_size=40).map("".join))
def test_yaml_like_text_is_a_document_or_an_error_of_the_loader(text):
    assert one_line(read_document(text))


@QUICKLY
@given(st.data())
def test_a_profile_with_something_changed_is_a_profile_or_an_error_of_the_loader(data):
    text = list(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 5))] = data.draw(st.sampled_from(TOKENS) | st.text(max_size=3))

    assert one_line(read_profile("".join(text).encode("utf-8", "surrogatepass")))


@QUICKLY
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))
def test_fields_of_any_type_are_a_profile_or_an_error_of_the_loader(fields):
    assert one_line(read_profile(json.dumps(fields).encode()))  # JSON is YAML
