"""The input of a turn: what the model is going to see. It reads the store and asks the rules."""

from continuity_server.rules import Rules
from continuity_server.rules.echo import Surface
from continuity_server.rules.messages import Messages
from continuity_server.store.interface import AnyStore
from continuity_server.store.store import StoreUnreadableError
from continuity_server.turn.types import Destination, TurnInput, TurnRequest


class HistoryReader:
    """Puts together stored history, body and system prompts."""

    def __init__(self, store: AnyStore, rules: Rules) -> None:
        self._store = store
        self._rules = rules

    def read(self, request: TurnRequest, destination: Destination) -> TurnInput:
        """HISTORY-05: a history that cannot be read is empty, and the input is marked as degraded."""
        try:
            stored = [] if destination.lost else self._stored(destination)
            degraded = destination.lost
        except StoreUnreadableError:
            stored, degraded = [], True
        turn_input = self._input(request, destination, stored, degraded=degraded)
        self._rules.check_new_input(turn_input.before, turn_input.new)
        return turn_input

    def new_input(self, request: TurnRequest) -> Messages:
        chat = request.surface is Surface.CHAT
        return self._rules.new_input(request.messages) if chat else self._rules.response_input(request.messages)

    def messages(self, turn_input: TurnInput) -> Messages:
        """Return what the model is sent."""
        whole = [*turn_input.before, *turn_input.new]
        return self._rules.paired(self._rules.with_prompts(turn_input.prompts, whole))

    def _stored(self, destination: Destination) -> Messages:
        """HISTORY-02, -13: every earlier turn, of both endpoints. SLUG-13: a branch sees the turns up to its response."""
        if destination.branch_from is not None:
            session, response = destination.branch_from
            return self._store.messages(destination.owner, session.id, response.epoch, response.upto)
        if destination.session is not None:
            return self._store.messages(destination.owner, destination.session.id, destination.session.epoch)
        return self._store.messages(destination.owner, destination.tip, 1)

    def _input(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        if destination.derived:
            return self._derived(request, destination, stored, degraded=degraded)
        return self._named(request, destination, stored, degraded=degraded)

    def _named(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        """HISTORY-01: the history comes from the store; earlier messages of the body do not reach the model."""
        prompts = self._rules.turn_prompts(request.messages)
        return TurnInput(stored, stored, self.new_input(request), prompts, destination.covered, degraded)

    def _derived(
        self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool
    ) -> TurnInput:
        """DERIVE-10: the history of a derived turn is the body's, in which a summary replaces what was compressed (COMPRESS-16)."""
        shorter = self._rules.without_covered(request.messages, stored, destination.covered)
        whole = shorter or request.messages
        start = self._rules.turn_start(whole)
        covered = destination.covered if shorter else None
        return TurnInput(stored, whole[:start], whole[start:], covered=covered, degraded=degraded)
