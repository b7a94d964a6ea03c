"""DERIVE: how an id is made when the client names none. Pure: text in, id out."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from continuity_server.rules.messages import SYSTEM_ROLES, TEXT_PARTS, Message
from continuity_server.settings import Options


class DeriveRules:
    """The rules that make an id from the opening of a conversation."""

    options: Options

    def derived_id(self, body: Mapping[str, Any]) -> str | None:
        """DERIVE-01, -02, -03, -06: system prompt and first user message make the id, and nothing else does."""
        messages: Sequence[Message] = body["messages"]
        system, user = self.system_prompt(messages), self.first_user_message(messages)
        if self.options.derivation == "content-v1":
            return "api-" + self.digest(self.seed_v1(system, user))[:16]
        if self.options.derivation == "content-v2":
            return "api2-" + self.digest(self.seed_v2(system, user))[:32]
        return None

    def system_prompt(self, messages: Sequence[Message]) -> str:
        """DERIVE-05, -08: several system prompts are joined by a line feed; none equals the empty one."""
        return "\n".join(self.text(message.get("content")) for message in self.counted_prompts(messages))

    def counted_prompts(self, messages: Sequence[Message]) -> list[Message]:
        """DERIVE-04, -08: under content-v1 all `system` messages count, under content-v2 those before the first user message."""
        return (self.prompts_v1 if self.options.derivation == "content-v1" else self.prompts_v2)(messages)

    def prompts_v1(self, messages: Sequence[Message]) -> list[Message]:
        """DERIVE-04: every `system` message, wherever it is; a `developer` message does not count."""
        return [message for message in messages if message["role"] == "system"]

    def prompts_v2(self, messages: Sequence[Message]) -> list[Message]:
        """DERIVE-08: a developer message counts; what comes after the first user message does not."""
        opening = takewhile(lambda message: message["role"] != "user", messages)
        return [message for message in opening if message["role"] in SYSTEM_ROLES]

    def first_user_message(self, messages: Sequence[Message]) -> str:
        users = (message for message in messages if message["role"] == "user")
        return self.text(next(users, {}).get("content"))

    def text(self, content: object) -> str:
        """DERIVE-07, -09: a string as it is (no trimming, folding or normalising); the text parts of a list."""
        if isinstance(content, str):
            return content
        if isinstance(content, list):
            return self.join_parts([part["text"] for part in content if self.part_counts(part)])
        return ""

    def part_counts(self, part: Mapping[str, Any]) -> bool:
        """DERIVE-07: text parts count, unless they are empty; others, such as images, do not."""
        return part.get("type") in TEXT_PARTS and part["text"] != ""

    def join_parts(self, texts: Sequence[str]) -> str:
        """DERIVE-07: several text parts are joined by a line feed."""
        return "\n".join(texts)

    def seed_v1(self, system: str, user: str) -> bytes:
        """DERIVE-04: system prompt, line feed, first user message, in UTF-8."""
        return f"{system}\n{user}".encode()

    def seed_v2(self, system: str, user: str) -> bytes:
        """DERIVE-12: the JSON array of both in RFC 8785 form, which for strings is what `json` writes without blanks."""
        return json.dumps([system, user], ensure_ascii=False, separators=(",", ":")).encode()

    def digest(self, seed: bytes) -> str:
        """DERIVE-04, -11: SHA-256, so that any process computes the same id at any time."""
        return hashlib.sha256(seed).hexdigest()
