"""The parts of random testing: names of our own, the document of a target, requests as commands, texts that are JSON or none."""

import asyncio
import dataclasses
import json
import os
import subprocess
import sys
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from continuity_conformance.checks import contract as random_checks
from continuity_conformance.core.budget import Budget
from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.core.text import visible
from continuity_conformance.fuzz.explore import explore
from continuity_conformance.fuzz.findings import Concern, Finding, SmallestFindings, operation_label
from continuity_conformance.fuzz.generated.boundary_values import boundary_fields, non_numbers
from continuity_conformance.fuzz.generated.campaign import Campaign
from continuity_conformance.fuzz.generated.document import model_fields, request_fields, target_document
from continuity_conformance.fuzz.generated.session_list import check_session_list
from continuity_conformance.fuzz.names import RunNames
from continuity_conformance.fuzz.property.id_properties import IdProperties
from continuity_conformance.fuzz.property.malformed_bodies import is_object
from continuity_conformance.http.curl import curl
from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.results.evidence import as_evidence
from continuity_conformance.results.redaction import Redactor
from continuity_conformance.run.calibrate import assumed
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.interventions import made_step
from continuity_conformance.target.profile import Profile

NAMES = RunNames("continuity-1-", salt_openings=False)
REDACTOR = Redactor(("key-of-alice",))


def target(**profile):
    found = assumed(Profile("target", **profile))
    return dataclasses.replace(found, offers=profile.get("offers") or frozenset())


def command(request):
    """As a report has it, which reads the exchange from a file."""
    exchange = Exchange(made_step("request", {}), "1", "request", "alice", request, Answer(200), at=0.0)
    return curl(visible(json.loads(json.dumps(as_evidence(exchange, REDACTOR)))))


def sent_by(command, folder):
    """What a shell gives to curl: its words, and what comes through the pipe."""
    (folder / "curl").write_text('#!/bin/sh\nprintf "%s\\0" "$@"\ncase "$*" in *@-*) cat;; esac\n')
    (folder / "curl").chmod(0o755)
    environ = {"PATH": f"{folder}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "KEY": "key-Of-Alice"}
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True, env=environ)
    *words, piped = done.stdout.split(b"\0")
    return words, piped


class TestNames:
    def test_a_generated_name_gets_our_prefix(self):
        assert NAMES.prefixed("sess_1") == "continuity-1-sess_1"

    @pytest.mark.parametrize("length", [1, 13, 243, 244, 255, 256, 257, 300])
    def test_a_long_name_stays_on_its_side_of_the_bound(self, length):
        for named in (NAMES.prefixed("n" * length), NAMES.unique("n" * length)):
            assert (len(named) > 256) == (length > 256)
            assert named.startswith("continuity-1-"[:length])

    @pytest.mark.parametrize("value", [None, "", "  ", 7, [], {}])
    def test_what_is_no_name_is_left_as_it_is(self, value):
        assert NAMES.prefixed(value) == value
        assert NAMES.unique(value) == value

    def test_slugs_responses_and_sessions_are_renamed_wherever_they_stand(self):
        names = RunNames("continuity-1-", salt_openings=False)
        body = names.body({"conversation": {"id": "a"}, "previous_response_id": "b", "input": "c"})

        assert body == {
            "conversation": {"id": "continuity-1-0-a"},
            "previous_response_id": "continuity-1-b",
            "input": "c",
        }
        assert names.path_parameters({"session_id": "a", "other": "b"}) == {
            "session_id": "continuity-1-a",
            "other": "b",
        }
        assert names.headers("X-Id", {"x-id": "a", "Other": "b"}) == {"x-id": "continuity-1-1-a", "Other": "b"}

    def test_each_generated_turn_has_a_session_and_a_slug_of_its_own(self):
        assert NAMES.headers("X-Id", {"X-Id": "a"}) != NAMES.headers("X-Id", {"X-Id": "a"})
        assert NAMES.body({"conversation": "a"}) != NAMES.body({"conversation": "a"})

    def test_no_two_requests_have_one_idempotency_key(self):
        keys = [NAMES.headers("X-Id", {"Idempotency-Key": "k"})["Idempotency-Key"] for _ in range(3)]

        assert len(set(keys)) == 3

    def test_on_a_target_that_has_lived_openings_are_salted_and_names_are_new(self):
        target = SimpleNamespace(profile=SimpleNamespace(ids=None))
        context = SimpleNamespace(server=SimpleNamespace(may_hold_sessions=True), target=target)
        first, second = RunNames.of(context, 1), RunNames.of(context, 1)
        body = first.body({"messages": [{"role": "user", "content": "Hello"}]})

        assert first.prefix != second.prefix
        assert body["messages"][0]["content"] == f"{first.prefix}Hello"


class TestDocument:
    def test_controls_are_left_alone(self):
        assert not [path for path in target_document(target())["paths"] if "conformance" in path]

    def test_what_is_not_offered_is_not_asked_for(self):
        always = {"/v1/models", "/v1/capabilities", "/health"}

        assert set(target_document(target())["paths"]) == always
        for offer, path in (("chat", "/v1/chat/completions"), ("responses", "/v1/responses")):
            assert set(target_document(target(offers=frozenset({offer})))["paths"]) == {*always, path}

    def test_headers_of_what_is_not_offered_are_not_sent(self):
        def parameters(path, **profile):
            operation = target_document(target(**profile))["paths"][path]["post"]
            return [parameter["$ref"].rpartition("/")[2] for parameter in operation["parameters"]]

        both = frozenset({"chat", "responses", "idempotency"})

        assert parameters("/v1/responses", offers=both) == ["Session", "IdempotencyKey"]
        assert parameters("/v1/responses", offers=frozenset({"responses"})) == []
        assert parameters("/v1/chat/completions", offers=frozenset({"chat"})) == ["Session"]
        assert parameters("/v1/chat/completions", offers=both, body="session_id") == ["IdempotencyKey"]

    def test_fields_of_what_is_not_offered_are_not_sent(self):
        document = target_document(target(offers=frozenset({"responses"}), slugs="none"))
        media = document["paths"]["/v1/responses"]["post"]["requestBody"]["content"]["application/json"]
        sent = {field for example in media["examples"].values() for field in example["value"]}

        assert not {"stream", "conversation"} & sent
        assert (
            not {"stream", "conversation"} & document["components"]["schemas"]["ResponseRequest"]["properties"].keys()
        )

    def test_sessions_that_are_elsewhere_or_in_another_form_are_not_asked_for(self):
        offers = frozenset({"sessions"})

        assert "/v1/sessions/{session_id}" in target_document(target(offers=offers))["paths"]
        for own in ({"sessions": "/api/sessions"}, {"session_field": "session"}):
            assert not [path for path in target_document(target(offers=offers, **own))["paths"] if "sessions" in path]

    def test_the_continuity_header_has_the_name_that_it_has_at_the_target(self):
        document = target_document(target(header="X-My-Session"))

        assert document["components"]["parameters"]["Session"]["name"] == "X-My-Session"
        assert "X-Hermes" not in str(document)

    def test_fields_that_only_the_model_reads(self):
        assert {"temperature", "max_tokens"} <= model_fields("ChatRequest")
        assert not {"messages", "stream", "tools", "model"} & model_fields("ChatRequest")


class TestBounds:
    def test_values_on_bounds_come_from_the_document(self):
        tried = list(boundary_fields(request_fields("ChatRequest")))

        assert ("n", 1.0) in tried
        assert ("stop", ["a"] * 4) in tried
        assert ("metadata", {}) in tried
        assert ("metadata", {"right": "a", "wrong": 7}) in tried
        assert ("metadata", {"right": "a", "wrong": "a" * 513}) in tried

    def test_another_bound_makes_another_value(self):
        bounded = {"type": "object", "additionalProperties": {"type": ["integer", "string"], "maxLength": 2}}

        assert list(boundary_fields({"a": bounded})) == [("a", {}), ("a", {"right": "a", "wrong": "aaa"})]
        assert list(non_numbers({"a": {"type": "integer"}, "b": {"type": "string"}})) == [("a", "\xb2")]


BEGUN = ["$id", "another's", "$other", *(f"{number} of others" for number in range(150)), "$newest", "newer than ours"]
NEWEST_FIRST = BEGUN[::-1]


def page_of(listed, after, limit):
    older = listed[listed.index(after) + 1 :]
    return older[:limit], len(older) > limit


def listing(listed=NEWEST_FIRST, page=page_of):
    """What is said of a target that has begun these sessions, lists them like this, and gives such pages."""

    async def do(verb, expect, **params):
        query = dict(parse_qsl(urlsplit(params.get("path", "")).query))
        ids, more = page(listed, query["after"], int(query["limit"])) if query else ([], False)
        body = {"object": "list", "data": [{"id": each} for each in ids], "has_more": more}
        return SimpleNamespace(step=made_step(verb, params, expect), answer=Answer(200, body=body))

    dialogue = SimpleNamespace(do=do, variables=SimpleNamespace(text=lambda name, _: name))
    return check_session_list(dialogue, "$id", "$other")


class TestListing:
    def test_the_newest_first_in_pages_whatever_others_begin_in_between(self):
        asyncio.run(listing())

    def test_the_oldest_first(self):
        with pytest.raises(Unmet):
            asyncio.run(listing(BEGUN))

    @pytest.mark.parametrize(
        "page",
        [
            lambda listed, after, limit: page_of(listed, after, limit + 1),
            lambda listed, after, limit: (page_of(listed, after, limit)[0], False),
            lambda listed, _, limit: (listed[:limit], True),
            lambda listed, after, limit: page_of(["", *listed], after, limit) if limit == 1 else ([], True),
            lambda listed, after, limit: (page_of(listed, after, limit)[0][::-1], True),
            lambda listed, after, limit: ([after, *page_of(listed, after, limit - 1)[0]], True),
        ],
        ids=["longer", "ends early", "always the first", "empty", "turned round", "with the one before"],
    )
    def test_pages_that_are_none(self, page):
        with pytest.raises(Unmet):
            asyncio.run(listing(page=page))


class TestCommands:
    def test_a_key_is_taken_from_the_environment(self):
        request = Request("GET", "http://h/p", (("Authorization", "Bearer key-of-alice"),))

        assert command(request) == 'curl -i -X GET -H "Authorization: Bearer $KEY" -- http://h/p'

    @pytest.mark.parametrize(
        "said", ["Bearer {key}x", "Bearer x{key}", "Bearer {cut}", "Bearer {swapped}", "{key},{key}"]
    )
    def test_what_is_almost_a_key_is_not_written_out_either(self, said, tmp_path):
        forms = {"key": "key-Of-Alice", "cut": "key-Of-Alic", "swapped": "KEY-oF-aLICE"}
        value = said.format(**forms)
        made = command(Request("GET", "http://h/p", (("Authorization", value),), key_as=said))

        assert "key-Of" not in made
        assert f"Authorization: {value}".encode() in sent_by(made, tmp_path)[0]

    @pytest.mark.parametrize(
        "content",
        [
            b'{"a": "it\'s"}',
            b'{"a": "\xff\\"}',
            '{"a": "é \u2028 \U0001f600 %41"}'.encode(),
            b'{"a":\n1}',
            b"\x01%01",
            b'{"a": ',
        ],
    )
    def test_the_bytes_of_a_body_come_out_of_a_shell_as_they_were(self, content, tmp_path):
        words, piped = sent_by(command(Request("POST", "http://h/p", body=content)), tmp_path)
        raw = words[words.index(b"--data-raw") + 1] if b"--data-raw" in words else None

        assert (piped if raw is None else raw) == content
        assert b"Content-Type:" in words

    def test_a_body_that_is_too_long_is_made_by_a_program(self, tmp_path):
        request = Request("POST", "http://h/p", body=b"[" + b"a" * 9000, made_of=(("[", 1), ("a", 9000)))

        assert sent_by(command(request), tmp_path)[1] == request.data
        assert command(dataclasses.replace(request, made_of=())) is None


class TestFindings:
    def test_the_smallest_request_is_kept(self):
        findings = SmallestFindings()
        for size in (30, 10, 20):
            request = Request("POST", "http://h/p", body=b"a" * size)
            findings.add([Finding("alive", "POST /p", "no 5xx", "500", request, Answer(500))])

        assert [len(finding.request.data) for finding in findings.of("alive")] == [10]
        assert findings.of("valid") == []

    def test_an_operation_is_named_without_its_ids(self):
        request = Request("GET", "http://h/v1/sessions/a%2Fb/messages?limit=3")

        assert operation_label(request) == "GET /v1/sessions/{id}/messages"

    def test_the_arguments_that_try_the_same_again(self):
        assert Budget().arguments == " --seed 1"
        assert Budget(examples=50, seed=7).arguments == " --seed 7 --examples 50"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"{}", True),
        (b'\xef\xbb\xbf{"a": 1}', True),
        (b"[]", False),
        (b'{"a": NaN}', True),
        (b'{"a": "\xff"}', False),
        (b'{"a": "\\ud800"}', True),
        (b"[" * 100_000, False),
    ],
)
def test_what_a_parser_may_take_for_a_json_object_in_utf8(raw, expected):
    assert is_object(raw) == expected


def test_hypothesis_keeps_its_files_in_the_cache_of_the_user(tmp_path):
    """Not in the working folder, and not under a name in the temporary folder that somebody else can take first."""
    folders = {name: tmp_path / name for name in ("cache", "temporary", "working")}
    for folder in folders.values():
        folder.mkdir()
    environ = os.environ | {"XDG_CACHE_HOME": str(folders["cache"]), "TMPDIR": str(folders["temporary"])}
    program = """
from hypothesis import strategies
from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.explore import explore
explore(strategies.text(), lambda text: [], Budget())
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=folders["working"], env=environ)

    assert [path.name for path in folders["cache"].iterdir()] == ["session-continuity"]
    assert [*folders["temporary"].iterdir(), *folders["working"].iterdir()] == []


def test_a_slow_target_is_tried_with_fewer_examples_unless_somebody_asks_for_a_number():
    lowered = Budget().capped(2)

    assert (lowered.examples, lowered.lowered) == (2, True)
    assert Budget(50).capped(2) == Budget(50)
    assert Budget().capped(0) == Budget().capped(100) == Budget()


def campaign_of(monkeypatch, *findings):
    """What CONTRACT-04 says after a campaign with these findings, in which one operation never succeeded."""
    played = Campaign(wanted=["GET /v1/responses/{response_id}"])
    played.findings.add(findings)

    async def campaign(_):
        return played

    monkeypatch.setattr(random_checks, "shared_state", lambda _: SimpleNamespace(campaign=campaign))
    return random_checks._campaign(SimpleNamespace(context=None, exchanges=[]), Concern.ALIVE)


def test_of_an_operation_that_never_succeeded_nothing_is_shown(monkeypatch):
    with pytest.raises(Untested, match="no success of GET /v1/responses"):
        asyncio.run(campaign_of(monkeypatch))


def test_what_was_found_counts_though_an_operation_never_succeeded(monkeypatch):
    request = Request("POST", "http://x/v1/chat/completions")
    finding = Finding(Concern.ALIVE, "POST /v1/chat/completions", "no 5xx", "500", request, Answer(500))

    with pytest.raises(Unmet, match="500"):
        asyncio.run(campaign_of(monkeypatch, finding))


def openings(answer):
    """What is found on a target that answers every opening like this."""
    client = SimpleNamespace(
        target=target(), at_once=2, request=lambda *_, **__: Request("POST", "http://x/y"), send=lambda _: answer
    )
    return IdProperties(client, NAMES, Budget(examples=1)).derived_ids()


def test_a_refused_opening_derives_nothing():
    with pytest.raises(Untested, match="no generated opening is accepted"):
        openings(Answer(400))


def test_an_accepted_opening_with_another_id_is_a_finding():
    assert openings(Answer(200, headers=(("X-Hermes-Session-Id", "another"),)))


def test_constants_of_the_users_own_modules_are_never_tried():
    """Hypothesis would send a key that stands in the source code of the working folder."""
    explore(st.text(), lambda _text: (), Budget(examples=200, seed=1))

    assert not list(providers._get_local_constants().strings)
