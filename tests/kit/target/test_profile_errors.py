"""A mistake in a profile is reported with its line, before anything is started."""

import asyncio
from pathlib import Path

import pytest

from continuity_conformance.core.errors import UsageError
from continuity_conformance.results.redaction import redactor_of
from continuity_conformance.target.id_form import IdForm
from continuity_conformance.target.process import StartedProcess
from continuity_conformance.target.profile import DEFAULT_ORIGIN, Profile
from continuity_conformance.target.profile_file import load_profile
from continuity_spec.errors import SpecError

PROCESS = "process: {start: [server, '{port}']"


def read(text: str, folder: Path) -> Profile:
    path = folder / "my.yaml"
    path.write_text(f"name: it\n{text}\n", encoding="utf-8")
    return load_profile(path)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("ids: '{hexx:24}'", 2, "{hexx:24} is no placeholder of an id"),
        ("ids: conv_{hex:4}", 2, "two ids of this form could be equal by chance"),
        ("ids: 'a b{hex:24}'", 2, "has characters that ids may not contain"),
        ("ids: 'x{hex:300}'", 2, "longer than 256"),
        ("body_names: {conversation: none}", 2, "Write slugs: none"),
        ("body_names: {modell: m}", 2, 'Did you mean "model"'),
        ("body_fields: {}", 2, "body_fields"),
        ("principals: {alice: {header: {X-User: a}}}", 2, 'Did you mean "headers"'),
        ("principals: {alice: {headers: {'X User': a}}}", 2, "X User"),
        ("process: {start: [server, '{prot}']}", 2, 'Did you mean "port"'),
        ("process:\n  start: [server]\n  env: {URL: '{probee}'}", 4, 'Did you mean "probe"'),
        ('process:\n  start: [server]\n  files: {a.json: \'{"a": "{foldr}"}\'}', 4, 'Did you mean "folder"'),
        ("process: {start: [server], keyless: [server, '{dir}']}", 2, "{dir} is no placeholder"),
        ("process: {start: [server], keyless: {start: [server]}}", 2, "env"),
        ("process: {start: [server], single_user: [server, '{dir}']}", 2, "{dir} is no placeholder"),
        ("origin: anywhere", 2, "origin"),
        ("process: {start: [server], base: api}", 2, "api"),
        ("controls: {evict: {http: 'POST /evict/{responce}'}}", 2, 'Did you mean "response"'),
        ("tools: {write: {name: w, arguments: '{\"path\": {name}'}}", 2, "are not JSON"),
        ("tools: {write: {name: w, arguments: '\"{name}\"'}}", 2, "are not a JSON object"),
        ('tools: {read: {name: r, arguments: \'{"path": "{nam}"}\'}}', 2, 'Did you mean "name"'),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_to_do(text, line, words, tmp_path):
    with pytest.raises(SpecError) as error:
        read(text, tmp_path)

    assert f"my.yaml:{line}:" in str(error.value)
    assert words in str(error.value)


def test_a_variable_that_is_not_set_is_told_with_its_line(tmp_path):
    with pytest.raises(UsageError, match="NO_SUCH_VARIABLE is not set") as error:
        read("headers:\n  Cookie: sid=$NO_SUCH_VARIABLE", tmp_path)

    assert "my.yaml:3:" in str(error.value)


def test_a_variable_is_filled_in_inside_a_longer_text_and_hidden(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKEN", "secret-of-the-cookie")
    monkeypatch.setenv("AGENT", "agent-4711")
    profile = read(
        "headers: {Cookie: 'sid=$TOKEN; a=${TOKEN}2', X-Price: '$$5'}\nbody_fields: {agent: {id: $AGENT}, deep: [1, true]}",
        tmp_path,
    )

    assert dict(profile.headers) == {"Cookie": "sid=secret-of-the-cookie; a=secret-of-the-cookie2", "X-Price": "$5"}
    assert profile.turn_body({"model": "m"}) == {"agent": {"id": "agent-4711"}, "deep": [1, True], "model": "m"}
    assert redactor_of(profile).text("agent-4711 secret-of-the-cookie") == "*** ***"


def test_braces_of_other_formats_stay_as_they_are(tmp_path):
    profile = read(
        'process:\n  start: [sh, -c, \'echo ${HOME} | awk "{ print }"\']\n  files: {a.json: \'{"a": {"b": "{name}"}}\'}',
        tmp_path,
    )

    assert profile.process is not None
    assert profile.process.files == {"a.json": '{"a": {"b": "{name}"}}'}


def test_a_principal_is_a_key_or_headers_or_both(tmp_path):
    profile = read(
        "principals: {alice: {key: sk-of-alice, headers: {X-User: u-of-alice}}, bob: {headers: {X-User: bob}}}",
        tmp_path,
    )
    hides = redactor_of(profile)

    assert ("X-User", "u-of-alice") in profile.headers_of("alice")
    assert ("Authorization", "Bearer sk-of-alice") in profile.headers_of("alice")
    assert profile.headers_of("bob")[-1] == ("X-User", "bob")
    assert profile.everyone == {"alice", "bob"}
    assert hides.text("sk-of-alice, u-of-alice, bob") == "***, ***, bob"
    assert hides.headers([("X-User", "bob")]) == [["X-User", "***"]]


@pytest.mark.parametrize("single_user", [False, True])
@pytest.mark.parametrize(
    ("keyless", "environment"),
    [("[server]", {"MODE": "test"}), ("{start: [server], env: {MODE: open}}", {"MODE": "open"})],
    ids=["the variables without a key", "variables of its own"],
)
def test_a_server_without_keys_is_not_given_the_key(keyless, environment, single_user, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-of-alice-0123")
    profile = read(
        "principals: {alice: $MY_KEY}\nprocess:\n  start: [server]\n  isolated: true\n"
        f"  env: {{SERVER_KEYS: 'alice=$MY_KEY', MODE: test}}\n  {'single_user' if single_user else 'keyless'}: {keyless}",
        tmp_path,
    )
    normal = StartedProcess(profile, "http://probe")
    keyless_process = normal.without_keys(single_user=single_user)

    given = keyless_process._environment()
    for process in (normal, keyless_process):
        asyncio.run(process.stop())

    assert {name: value for name, value in given.items() if name in {"SERVER_KEYS", "MODE"}} == environment


def test_a_target_may_allow_every_site_on_purpose(tmp_path):
    profile = read("origin: '*'", tmp_path)

    assert (profile.any_origin, profile.origin) == (True, DEFAULT_ORIGIN)
    assert not read("origin: https://app.example", tmp_path).any_origin


@pytest.mark.parametrize("text", ["uuid", "conv_{hex:24}", "{letters:4}-{digits:12}", "thread-{uuid}"])
def test_ids_have_the_form_that_is_asked_for(text):
    form = IdForm.read(text)
    made = {form.id_of(str(number)) for number in range(50)}

    assert len(made) == 50
    assert all(map(form.fits, made))
    assert form.id_of("seed") == form.id_of("seed")
    assert not form.fits("continuity-0123456789ab-id")
