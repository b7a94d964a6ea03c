"""The requests that the kit ships are those that schemathesis generates for the document."""

import json

import pytest
from generated_requests import document_digest, generated, generators

from continuity_conformance.fuzz.generated.case import NO_BODY, GeneratedCase
from continuity_conformance.fuzz.generated.document import operations_of, whole_document
from continuity_conformance.fuzz.generated.shipped import REQUESTS

SHIPPED = json.loads(REQUESTS.read_text(encoding="utf-8"))
AGAIN = "run: python tools/generated_requests.py"


def test_the_requests_are_made_from_the_present_document():
    assert SHIPPED["about"]["document"] == document_digest(), AGAIN


def test_the_same_versions_generate_the_same_requests():
    made_with = {name: SHIPPED["about"][name] for name in generators()}
    if made_with != generators():
        pytest.xfail(f"made with {made_with}: another version generates other requests, which are as good")

    assert generated() == SHIPPED["requests"], AGAIN


def test_the_document_agrees_which_bodies_are_wrong():
    operations = operations_of(whole_document())
    cases = [case for case in map(GeneratedCase.from_json, SHIPPED["requests"]) if isinstance(case.body, dict)]
    documented = [case for case in cases if operations[case.operation].method == case.method]

    assert len(documented) > 100
    assert [case for case in documented if operations[case.operation].takes(case.body) == ("body" in case.wrong)] == []


def test_a_request_survives_being_stored():
    cases = [GeneratedCase.from_json(each) for each in SHIPPED["requests"]]

    assert [case.as_json() for case in cases] == SHIPPED["requests"]
    assert any(case.body is NO_BODY for case in cases)
    assert any(isinstance(case.body, bytes) for case in cases)
