"""Answers as the client gets them: objects and server-sent events."""

import json
import re
import secrets
import time
from typing import Any

from aiohttp import web

from defects import bug
from model import Answer
from rules import Json, Refusal

Events = list[tuple[str | None, Json | str]]


class Sender:
    """One answer. A stream begins with its first piece; if the client hangs up, the rest is swallowed."""

    def __init__(self, body: Json, slug: str | None) -> None:
        self.body, self.slug, self.created = body, slug, int(time.time())
        self.id, self.started, self.gone = secrets.token_hex(16), False, False

    def again(self, final: Json) -> None:
        """Takes the id of an answer that is sent once more."""
        self.id = re.split("[_-]", final["id"])[1]

    async def send(self, request: web.Request, headers: dict[str, str], events: Events) -> web.StreamResponse:
        try:
            if not self.started:
                self.started = True
                self.response = web.StreamResponse(headers=headers | {"Content-Type": "text/event-stream; charset=utf-8"})
                await self.response.prepare(request)
            for name, data in events if not self.gone else []:
                line = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
                await self.response.write(((f"event: {name}\n" if name else "") + f"data: {line}\n\n").encode())
        except ConnectionError:
            self.gone = True
        return self.response


class ChatReply(Sender):
    def final(self, answer: Answer, session: Json) -> Json:
        choice = {"index": 0, "message": answer.message(), "finish_reason": answer.finish}
        return {"id": "chatcmpl-" + self.id, "object": "chat.completion", "created": self.created, "model": self.body["model"],
                "choices": [choice], "session": session} | ({"usage": answer.usage} if answer.usage else {})

    def chunk(self, choices: list[Json], **more: Json) -> tuple[None, Json]:
        return None, {"id": "chatcmpl-" + self.id, "object": "chat.completion.chunk", "created": self.created,
                      "model": self.body["model"], "choices": choices, **more}

    def piece(self, piece: str | Json) -> Events:
        deltas: list[Json] = [] if self.started else [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} if isinstance(piece, str) else {"tool_calls": [piece]}] if piece else []
        return [self.chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]

    def end(self, answer: Answer, final: Json) -> Events:
        told = {} if answer.finish != "stop" and bug("announce-only-on-stop") else {"session": final["session"]}
        last = self.chunk([{"index": 0, "delta": {}, "finish_reason": answer.finish}], **told)
        wanted = answer.usage and (self.body.get("stream_options") or {}).get("include_usage")
        return [*self.piece(""), last, *([self.chunk([], usage=answer.usage or {})] if wanted else []), (None, "[DONE]")]

    def fail(self, refusal: Refusal) -> Events:
        return [(None, refusal.body), (None, "[DONE]")]


class ResponseReply(Sender):
    def __init__(self, body: Json, slug: str | None) -> None:
        super().__init__(body, slug)
        self.count, self.text, self.place = 0, False, {"output_index": 0, "content_index": 0, "item_id": "msg_" + self.id}
        defaults: Json = {"instructions": None, "metadata": {}, "parallel_tool_calls": True, "previous_response_id": None, "store": True,
                    "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0}
        self.begun = {"id": "resp_" + self.id, "object": "response", "created_at": self.created, "status": "in_progress",
                      "model": body["model"], "output": [], "error": None, "incomplete_details": None,
                      "conversation": None if slug is None else {"id": slug}}
        self.begun |= {name: default if body.get(name) is None else body[name] for name, default in defaults.items()}

    def again(self, final: Json) -> None:
        super().again(final)
        self.begun |= {"id": final["id"], "created_at": final["created_at"]}
        self.place["item_id"] = "msg_" + self.id

    def final(self, answer: Answer, session: Json) -> Json:
        part = {"type": "output_text", "text": answer.content, "annotations": []}
        message = {"id": "msg_" + self.id, "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        calls = [{"id": "fc_" + secrets.token_hex(12), "type": "function_call", "call_id": call["id"], "status": "completed",
                  **call["function"]} for call in answer.tool_calls]
        done = self.begun | {"status": "completed", "output": [message] * bool(answer.content or not calls) + calls, "session": session}
        if answer.finish == "length":
            done |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        if answer.usage:
            done["usage"] = {"input_tokens": answer.usage["prompt_tokens"], "output_tokens": answer.usage["completion_tokens"],
                             "total_tokens": answer.usage["total_tokens"]}
        return done

    def event(self, kind: str, **data: Any) -> tuple[str, Json]:
        self.count += 1
        return kind, {"type": kind, "sequence_number": self.count - 1, **data}

    def piece(self, piece: str | Json, text: bool = True) -> Events:
        """A tool call is sent whole, at the end."""
        kinds = [] if self.count else ["response.created", "response.in_progress"]
        events: Events = [self.event(kind, response=self.begun) for kind in kinds]
        if isinstance(piece, str) and text and not self.text:
            self.text = True
            item = {"id": "msg_" + self.id, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
            events += [self.event("response.output_item.added", output_index=0, item=item), self.event(
                "response.content_part.added", **self.place, part={"type": "output_text", "text": "", "annotations": []})]
        said = piece if isinstance(piece, str) else ""
        return events + ([self.event("response.output_text.delta", **self.place, delta=said, logprobs=[])] if said else [])

    def end(self, answer: Answer, final: Json) -> Events:
        events = self.piece("", text=final["output"][0]["type"] == "message")
        for at, item in enumerate(final["output"]):
            if item["type"] == "message":
                events += [self.event("response.output_text.done", **self.place, text=answer.content, logprobs=[]),
                           self.event("response.content_part.done", **self.place, part=item["content"][0])]
            else:
                begun = item | {"arguments": "", "status": "in_progress"}
                events.append(self.event("response.output_item.added", output_index=at, item=begun))
            events.append(self.event("response.output_item.done", output_index=at, item=item))
        return [*events, self.event("response." + final["status"], response=final)]

    def fail(self, refusal: Refusal) -> Events:
        error = {"code": "server_error", "message": refusal.message}
        return [self.event("response.failed", response=self.begun | {"status": "failed", "error": error})]


Reply = ChatReply | ResponseReply
