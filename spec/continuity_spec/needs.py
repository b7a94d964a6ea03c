"""Infer from the steps of a scenario what the target must offer, such as streaming or a second principal.

It reads steps; it knows neither files nor what a given target offers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from continuity_spec.model import REQUESTS, TURNS, Step, calls_client

CHAT_PATH = "/v1/chat/completions"
CONVERSATIONS_PATH = "/v1/conversations"


def inferred_needs(steps: Iterable[Step]) -> frozenset[str]:
    """Find everything that the target must offer for these steps to make sense."""
    return frozenset(need for step in steps for part in step.walk() for need in _needs(part))


def _needs(step: Step) -> Iterator[str]:
    if step.verb == "chat" or str(step.params.get("path", "")).startswith(CHAT_PATH):
        yield "chat"
    if step.verb == "respond" or (step.verb in REQUESTS and "response" in step.params) or step.verb == "evict":
        yield "responses"
    if step.verb in {"get", "delete"} and "response" in step.params:
        yield "stored-responses"
    if str(step.params.get("path", "")).startswith(CONVERSATIONS_PATH):
        yield "conversations"
    if step.verb in {"get", "delete"} and "session" in step.params:
        yield "sessions"
    if step.verb == "replicas":
        yield "replicas"
    if step.params.get("as") == "bob":
        yield "tenants"
    if step.verb in TURNS:
        yield from _needs_of_turn(step.params)


def _needs_of_turn(params: Mapping[str, object]) -> Iterator[str]:
    if params.get("stream") is True:
        yield "streaming"
    if params.get("compress") is True:
        yield "compression"
    if calls_client(params.get("model")) or "returns" in params:
        yield "client-tools"
