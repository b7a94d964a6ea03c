"""The view: what the model is going to see in a turn. It reads the store and asks the rules."""

from continuity_server.rules import Rules
from continuity_server.rules.echo import Surface
from continuity_server.rules.error import invalid
from continuity_server.rules.messages import Messages, open_calls
from continuity_server.store.store import Store, StoreUnreadableError
from continuity_server.turn.types import Destination, TurnInput, TurnRequest


class HistoryReader:
    """Puts together stored history, body and system prompts."""

    def __init__(self, store: Store, rules: Rules) -> None:
        self._store = store
        self._rules = rules

    def view(self, ask: TurnRequest, place: Destination) -> TurnInput:
        """HISTORY-05: what cannot be read is empty, and the view says that it is degraded."""
        try:
            stored = [] if place.lost else self._stored(ask, place)
        except StoreUnreadableError:
            return self._checked(self._seen(ask, place, [], degraded=True))
        return self._checked(self._seen(ask, place, stored, degraded=place.lost))

    def new_input(self, ask: TurnRequest) -> Messages:
        chat = ask.surface is Surface.CHAT
        return self._rules.new_input(ask.messages) if chat else self._rules.response_input(ask.messages)

    def messages(self, view: TurnInput) -> Messages:
        return self._rules.paired(self._rules.with_prompts(view.prompts, [*view.before, *view.new]))

    def _stored(self, ask: TurnRequest, place: Destination) -> Messages:
        if place.branch_from is not None:
            session, response = place.branch_from
            line, read = self._rules.line(session.id, ask.surface), self._store.messages
            upto = read(place.owner, line, response.epoch, upto=response.upto)
            return self._rules.branched(upto, lambda: read(place.owner, line, response.epoch, after=response.upto))
        session_id, epoch = (place.session.id, place.session.epoch) if place.session else (place.tip, 1)
        stored = self._store.messages(place.owner, self._rules.line(session_id, ask.surface), epoch)
        return self._rules.slug_history(stored, response_gone=place.response_gone) if place.slug else stored

    def _seen(self, ask: TurnRequest, place: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        if place.derived:
            return self._derived(ask, place, stored, degraded=degraded)
        rules, covered = self._rules, place.session.covered if place.session else None
        chat = ask.surface is Surface.CHAT
        before = rules.history(stored, ask.messages) if chat else rules.recalled(stored)
        return TurnInput(stored, before, self.new_input(ask), rules.turn_prompts(ask.messages), covered, degraded)

    def _derived(self, ask: TurnRequest, place: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        rules, covered = self._rules, place.session.covered if place.session else None
        shorter = rules.without_covered(ask.messages, stored, covered)
        whole = shorter or rules.derived_history(stored, ask.messages)
        start = rules.turn_start(whole)
        return TurnInput(stored, whole[:start], whole[start:], covered=covered if shorter else None, degraded=degraded)

    def _checked(self, view: TurnInput) -> TurnInput:
        """HISTORY-11: a result without its call cannot be sent to any model."""
        if not view.new:
            raise invalid("The request has no new input. End it with a user message or with tool results.")
        results = {message.get("tool_call_id") for message in view.new}
        if None not in results and not results & open_calls(view.before):
            raise invalid("The tool results answer no open tool call of this session. Send a user message.")
        return view
