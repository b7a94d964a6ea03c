"""Defects of DERIVE: an id that is made from too much, too little, or in another way."""

import hashlib
import json
import secrets
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from continuity_server.defects.registry import defect
from continuity_server.defects.support.owners import OtherOwner
from continuity_server.rules import Rules
from continuity_server.rules.error import invalid
from continuity_server.rules.messages import Message, Messages
from continuity_server.settings import Options
from continuity_server.turn.history import HistoryReader
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.types import Destination, TurnInput, TurnRequest


@defect("derive-sha1", "The derived id is made with SHA-1.")
class DeriveSha1(Rules):
    def digest(self, seed: bytes) -> str:
        return hashlib.sha1(seed, usedforsecurity=False).hexdigest()


@defect("derive-trims", "Blanks at both ends of a text do not count in the derived id.")
class DeriveTrims(Rules):
    def text(self, content: object) -> str:
        return super().text(content).strip()


@defect(
    "derive-joins-without-line-feed",
    "System prompt and first user message are hashed without the line feed between them.",
)
class DeriveJoinsWithoutLineFeed(Rules):
    def seed_v1(self, system: str, user: str) -> bytes:
        return f"{system}{user}".encode()


@defect("derive-random-id", "A request without a header gets a new id every time.", "open-webui#27174")
class DeriveRandomId(Rules):
    def derived_id(self, body: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - that is the defect
        return f"api-{secrets.token_hex(8)}"


@defect("derive-ignores-first-user-message", "The derived id is made from the system prompt alone.")
class DeriveIgnoresFirstUserMessage(Rules):
    def first_user_message(self, messages: Sequence[Message]) -> str:  # noqa: ARG002 - that is the defect
        return ""


@defect("derive-ignores-system-prompt", "The derived id is made from the first user message alone.")
class DeriveIgnoresSystemPrompt(Rules):
    def system_prompt(self, messages: Sequence[Message]) -> str:  # noqa: ARG002 - that is the defect
        return ""


@defect("derive-requires-system-prompt", "A request without a system prompt and without a header is refused with 400.")
class DeriveRequiresSystemPrompt(Rules):
    def system_prompt(self, messages: Sequence[Message]) -> str:
        if not self.counted_prompts(messages):
            raise invalid("messages has no system prompt. Send one.", "messages")
        return super().system_prompt(messages)


@defect("derive-none-as-text", "A missing system prompt is hashed as the word None.")
class DeriveNoneAsText(Rules):
    def system_prompt(self, messages: Sequence[Message]) -> str:
        return super().system_prompt(messages) if self.counted_prompts(messages) else "None"


@defect(
    "derive-from-last-user-message",
    "The derived id is made from the last user message, so every turn gets another.",
    "hermes-webui#4535",
)
class DeriveFromLastUserMessage(Rules):
    def first_user_message(self, messages: Sequence[Message]) -> str:
        return super().first_user_message(messages[::-1])


@defect("derive-counts-answers", "Later messages and answers change the derived id.")
class DeriveCountsAnswers(Rules):
    def first_user_message(self, messages: Sequence[Message]) -> str:
        return "\n".join(self.text(message.get("content")) for message in messages if message["role"] != "system")


@defect("derive-counts-model", "Model, temperature and user are part of the derived id.")
class DeriveCountsModel(Rules):
    def derived_id(self, body: Mapping[str, Any]) -> str | None:
        counted = [body.get(name) for name in ("model", "temperature", "user")]
        return f"api-{self.digest(json.dumps([super().derived_id(body), counted]).encode())[:16]}"


@defect("derive-stream-differs", "A streamed request gets another derived id than a plain one.")
class DeriveStreamDiffers(Rules):
    def derived_id(self, body: Mapping[str, Any]) -> str | None:
        plain = super().derived_id(body)
        return f"api-{self.digest(str(plain).encode())[:16]}" if body.get("stream") else plain


@defect("derive-part-as-json", "Content that is a list of parts is hashed as its JSON.")
class DerivePartAsJson(Rules):
    def text(self, content: object) -> str:
        return json.dumps(content) if isinstance(content, list) else super().text(content)


@defect("derive-parts-joined-without-line-feed", "Several text parts are joined without a line feed.")
class DerivePartsJoinedWithoutLineFeed(Rules):
    def join_parts(self, texts: Sequence[str]) -> str:
        return "".join(texts)


@defect("derive-first-part-only", "Of several text parts only the first counts.")
class DeriveFirstPartOnly(Rules):
    def join_parts(self, texts: Sequence[str]) -> str:
        return next(iter(texts), "")


@defect(
    "derive-counts-other-parts",
    "Images and other parts count in the derived id.",
    "hermes-agent 0.19.0",
    under={"derivation": "content-v2"},
)
class DeriveCountsOtherParts(Rules):
    def text(self, content: object) -> str:
        if not isinstance(content, list):
            return super().text(content)
        return self.join_parts([part["text"] if self.part_counts(part) else json.dumps(part) for part in content])


@defect("derive-ignores-output-text", "A text part of the type output_text does not count in the derived id.")
class DeriveIgnoresOutputText(Rules):
    def part_counts(self, part: Mapping[str, Any]) -> bool:
        return super().part_counts(part) and part["type"] != "output_text"


@defect("derive-joins-empty-parts", "An empty text part adds a line feed to the text that the derived id is made from.")
class DeriveJoinsEmptyParts(Rules):
    def part_counts(self, part: Mapping[str, Any]) -> bool:
        return part.get("text") == "" or super().part_counts(part)


@defect("derive-first-system-only", "Of several system messages only the first counts.")
class DeriveFirstSystemOnly(Rules):
    def counted_prompts(self, messages: Sequence[Message]) -> list[Message]:
        return super().counted_prompts(messages)[:1]


@defect("derive-ignores-empty-system", "A system message with an empty text does not count.")
class DeriveIgnoresEmptySystem(Rules):
    def counted_prompts(self, messages: Sequence[Message]) -> list[Message]:
        return [each for each in super().counted_prompts(messages) if each["content"] != ""]


@defect("derive-last-system-only", "Of several system messages only the last counts.")
class DeriveLastSystemOnly(Rules):
    def counted_prompts(self, messages: Sequence[Message]) -> list[Message]:
        return super().counted_prompts(messages)[-1:]


@defect(
    "derive-ignores-developer",
    "content-v2: a developer message does not count as a system prompt.",
    "hermes-agent 0.19.0",
    under={"derivation": "content-v2"},
)
class DeriveIgnoresDeveloper(Rules):
    def prompts_v2(self, messages: Sequence[Message]) -> list[Message]:
        return [message for message in super().prompts_v2(messages) if message["role"] == "system"]


@defect(
    "derive-counts-later-system",
    "content-v2: system messages after the first user message change the derived id.",
    "hermes-agent 0.19.0",
    under={"derivation": "content-v2"},
)
class DeriveCountsLaterSystem(Rules):
    def prompts_v2(self, messages: Sequence[Message]) -> list[Message]:
        return [message for message in messages if message["role"] in {"system", "developer"}]


@defect("derive-v1-counts-developer", "content-v1: a developer message counts as a system prompt.")
class DeriveV1CountsDeveloper(Rules):
    def prompts_v1(self, messages: Sequence[Message]) -> list[Message]:
        return [message for message in messages if message["role"] in {"system", "developer"}]


@defect("derive-v1-ignores-later-system", "content-v1: a system message after the first user message does not count.")
class DeriveV1IgnoresLaterSystem(Rules):
    def prompts_v1(self, messages: Sequence[Message]) -> list[Message]:
        return [message for message in self.prompts_v2(messages) if message["role"] == "system"]


@defect("derive-normalises-unicode", "Texts are brought to NFC before they are hashed.")
class DeriveNormalisesUnicode(Rules):
    def text(self, content: object) -> str:
        return unicodedata.normalize("NFC", super().text(content))


@defect("derive-folds-case", "Texts are folded to lower case before they are hashed.")
class DeriveFoldsCase(Rules):
    def text(self, content: object) -> str:
        return super().text(content).lower()


@defect(
    "derived-history-on-top-of-store", "A derived turn sees the stored history and then the body's: everything twice."
)
class DerivedHistoryOnTopOfStore(HistoryReader):
    def _derived(
        self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool
    ) -> TurnInput:
        twice = replace(request, messages=[*stored, *request.messages])
        return super()._derived(twice, destination, stored, degraded=degraded)


@defect(
    "derived-history-from-store",
    "A derived turn sees the stored history and its last message; the body's does not count.",
)
class DerivedHistoryFromStore(HistoryReader):
    def _derived(
        self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool
    ) -> TurnInput:
        from_store = replace(request, messages=[*stored, *self._rules.new_input(request.messages)])
        return super()._derived(from_store, destination, stored, degraded=degraded)


@defect("derive-salted-per-process", "The derived id is salted anew at every start.")
class DeriveSaltedPerProcess(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._salt = secrets.token_bytes(8)

    def digest(self, seed: bytes) -> str:
        return super().digest(self._salt + seed)


@defect(
    "derive-v2-as-v1-concatenation",
    "content-v2 hashes both texts with a line feed between, so text can move across the border.",
    under={"derivation": "content-v2"},
)
class DeriveV2AsV1Concatenation(Rules):
    def seed_v2(self, system: str, user: str) -> bytes:
        return self.seed_v1(system, user)


@defect(
    "derive-v2-escapes-unicode",
    "content-v2 hashes JSON with escapes for everything that is not ASCII.",
    under={"derivation": "content-v2"},
)
class DeriveV2EscapesUnicode(Rules):
    def seed_v2(self, system: str, user: str) -> bytes:
        return json.dumps([system, user], separators=(",", ":")).encode()


@defect(
    "derived-session-shared-by-principals",
    "Principals with the same opening share one derived session.",
    "hermes-agent#7484",
)
class DerivedSessionSharedByPrincipals(OtherOwner):
    def owner(self, principal: str, session: str) -> str:
        return "everybody" if session.startswith(("api-", "api2-")) else principal


@defect("derivation-beats-header", "The derived id wins over the one that the client names.")
class DerivationBeatsHeader(Rules):
    def chosen_id(self, sent: str | None, derived: Callable[[], str | None]) -> tuple[str | None, bool]:  # noqa: ARG002 - that is the defect
        return derived(), True


@defect("constant-default-session", "Requests without an id share one session called default.", "nanobot 0.3.5")
class ConstantDefaultSession(Rules):
    def chosen_id(self, sent: str | None, derived: Callable[[], str | None]) -> tuple[str | None, bool]:  # noqa: ARG002 - that is the defect
        return sent if sent is not None else "api:default", False


@defect("responses-share-default-session", "Responses that name no session share one session called default.")
class ResponsesShareDefaultSession(Resolver):
    def _fresh(self, principal: str) -> Destination:
        return self._named(principal, "api:default")


@defect(
    "body-history-dropped",
    "Where no id is derived, only the last message of a body reaches the model.",
    under={"derivation": "none"},
)
class BodyHistoryDropped(HistoryReader):
    def _derived(
        self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool
    ) -> TurnInput:
        return self._named(request, destination, stored, degraded=degraded)
