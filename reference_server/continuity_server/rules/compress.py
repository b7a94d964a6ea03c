"""COMPRESS: chains of sessions, where they end, and what a compression keeps. Pure: lookups come as functions."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

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
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Session:
    """One row of the lineage. `next` is the compression child, `epoch` counts how often the history was replaced."""

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


@dataclass(frozen=True, slots=True)
class Covered:
    """Which user messages a summary stands for: how many, and a running digest of their texts."""

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

    def read_from(self, start: Session, tip: Session) -> Session:  # noqa: ARG002 - the rule is that the tip counts
        """COMPRESS-02: a stale parent is resolved before history is read."""
        return tip

    def written_to(self, start: Session, tip: Session, *, derived: bool) -> Session:  # noqa: ARG002 - the rule is that the tip counts
        """COMPRESS-03, -13: ... and before the turn is written, whether a client named the parent or it was derived."""
        return tip

    def landing(self, looked: P, look_again: Callable[[], P]) -> P:  # noqa: ARG002 - the rule is that the second look counts
        """COMPRESS-11: while a turn waited for another of its chain, the session may have rotated."""
        return look_again()

    def rotates(self) -> bool:
        """COMPRESS-14: compressing moves the session to a new id (rotate), or does not (in-place)."""
        return self.options.compaction == "rotate"

    def is_successor(self, kind: str) -> bool:
        """COMPRESS-05: only a compression child is what its parent went on as; forks and branches are not."""
        return kind == COMPRESSION

    def end_reason(self, kind: str) -> str | None:
        """COMPRESS-10: the rotated parent is ended, and says why."""
        return kind

    def child_parent(self, parent: str) -> str | None:
        """COMPRESS-10: the child names its parent."""
        return parent

    def child_owner(self, owner: str) -> str:
        """COMPRESS-15: the child belongs to the same principal."""
        return owner

    def unsummarised(self, before: Sequence[Message], turn: Sequence[Message]) -> Messages | None:  # noqa: ARG002 - the rule is that they stay
        """COMPRESS-12: where the summary failed the history stays as it is, which is None here."""
        return None

    def compression_due(self, session: Session | None, messages: Sequence[Message], limit: int) -> bool:
        """Compress when a control asked for it, or the history has outgrown the context."""
        asked = session is not None and session.compress_next
        return asked or self.size(messages) > limit

    def size(self, messages: Sequence[Message]) -> int:
        """Estimated tokens: characters divided by four."""
        return sum(len(json.dumps(message, ensure_ascii=False)) for message in messages) // CHARACTERS_A_TOKEN

    def turn_start(self, messages: Sequence[Message]) -> int:
        """COMPRESS-09: the newest turn, from its user message on, is kept verbatim."""
        users = [index for index, message in enumerate(messages) if message["role"] == "user"]
        return users[-1] if users else len(messages)

    def summary_request(self, conversation: Sequence[Message]) -> Messages:
        return [{"role": "system", "content": SUMMARISE}, *conversation, {"role": "user", "content": SUMMARISE_NOW}]

    def summary_message(self, text: str) -> Message:
        """COMPRESS-02: the summary, in words that do not make the next call look like one that asks for a summary."""
        return {
            "role": "system",
            "name": SUMMARY_NAME,
            "content": f"What was said earlier in this conversation: {text}",
        }

    def compacted(self, before: Sequence[Message], summary: str, turn: Sequence[Message]) -> Messages:
        """COMPRESS-02, -09: the system prompts, the summary instead of the earlier turns, and the newest turn."""
        return _with_summary(before, self.summary_message(summary), turn)

    def without_covered(
        self, body: Sequence[Message], stored: Sequence[Message], covered: Covered | None
    ) -> Messages | None:
        """COMPRESS-16: where the body begins with what was compressed, the compressed history and the rest; else nothing."""
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
    """Of what was before the summary only the system prompts are left."""
    return [*(message for message in before if is_system(message)), summary, *rest]
