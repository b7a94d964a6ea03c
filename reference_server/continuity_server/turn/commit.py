"""Committing: what a turn leaves in the store, as one `Write`. It asks the rules and writes through the store."""

from dataclasses import replace
from typing import Any

from continuity_server.rules import Rules
from continuity_server.rules.compress import BRANCH, COMPRESSION
from continuity_server.rules.echo import Surface
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.messages import Messages
from continuity_server.store.disk import StoreUnwritableError
from continuity_server.store.interface import AnyStore
from continuity_server.store.records import Ended, HistoryWrite, Replay, SlugWrite, Write
from continuity_server.turn.summarise import Compression
from continuity_server.turn.types import Destination, Turn, TurnInput, TurnOutput


class Committer:
    """Stores turns."""

    def __init__(self, store: AnyStore, rules: Rules, max_responses: int) -> None:
        self._store = store
        self._rules = rules
        self._max_responses = max_responses

    async def check(self) -> None:
        """HISTORY-14: refuse a turn that cannot be stored before the model is asked."""
        try:
            await self._store.check_writable()
        except StoreUnwritableError:
            raise _unstorable() from None

    async def commit(self, write: Write) -> None:
        """HISTORY-03, -14: the turn is stored before its answer ends; one that could not be stored is not answered 2xx."""
        try:
            await self._store.commit(write)
        except StoreUnwritableError:
            raise _unstorable() from None

    def write(self, turn: Turn, output: TurnOutput, compression: Compression | None) -> Write:
        """Return the messages of a turn as a write, compressed if there is a compression."""
        destination, history = turn.destination, self._history(turn, output)
        asked = destination.session is not None and destination.session.compress_next
        write = Write(
            destination.owner,
            history,
            ended=self.ended(history.parent, kind=history.kind) if history.parent is not None else None,
            compressed_on_request=destination.tip if asked else None,
            previous=turn.request.previous,
            max_responses=self._max_responses,
        )
        return self._compressed(destination, write, compression) if compression is not None else write

    def recorded(self, turn: Turn, write: Write, header: str, body: dict[str, Any]) -> Write:
        """Return the same write with the response, the slug and the replay that come with the answer."""
        request, destination = turn.request, turn.destination
        if request.surface is Surface.RESPONSES:
            slug = self._slug(destination, write.history.session)
            write = replace(write, response=(request.answer_id, body), slug=slug)
        if request.idempotency_key is None:
            return write
        scope, key = destination.chain, request.idempotency_key
        replay = Replay(destination.owner, scope, key, request.fingerprint, write.history.root, header, body)
        return replace(write, replay=replay)

    def ended(self, parent: str, *, kind: str) -> Ended | None:
        """COMPRESS-05, -10: a compression child ends its parent, which names the reason; a fork or a branch does not."""
        return Ended(parent, kind) if self._rules.is_successor(kind) else None

    def _slug(self, destination: Destination, session: str) -> SlugWrite | None:
        """SLUG-11, COMPRESS-15, MIGRATE-05: the slug keeps the session that this turn ended in."""
        return SlugWrite(destination.slug, session) if destination.slug is not None else None

    def _compressed(self, destination: Destination, write: Write, compression: Compression) -> Write:
        """COMPRESS-10, -14, -15: a child of the same principal and slug (rotate), or the same session with a new history (in-place)."""
        rotates = self._rules.rotates()
        history = HistoryWrite(
            session=self._rules.minted("sess_") if rotates else destination.tip,
            root=destination.root,
            messages=tuple(compression.messages),
            replace=True,
            parent=destination.tip if rotates else None,
            kind=COMPRESSION,
            covered=compression.covered,
        )
        if not rotates:
            return replace(write, history=history)
        return replace(write, history=history, ended=self.ended(destination.tip, kind=COMPRESSION))

    def _history(self, turn: Turn, output: TurnOutput) -> HistoryWrite:
        if turn.destination.derived:
            return self._derived(turn.destination, turn.input, self._conversation(turn.input, output))
        messages = self._messages(turn.input, output)
        if turn.destination.branch_from is not None:
            return self._branched(turn.destination, turn.input, messages)
        return self._appended(turn.destination, messages)

    def _messages(self, turn_input: TurnInput, output: TurnOutput) -> Messages:
        """HISTORY-02, -11: a turn is stored as it was: the new input, the tool calls with their results, the answer."""
        return [*turn_input.new, *output.messages]

    def _conversation(self, turn_input: TurnInput, output: TurnOutput) -> Messages:
        """HISTORY-10: after a derived turn the history is the request's messages and the answer, each once."""
        return [*turn_input.before, *turn_input.new, *output.messages]

    def _appended(self, destination: Destination, messages: Messages) -> HistoryWrite:
        """SLUG-12: a turn is added to what is there, also if another request created the session meanwhile."""
        return HistoryWrite(destination.tip, destination.root, tuple(messages))

    def _branched(self, destination: Destination, turn_input: TurnInput, messages: Messages) -> HistoryWrite:
        """SLUG-13: a branch begins with a copy of the history that it branched from."""
        assert destination.branch_from is not None, "only a branch is written as one"
        parent = destination.branch_from[0].id
        whole = (*turn_input.stored, *messages)
        return HistoryWrite(destination.tip, destination.root, whole, replace=True, parent=parent, kind=BRANCH)

    def _derived(self, destination: Destination, turn_input: TurnInput, whole: Messages) -> HistoryWrite:
        """HISTORY-10: append what is new; if the request's messages are not those that are stored, replace them."""
        known = len(turn_input.stored)
        if whole[:known] == turn_input.stored:
            return HistoryWrite(destination.tip, destination.root, tuple(whole[known:]))
        return HistoryWrite(destination.tip, destination.root, tuple(whole), replace=True, covered=turn_input.covered)


def _unstorable() -> Refusal:
    message = "The turn cannot be stored now, so it is not answered. Try again later, with an Idempotency-Key if it must not run twice."
    return Refusal(Case.HISTORY_UNAVAILABLE, message)
