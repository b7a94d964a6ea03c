"""DURABLE on a server that keeps conversations on /v1/chat/completions alone."""

from dataclasses import replace

import pytest

from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec


def verdict(id_: str, *arguments: str) -> Verdict:
    profile = replace(reference_profile(arguments), offers=frozenset({"chat", "streaming"}))
    with Run(resolve(None, profile), [load_spec().requirement(id_)]) as run:
        return run.result(id_).verdict


@pytest.mark.parametrize("id_", ["DURABLE-02", "DURABLE-03"])
def test_a_chat_server_passes(id_: str):
    assert verdict(id_) is Verdict.PASS


@pytest.mark.parametrize(
    ("defect", "id_"),
    [
        ("answers-before-commit-plain", "DURABLE-02"),
        ("answers-before-commit-streamed", "DURABLE-02"),
        ("kill-reruns-turn", "DURABLE-03"),
        ("killed-turn-merged-into-next", "DURABLE-03"),
    ],
)
def test_a_defect_of_a_chat_server_is_found(defect: str, id_: str):
    assert verdict(id_, f"--defect={defect}") is Verdict.FAIL
