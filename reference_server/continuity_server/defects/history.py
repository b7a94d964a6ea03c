"""Defects of HISTORY: a model that sees too much, too little or the wrong thing, and turns that get lost or are left behind."""

from collections.abc import Sequence
from typing import Any

from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.echo import Surface
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.history import Unanswered, W
from continuity_server.rules.messages import Message, Messages
from continuity_server.settings import Options


@defect(
    "body-history-merged",
    "Earlier messages of the body reach the model, after the stored history.",
    "openclaw 2026.9.6",
)
class BodyHistoryMerged(Rules):
    def history(self, stored: Sequence[Message], body: Sequence[Message]) -> Messages:
        return [*stored, *body[: self.turn_start(body)]]


@defect(
    "body-history-flattened",
    "Earlier messages of the body are written into the new user message, on top of the stored history.",
    "openclaw 2026.9.6",
)
class BodyHistoryFlattened(Rules):
    def new_input(self, messages: Sequence[Message]) -> Messages:
        new = super().new_input(messages)
        earlier = [f"{message['role']}: {message['content']}" for message in messages if message not in new]
        return [{**message, "content": "\n".join([*earlier, str(message["content"])])} for message in new]


@defect("body-history-wins", "Where the body has earlier messages, they replace the stored history.")
class BodyHistoryWins(Rules):
    def history(self, stored: Sequence[Message], body: Sequence[Message]) -> Messages:
        return list(body[: self.turn_start(body)]) or list(stored)


@defect(
    "tool-results-ignored",
    "Tool results that the body ends with are ignored; its last user message is taken once more.",
)
class ToolResultsIgnored(Rules):
    def new_input(self, messages: Sequence[Message]) -> Messages:
        return [message for message in messages if message["role"] == "user"][-1:]


@defect("history-doubles", "Every stored turn reaches the model twice.", "hermes-agent PR 41700")
class HistoryDoubles(Rules):
    def recalled(self, stored: Sequence[Message]) -> Messages:
        return [*stored, *stored]


@defect("history-reversed", "The stored turns reach the model newest first.")
class HistoryReversed(Rules):
    def recalled(self, stored: Sequence[Message]) -> Messages:
        return list(stored[::-1])


@defect("answers-not-stored", "Only the user's messages are stored.")
class AnswersNotStored(Rules):
    def stored_turn(self, new: Sequence[Message], made: Sequence[Message]) -> Messages:  # noqa: ARG002 - that is the defect
        return list(new)


@defect("questions-not-stored", "Only the answers are stored.")
class QuestionsNotStored(Rules):
    def stored_turn(self, new: Sequence[Message], made: Sequence[Message]) -> Messages:  # noqa: ARG002 - that is the defect
        return list(made)


@defect("oldest-turn-dropped", "From the third turn on the first one is forgotten.")
class OldestTurnDropped(Rules):
    def recalled(self, stored: Sequence[Message]) -> Messages:
        users = [index for index, message in enumerate(stored) if message["role"] == "user"]
        return list(stored[users[1] :]) if len(users) > 1 else list(stored)


@defect("roles-flattened", "Answers are stored as if the user had said them.")
class RolesFlattened(Rules):
    def stored_turn(self, new: Sequence[Message], made: Sequence[Message]) -> Messages:
        return [*new, *({"role": "user", "content": message["content"]} for message in made)]


@defect(
    "write-behind",
    "A turn is stored only when the next one of its session ends: the store lags behind the answers.",
    "litellm#12364",
)
class WriteBehind(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._held: dict[tuple[str, str], Any] = {}

    def due(self, write: W) -> list[W]:
        earlier = self._held.pop(write.session, None)
        self._held[write.session] = write
        return [earlier] if earlier is not None else []


@defect("unknown-id-is-404", "An unknown id is refused with 404.")
class UnknownIdIs404(Rules):
    def started(self, session: str) -> str:  # noqa: ARG002 - that is the defect
        raise Refusal(Case.SESSION_NOT_FOUND, "There is no session with this id.")


@defect("unknown-id-renamed", "An unknown id starts a session under another id.")
class UnknownIdRenamed(Rules):
    def started(self, session: str) -> str:  # noqa: ARG002 - that is the defect
        return self.minted("sess_")


@defect("store-failure-is-500", "A store that cannot be read makes every turn a 500.")
class StoreFailureIs500(Rules):
    def unreadable(self, session: str) -> str:  # noqa: ARG002 - that is the defect
        raise Refusal(Case.INTERNAL, "The server has a defect.")


@defect("store-failure-new-id", "A store that cannot be read makes a turn start a session under another id.")
class StoreFailureNewId(Rules):
    def unreadable(self, session: str) -> str:
        super().unreadable(session)
        return self.minted("sess_")


@defect(
    "refused-turn-stored",
    "A turn that was refused because the history could not be read is stored all the same.",
    under={"degraded": "refuse"},
)
class RefusedTurnStored(Rules):
    def left_behind(self, new: Sequence[Message], why: Unanswered) -> Messages:
        return list(new) if why is Unanswered.REFUSED else []


@defect("degraded-silently", "An answer without the history does not say so.")
class DegradedSilently(Rules):
    def admitted(self, *, degraded: bool) -> bool:  # noqa: ARG002 - that is the defect
        return False


@defect("degraded-turn-overwrites-history", "A turn that could not read the history replaces it.")
class DegradedTurnOverwritesHistory(Rules):
    def left_by_degraded(self, turn: Sequence[Message]) -> Messages:
        return list(turn)


@defect(
    "failed-turn-leaves-user-message",
    "The user message of a turn whose model call failed stays in the history.",
    "openclaw 2026.9.6",
)
class FailedTurnLeavesUserMessage(Rules):
    def left_behind(self, new: Sequence[Message], why: Unanswered) -> Messages:
        return list(new) if why is Unanswered.MODEL_FAILED else []


@defect(
    "error-text-as-answer", "A failed model call is answered 200, with the error as the text.", "hermes-agent 0.19.0"
)
class ErrorTextAsAnswer(Rules):
    def failure_answer(self, refusal: Refusal) -> dict[str, Any]:
        return {"role": "assistant", "content": str(refusal)}


@defect("unstored-turn-acknowledged", "A turn that could not be stored is answered 200.", "hermes-agent 0.19.0")
class UnstoredTurnAcknowledged(Rules):
    def must_be_stored(self) -> bool:
        return False


@defect("system-prompt-dropped", "A system prompt sent with the header does not reach the model.")
class SystemPromptDropped(Rules):
    def turn_prompts(self, messages: Sequence[Message]) -> Messages:  # noqa: ARG002 - that is the defect
        return []


@defect("developer-message-dropped", "A developer message does not reach the model.", "hermes-agent 0.19.0")
class DeveloperMessageDropped(Rules):
    def turn_prompts(self, messages: Sequence[Message]) -> Messages:
        return [message for message in super().turn_prompts(messages) if message["role"] != "developer"]


@defect("system-prompt-twice", "A system prompt sent with the header reaches the model twice.")
class SystemPromptTwice(Rules):
    def turn_prompts(self, messages: Sequence[Message]) -> Messages:
        return super().turn_prompts(messages) * 2


@defect("derived-id-starts-empty", "A derived turn is not stored: its id, sent back as header, finds nothing.")
class DerivedIdStartsEmpty(Rules):
    def stored_derived(self, base: Sequence[Message], made: Sequence[Message]) -> Messages:  # noqa: ARG002 - that is the defect
        return []


@defect(
    "derived-turn-stores-last-message-only",
    "Of a derived turn only the last message and the answer are stored, however much the body said before.",
)
class DerivedTurnStoresLastMessageOnly(Rules):
    def stored_derived(self, base: Sequence[Message], made: Sequence[Message]) -> Messages:
        return [*base[-1:], *made]


@defect("tool-result-dropped", "Results of tool calls do not reach the model again; their calls do.", "agno#9372")
class ToolResultDropped(Rules):
    def paired(self, messages: Sequence[Message]) -> Messages:
        return [message for message in messages if message["role"] != "tool"]


@defect("tool-call-dropped", "Tool calls do not reach the model again; their results do.", "nanobot#4006")
class ToolCallDropped(Rules):
    def paired(self, messages: Sequence[Message]) -> Messages:
        return [message for message in super().paired(messages) if not message.get("tool_calls")]


@defect("tool-pairs-reordered", "A tool's result reaches the model before its call.")
class ToolPairsReordered(Rules):
    def paired(self, messages: Sequence[Message]) -> Messages:
        whole = super().paired(messages)
        for index in range(1, len(whole)):
            if whole[index]["role"] == "tool" and whole[index - 1].get("tool_calls"):
                whole[index - 1], whole[index] = whole[index], whole[index - 1]
        return whole


@defect("abandoned-call-kept", "A call that the client abandoned reaches the model without a result.", "mastra#20610")
class AbandonedCallKept(Rules):
    def paired(self, messages: Sequence[Message]) -> Messages:
        return list(messages)


@defect("slug-history-apart", "Chat and responses keep separate histories of one session.", "openclaw 2026.9.6")
class SlugHistoryApart(Rules):
    def line(self, session: str, surface: Surface) -> str:
        return session if surface is Surface.CHAT else f"{session}\x1fresponses"
