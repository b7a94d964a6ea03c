"""COMPRESS: chains of sessions, where they end, and what a compression keeps. Pure: lookups are passed in as functions.

To compress is to replace old turns by a summary. To rotate is to continue under a new id afterwards.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from continuity_server import fast_json
from continuity_server.rules.messages import SUMMARY_NAME, Message, Messages, is_system
from continuity_server.settings import Options

COMPRESSION: Final = "compression"
FORK: Final = "fork"
BRANCH: Final = "branch"
SUMMARISE: Final = (
    "Summarise the conversation below so that it can go on without its messages: who wants what, what was found and decided, "
    "what is open. Keep names, numbers and file names as they are. Answer with the summary alone."
)
SUMMARISE_NOW: Final = "Write the summary now."
CHARACTERS_A_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Session:
    """One session. `next` is its compression child; `epoch` counts how often its history was replaced."""

    id: str
    root: str
    parent: str | None = None
    next: str | None = None
    kind: str = "session"
    end_reason: str | None = None
    epoch: int = 1
    covered: "Covered | None" = None
    compress_next: bool = False
    created: int = 0
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Covered:
    """The user messages that a summary replaces: how many, and a running digest of their texts."""

    count: int = 0
    digest: str = ""

    def and_also(self, texts: Sequence[str]) -> "Covered":
        digest = self.digest
        for text in texts:
            digest = hashlib.sha256(f"{digest}\n{text}".encode()).hexdigest()
        return Covered(self.count + len(texts), digest)


class CompressRules:
    """The rules about compressed sessions."""

    options: Options

    def tip(self, start: Session, read: Callable[[str], Session | None]) -> Session:
        """COMPRESS-02 … -06: follow compression children to the last one; a cycle or a missing link ends the walk."""
        seen, at = {start.id}, start
        while at.next is not None and at.next not in seen:
            following = read(at.next)
            if following is None:
                break
            seen.add(following.id)
            at = following
        return at

    def rotates(self) -> bool:
        """COMPRESS-14: compressing moves the session to a new id (rotate), or does not (in-place)."""
        return self.options.compaction == "rotate"

    def is_successor(self, kind: str) -> bool:
        """COMPRESS-05: only a compression child continues its parent; forks and branches do not."""
        return kind == COMPRESSION

    def compression_due(self, session: Session | None, messages: Sequence[Message], limit: int) -> bool:
        """Compress when the control API asked for it, or when the history is larger than the context."""
        asked = session is not None and session.compress_next
        return asked or self.size(messages) > limit

    def size(self, messages: Sequence[Message]) -> int:
        """Estimated tokens: characters divided by four."""
        return len(fast_json.written(messages).decode()) // CHARACTERS_A_TOKEN

    def turn_start(self, messages: Sequence[Message]) -> int:
        """Return where the newest turn begins. COMPRESS-09: from there on, messages are kept verbatim."""
        users = [index for index, message in enumerate(messages) if message["role"] == "user"]
        return users[-1] if users else len(messages)

    def summary_request(self, conversation: Sequence[Message]) -> Messages:
        return [{"role": "system", "content": SUMMARISE}, *conversation, {"role": "user", "content": SUMMARISE_NOW}]

    def summary_message(self, text: str) -> Message:
        """COMPRESS-02: the summary, worded so that the next call does not look like a request for a summary."""
        return {
            "role": "system",
            "name": SUMMARY_NAME,
            "content": f"What was said earlier in this conversation: {text}",
        }

    def compacted(self, before: Sequence[Message], summary: str, turn: Sequence[Message]) -> Messages | None:
        """COMPRESS-02, -09, -12: the system prompts, the summary instead of the earlier turns, and the newest turn. Without a summary nothing changes."""
        if not summary:
            return None
        return _with_summary(before, self.summary_message(summary), turn)

    def without_covered(
        self, body: Sequence[Message], stored: Sequence[Message], covered: Covered | None
    ) -> Messages | None:
        """COMPRESS-16: a client sent the whole conversation again: replace the part that was compressed already by its summary.

        Returns None if the body does not begin with that part.
        """
        users = [index for index, message in enumerate(body) if message["role"] == "user"]
        summary = next((message for message in stored if message.get("name") == SUMMARY_NAME), None)
        if covered is None or summary is None or len(users) <= covered.count:
            return None
        if Covered().and_also(self.user_texts(body)[: covered.count]) != covered:
            return None
        rest = users[covered.count]
        return _with_summary(body[:rest], summary, body[rest:])

    def user_texts(self, messages: Sequence[Message]) -> list[str]:
        return [json.dumps(message.get("content")) for message in messages if message["role"] == "user"]


def _with_summary(before: Sequence[Message], summary: Message, rest: Sequence[Message]) -> Messages:
    """Of the messages before the summary only the system prompts stay."""
    return [*(message for message in before if is_system(message)), summary, *rest]
