"""Defects of DURABLE: what was answered and is gone, and turns that a kill leaves half or runs again."""

import secrets
from collections.abc import Sequence
from typing import Any

from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.echo import Surface
from continuity_server.rules.messages import Message, Messages
from continuity_server.rules.slug import T
from continuity_server.settings import Options


@defect(
    "history-lost-on-restart",
    "Histories are known to the process that wrote them: after a restart sessions go on, and have forgotten everything.",
    "vllm#22137",
)
class HistoryLostOnRestart(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._process = secrets.token_hex(8)

    def line(self, session: str, surface: Surface) -> str:  # noqa: ARG002 - on every endpoint
        return f"{session}\x1f{self._process}"


@defect(
    "responses-lost-on-restart",
    "Response ids are known to the process that made them: after a restart they start a new session without a word.",
    "openclaw 2026.9.6",
)
class ResponsesLostOnRestart(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._own: set[str] = set()

    def minted(self, prefix: str) -> str:
        ident = super().minted(prefix)
        self._own.add(ident)
        return ident

    def continued(self, found: T | None) -> T | None:
        row: Any = super().continued(found)
        return found if row[0].id in self._own else None


@defect(
    "acknowledged-before-stored",
    "Turns are answered before they are on disk: a clean stop writes them, a kill loses them.",
    "hermes-agent#80921",
)
class AcknowledgedBeforeStored(Rules):
    def commits_at_once(self) -> bool:
        return False


@defect(
    "kill-leaves-half-turn",
    "The user's message is stored before the model is asked: a kill leaves it there without an answer.",
    "hermes-agent 0.19.0",
)
class KillLeavesHalfTurn(Rules):
    def begun(self, new: Sequence[Message]) -> Messages:
        return list(new)

    def stored_turn(self, new: Sequence[Message], made: Sequence[Message]) -> Messages:  # noqa: ARG002 - it is stored already
        return list(made)


@defect(
    "killed-turn-merged-into-next",
    "A message that a kill left without an answer is put before the next one, as if the user had said both at once.",
    "hermes-agent 0.19.0",
)
class KilledTurnMergedIntoNext(KillLeavesHalfTurn):
    def paired(self, messages: Sequence[Message]) -> Messages:
        merged: Messages = []
        for message in super().paired(messages):
            if merged and message["role"] == merged[-1]["role"] == "user":
                merged[-1] = {**message, "content": f"{merged[-1]['content']}\n{message['content']}"}
            else:
                merged.append(message)
        return merged


@defect(
    "kill-reruns-turn",
    "A turn that a kill cut short is run again, unasked, when its session goes on.",
    "openclaw 2026.9.6",
)
class KillRerunsTurn(KillLeavesHalfTurn):
    def resumed(self, stored: Sequence[Message]) -> Messages:
        return list(stored) if stored and stored[-1]["role"] == "user" else []

    def recalled(self, stored: Sequence[Message]) -> Messages:
        following = [*(message["role"] for message in stored[1:]), "user"]
        return [
            message
            for message, then in zip(stored, following, strict=False)
            if (message["role"], then) != ("user", "user")
        ]
