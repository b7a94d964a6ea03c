"""Running a turn: wait for the session, call the model, commit, and only then say that it is done."""
import asyncio
import itertools
import json
import logging
import time
from weakref import WeakValueDictionary

import httpx

import store as queries
from protocol import ApiError, Turn, model_request, new_id


class Model:
    """The OpenAI-compatible model behind the server (4.7). It is called once a turn and never retried."""

    def __init__(self, base: str):
        self.url = base.rstrip("/") + "/chat/completions"
        # No kept connections: one that the model has just closed would look like a failure of the model.
        self.http = httpx.AsyncClient(timeout=120, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0),
                                      headers={"Content-Type": "application/json"})

    async def call(self, request: dict, answer: "Answer"):
        """Fills the answer and yields its pieces. Every failure of the model is an ApiError (HISTORY-08)."""
        try:
            # In pure ASCII, which carries even a lone surrogate of an earlier answer.
            async with self.http.stream("POST", self.url, content=json.dumps(request)) as reply:
                if reply.status_code != 200:
                    raise ApiError(429 if reply.status_code == 429 else 502, "upstream_error", "The model refused.")
                async for data in self._parts(reply, request["stream"]):
                    for choice in json.loads(data)["choices"][:1]:  # a chunk that only tells the usage has none
                        yield answer.add(choice)
            if answer.finish_reason is None:
                raise ApiError(502, "upstream_error", "The answer of the model broke off.")
        except (httpx.HTTPError, ValueError, TypeError, KeyError, AttributeError) as error:
            logging.warning("model: %r", error)
            raise ApiError(502, "upstream_error", "The model did not answer.") from None

    @staticmethod
    async def _parts(reply: httpx.Response, stream: bool):
        """The body, or the `data` of its events. Lines end at LF only: aiter_lines would cut a text at U+2028."""
        if not stream:
            yield await reply.aread()
            return
        rest = b""
        async for piece in reply.aiter_bytes():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.startswith(b"data:") and (data := line[5:].strip()) != b"[DONE]":
                    yield data


class Answer:
    """The answer of a turn as it grows. The subclasses write it in the format of their endpoint."""
    session_id = None  # until the turn has found its session
    started = False    # whether the stream has begun

    def __init__(self, body: dict):
        self.body, self.created, self.text, self.finish_reason = body, int(time.time()), "", None
        self.id, self.item_id = new_id(self.prefix), new_id("msg_")  # never an id of the client (SLUG-27)
        self.sequence = itertools.count()

    def add(self, choice: dict) -> str:
        """Takes the whole answer of the model or a piece, so that both leave the same history (STREAM-04)."""
        piece = (choice.get("message") or choice.get("delta") or {}).get("content") or ""
        self.text += piece
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        return piece

    def begin(self) -> str:
        """The first events of a stream, once."""
        started, self.started = self.started, True
        return "" if started else self.start()

    def session(self) -> dict:
        return {"id": self.session_id, "rotated_from": None, "degraded": False}


def sse(data: dict) -> str:
    return f"data: {json.dumps(data, separators=(',', ':'))}\n\n"


class ChatAnswer(Answer):
    prefix = "chatcmpl-"

    def plain(self) -> dict:
        message = {"role": "assistant", "content": self.text}
        return self._object("chat.completion", self.finish_reason, message=message) | {"session": self.session()}

    def start(self) -> str:
        return sse(self._object("chat.completion.chunk", None, delta={"role": "assistant", "content": ""}))

    def delta(self, piece: str) -> str:
        return sse(self._object("chat.completion.chunk", None, delta={"content": piece}))

    def end(self) -> str:
        last = self._object("chat.completion.chunk", self.finish_reason, delta={})
        return sse(last | {"session": self.session()}) + "data: [DONE]\n\n"

    def failure(self, error: dict) -> str:
        return sse({"error": error}) + "data: [DONE]\n\n"  # STREAM-02

    def _object(self, kind: str, finish_reason: str | None, **content) -> dict:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.body["model"],
                "choices": [{"index": 0, **content, "finish_reason": finish_reason}]}


class ResponseAnswer(Answer):
    prefix = "resp_"

    def plain(self) -> dict:
        return self._object("completed", output=[self._item("completed", self.text)], session=self.session())

    def start(self) -> str:
        return (self._event("created", response=self._object("in_progress"))
                + self._event("in_progress", response=self._object("in_progress"))
                + self._event("output_item.added", output_index=0, item=self._item("in_progress"))
                + self._part_event("content_part.added", part=self._part("")))

    def delta(self, piece: str) -> str:
        return self._part_event("output_text.delta", delta=piece)

    def end(self) -> str:
        return (self._part_event("output_text.done", text=self.text)
                + self._part_event("content_part.done", part=self._part(self.text))
                + self._event("output_item.done", output_index=0, item=self._item("completed", self.text))
                + self._event("completed", response=self.plain()))

    def failure(self, error: dict) -> str:
        reason = {"code": error["code"], "message": error["message"]}
        return self._event("failed", response=self._object("failed", error=reason))

    def _event(self, name: str, **fields) -> str:
        kind = f"response.{name}"
        return f"event: {kind}\n" + sse({"type": kind, "sequence_number": next(self.sequence), **fields})

    def _part_event(self, name: str, **fields) -> str:
        return self._event(name, item_id=self.item_id, output_index=0, content_index=0, **fields)

    def _part(self, text: str) -> dict:
        return {"type": "output_text", "text": text, "annotations": []}

    def _item(self, status: str, *texts: str) -> dict:
        content = [self._part(text) for text in texts]
        return {"id": self.item_id, "type": "message", "role": "assistant", "status": status, "content": content}

    def _object(self, status: str, **more) -> dict:
        slug = self.body.get("conversation")
        return {"id": self.id, "object": "response", "created_at": self.created, "status": status, "output": [],
                "model": self.body["model"], "error": None, "incomplete_details": None, "instructions": None,
                "metadata": self.body.get("metadata", {}), "parallel_tool_calls": True, "tool_choice": "auto",
                "tools": [], "previous_response_id": self.body.get("previous_response_id"),
                "conversation": {"id": slug} if isinstance(slug, str) else slug, **more}


class Turns:
    """Turns of one session wait for each other, those of other sessions do not (CONCUR-01, CONCUR-03)."""

    def __init__(self, store: queries.Store, model: Model):
        self.store, self.model, self._locks = store, model, WeakValueDictionary()

    def _lock(self, *name: str) -> asyncio.Lock:
        """The lock of that name. It lives as long as somebody holds it or waits for it."""
        return self._locks.setdefault(name, asyncio.Lock())

    async def run(self, turn: Turn, answer: Answer, emit):
        """Emits the plain answer, or the events of the stream. Whoever cancels it before the commit undoes it."""
        # A second look when it is our turn, since others ran meanwhile. As a write, so that a store that takes no
        # writes refuses the turn before the model is called (4.7).
        look_again = self.store.write if turn.store else self.store.read
        async with self._lock("slug", turn.principal, turn.slug or turn.own_id):  # one session a new slug (SLUG-12)
            place = await self.store.read(queries.find_place, turn)
            while answer.session_id is None:
                async with self._lock("session", turn.principal, place.session_id):
                    waited_for, place = place, await look_again(queries.find_place, turn)
                    if place.session_id == waited_for.session_id:  # else it has become a branch, with its own lock
                        answer.session_id = place.session_id
                        await self._answer(turn, place, answer, emit)

    async def _answer(self, turn: Turn, place: queries.Place, answer: Answer, emit):
        request = model_request(turn, place.history)
        async for piece in self.model.call(request, answer):
            if piece and request["stream"]:
                emit(answer.begin() + answer.delta(piece))
        if turn.store:  # SLUG-09
            await self.store.write(queries.commit, turn, place, answer, self.store.keep_responses)
        # Only now: the end of the answer acknowledges the turn (DURABLE-02).
        emit(answer.begin() + answer.end() if request["stream"] else answer.plain())
