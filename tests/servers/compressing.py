"""A small server that keeps conversations and compresses them, in the way that its arguments say. `python compressing.py --help` lists the ways.

Every way is honest unless `--defect` breaks it. The control API of the spec makes it compress; the state is one JSON file, written before an answer is sent.
"""

import argparse
import asyncio
import json
import secrets
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web
from hostile import HEADER, completion, response
from plausible import RefusedError, _chunks, _events

PROMPT = "You are an agent. You summarise files, and write a summary when the user asks for one. Call {}."
REMINDER = "<reminder>Keep every summary short.</reminder>"
HEADING = "[Summary of the conversation so far]"
Messages = list[dict[str, object]]


@dataclass
class Session:
    id: str
    owner: str
    parent: str | None = None
    next: str | None = None
    end_reason: str | None = None
    slug: str | None = None
    summary: str = ""
    head: Messages = field(default_factory=list)
    """Items that an opaque compaction left."""
    messages: Messages = field(default_factory=list)
    due: bool = False


class Compressing:
    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._file = options.folder / "state.json"
        kept = json.loads(self._file.read_text()) if self._file.exists() else {}
        self._sessions = {name: Session(**each) for name, each in kept.get("sessions", {}).items()}
        self._slugs: dict[str, str] = kept.get("slugs", {})
        self._responses: dict[str, dict[str, object]] = kept.get("responses", {})
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._lineage_broken = False
        self._calls = 0

    # HTTP

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guarded])
        app.router.add_get("/health", self._health)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/responses", self._respond)
        app.router.add_get("/v1/responses/{id}", self._get_response)
        app.router.add_get("/v1/sessions/{id}", self._get_session)
        app.router.add_post("/conformance/v1/{name}", self._control)
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except RefusedError as refusal:
            return web.json_response(refusal.body, status=refusal.status)

    async def _health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    def _owner(self, request: web.Request) -> str:
        return request.headers.get("Authorization", "").removeprefix("Bearer ")

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body, owner = await request.json(), self._owner(request)
        id_ = request.headers.get(HEADER) or secrets.token_hex(16)
        said = [message for message in body["messages"] if message["role"] == "user"][-1]
        session, answer = await self._turn(self._named(owner, id_), said)
        told = self._told(id_, session)
        whole = {**completion(secrets.token_hex(16)), "session": {"id": session.id}}
        message = {"role": "assistant", "content": answer}
        whole["choices"] = [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}]
        return await self._send(request, body, told, whole, [*_chunks(whole, message, "stop"), "[DONE]"])

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body, owner = await request.json(), self._owner(request)
        if not isinstance(body["input"], str):
            return web.json_response({"error": {"message": "input is one text here"}}, status=400)
        session, known = self._of_response(owner, body)
        tip, answer = await self._turn(session, {"role": "user", "content": body["input"]})
        whole = {**response(secrets.token_hex(16), answer), "session": {"id": tip.id}}
        snapshot = {"owner": owner, "session": tip.id, "summary": tip.summary, "head": [*tip.head]}
        self._responses[str(whole["id"])] = {**snapshot, "messages": [*tip.messages], "whole": whole}
        self._save()
        return await self._send(request, body, self._told(known, tip), whole, _events(whole))

    def _told(self, known: str, session: Session) -> dict[str, str]:
        """The id in the header: the tip, or with `--echo alias` the id that the client knows."""
        return {HEADER: known if self._options.echo == "alias" else session.id}

    async def _send(self, request, body, told: dict[str, str], whole: dict[str, object], events: list[object]):
        if body.get("stream") is not True:
            return web.json_response(whole, headers=told)
        stream = web.StreamResponse(headers={**told, "Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for event in events:
            await stream.write(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode())
        return stream

    async def _get_response(self, request: web.Request) -> web.Response:
        found = self._responses.get(request.match_info["id"])
        if found is None or found["owner"] != self._owner(request):
            raise RefusedError(404, "not_found_error", "There is no such response.")
        return web.json_response(found["whole"])

    async def _get_session(self, request: web.Request) -> web.Response:
        found = self._sessions.get(f"{self._owner(request)} {request.match_info['id']}")
        if found is None:
            raise RefusedError(404, "not_found_error", "There is no such session.")
        return web.json_response(
            {
                "id": found.id,
                "object": "session",
                "parent_id": found.parent,
                "end_reason": found.end_reason,
                "conversation": found.slug,
            }
        )

    async def _control(self, request: web.Request) -> web.Response:
        body, owner = await request.json(), self._owner(request)
        match request.match_info["name"]:
            case "compress":
                self._tip(self._named(owner, body["session_id"])).due = True
            case "evict":
                self._responses.pop(body["response_id"])
            case "fork":
                session = self._named(owner, body["session_id"])
                self._new(owner, session.messages, parent=session.id, summary=session.summary, head=session.head)
            case "link":
                self._named(owner, body["session_id"]).next = body["next"]
            case "fault" if body["what"] == "lineage":
                self._lineage_broken = body["on"]
            case _:
                raise RefusedError(404, "not_found_error", "There is no such control.")
        self._save()
        return web.json_response({})

    # Sessions

    def _named(self, owner: str, id_: str) -> Session:
        return self._sessions.setdefault(f"{owner} {id_}", Session(id_, owner))

    def _new(self, owner: str, messages: Messages, **fields: object) -> Session:
        session = self._named(owner, secrets.token_hex(16))
        session.messages = [*messages]
        for name, value in fields.items():
            setattr(session, name, value)
        return session

    def _tip(self, session: Session) -> Session:
        seen = {session.id}
        while session.next and session.next not in seen and f"{session.owner} {session.next}" in self._sessions:
            session = self._named(session.owner, session.next)
            seen.add(session.id)
        return session

    def _of_response(self, owner: str, body: dict[str, object]) -> tuple[Session, str]:
        """The session of a request on /v1/responses, and the id that its client was told first."""
        slug, previous = body.get("conversation"), body.get("previous_response_id")
        if slug is not None:
            id_ = self._slugs.setdefault(f"{owner} {slug}", secrets.token_hex(16))
            session = self._named(owner, id_)
            session.slug = str(slug)
            return session, id_
        if previous is None:
            session = self._new(owner, [])
            return session, session.id
        found = self._responses.get(str(previous))
        if found is None or found["owner"] != owner:
            raise RefusedError(404, "not_found_error", "There is no such response.")
        session = self._named(owner, str(found["session"]))
        if self._tip(session).messages[-1:] == found["messages"][-1:]:
            return session, self._root(session)
        kept = {name: found[name] for name in ("summary", "head")}
        branch = self._new(owner, found["messages"], parent=session.id, **kept)
        return branch, branch.id

    def _root(self, session: Session) -> str:
        while session.parent and self._named(session.owner, session.parent).next == session.id:
            session = self._named(session.owner, session.parent)
        return session.id

    def _save(self) -> None:
        sessions = {name: asdict(session) for name, session in self._sessions.items()}
        self._file.write_text(json.dumps({"sessions": sessions, "slugs": self._slugs, "responses": self._responses}))

    # Turns

    async def _turn(self, named: Session, said: dict[str, object]) -> tuple[Session, str]:
        if self._lineage_broken and named.next:
            raise RefusedError(503, "server_error", "The lineage cannot be read.")
        async with self._locks[f"{named.owner} {self._root(named)}"]:
            tip, way = self._tip(named), self._options
            if tip.due and way.when == "before":
                tip = await self._compressed(tip, said)
            answer = await self._ask([*self._context(tip), said, *self._reminder()])
            if not (way.defect == "loses-turn" and tip.parent):
                tip.messages += [said, {"role": "assistant", "content": answer}]
            if tip.due and way.when == "after":
                tip = await self._compressed(tip, None)
            if way.defect == "drops-silently":
                tip.messages = tip.messages[-4:]
            if way.titles and len(tip.messages) == 2:
                await self._ask([*self._context(tip), _user("Summarise this chat in a title of five words.")])
            self._save()
            return tip, answer

    def _reminder(self) -> Messages:
        return [_user(REMINDER)] if self._options.reminder else []

    def _prompt(self) -> Messages:
        self._calls += 1
        return [_system(PROMPT.format(self._calls))] if self._options.prompt else []

    def _context(self, session: Session) -> Messages:
        """What the model is sent before the new message."""
        messages, text = session.messages[-self._options.window :], f"{HEADING}\n{session.summary}"
        if not session.summary:
            return [*self._prompt(), *session.head, *messages]
        kept = {
            "system": [_system(text)],
            "user": [_user(text), {"role": "assistant", "content": "Understood."}],
            "assistant": [{"role": "assistant", "content": text}],
        }
        return [*self._prompt(), *kept[self._options.place], *messages]

    async def _compressed(self, session: Session, pending: dict[str, object] | None) -> Session:
        """The session after a compression: all turns are replaced but the newest. A summary that fails leaves it as it is, and is tried again."""
        old, kept = (session.messages, []) if pending else (session.messages[:-2], session.messages[-2:])
        if not (old or session.summary):
            return session
        before = Session(session.id, session.owner, summary=session.summary, head=session.head, messages=old)
        try:
            summary, head = await self._shortened(before, pending)
        except RefusedError:
            if self._options.defect == "failed-summary-drops":
                session.messages = []
            if self._options.failure == "refuse":
                raise
            return session
        session.due = False
        if self._options.defect == "keeps-all":
            kept = session.messages
        if self._options.compaction == "in-place" and self._options.defect != "changes-id":
            session.summary, session.head, session.messages = summary, head, kept
            return session
        child = self._new(session.owner, kept, parent=session.id, summary=summary, head=head, slug=session.slug)
        session.next, session.end_reason = child.id, "compression"
        return child

    async def _shortened(self, before: Session, pending: dict[str, object] | None) -> tuple[str, Messages]:
        """The summary that replaces a part of a session, or the items that do."""
        way = self._options
        if way.defect == "forgets-summaries":
            before.summary = ""
        match way.by:
            case "truncation":
                return "", []
            case "server":
                return f"The user said {len(before.messages) // 2} things. They were about colours.", []
            case "quotes":
                said = [str(message["content"]) for message in before.messages if message["role"] == "user"]
                return "\n".join([before.summary, *said]).strip(), []
            case "opaque":
                items = [*before.head, *before.messages]
                return "", (await self._post("responses/compact", {"input": items}))["output"]
        text = await self._ask(self._request(before, pending))
        return ("(the summary was lost)" if way.defect == "no-summary" else text), []

    def _request(self, before: Session, pending: dict[str, object] | None) -> Messages:
        """The call that asks for a summary."""
        context = self._context(before)
        match self._options.ask:
            case "end":
                return [*context, _user("Create a summary of the conversation above.")]
            case "begin":
                return [_system("Summarise the conversation."), *context]
            case "turn":
                return [_system("Summarise the conversation."), *context, *([pending] if pending else [])]
            case "after-turn":
                return [*context, *([pending] if pending else []), _user("Now write a summary of all this.")]
        transcript = "\n".join(f"{message['role']}: {message['content']}" for message in context)
        return [_system("You summarise conversations."), _user(transcript)]

    async def _ask(self, messages: Messages) -> str:
        if self._options.by == "opaque":
            answer = await self._post("responses", {"input": messages, "store": False})
            return answer["output"][0]["content"][0]["text"]
        return (await self._post("chat/completions", {"messages": messages}))["choices"][0]["message"]["content"]

    async def _post(self, path: str, body: dict[str, object]) -> dict[str, object]:
        url = f"{self._options.model}/{path}"
        async with aiohttp.ClientSession() as client, client.post(url, json={"model": "m", **body}) as got:
            if got.status != 200:
                raise RefusedError(503, "server_error", "The model failed.")
            return await got.json()


def _user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def _system(text: str) -> dict[str, object]:
    return {"role": "system", "content": text}


DEFECTS = (
    "no-summary",
    "keeps-all",
    "loses-turn",
    "changes-id",
    "drops-silently",
    "failed-summary-drops",
    "forgets-summaries",
)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--model")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--compaction", choices=("rotate", "in-place"), default="in-place")
    parser.add_argument("--echo", choices=("tip", "alias"), default="tip")
    parser.add_argument("--place", choices=("system", "user", "assistant"), default="system")
    parser.add_argument("--ask", choices=("end", "begin", "turn", "after-turn", "transcript"), default="end")
    parser.add_argument("--when", choices=("before", "after"), default="before")
    parser.add_argument("--by", choices=("model", "server", "quotes", "truncation", "opaque"), default="model")
    parser.add_argument("--window", type=int, default=0, help="how many messages the model is sent; 0: all")
    parser.add_argument("--failure", choices=("answer", "refuse"), default="answer")
    parser.add_argument("--prompt", action="store_true", help="a system prompt about summaries")
    parser.add_argument("--reminder", action="store_true", help="a message about summaries after every turn")
    parser.add_argument("--titles", action="store_true", help="ask the model for a title after the first turn")
    parser.add_argument("--defect", choices=DEFECTS, default="")
    return parser.parse_args()


if __name__ == "__main__":
    given = read_arguments()
    web.run_app(Compressing(given).app(), host="127.0.0.1", port=given.port, print=None)
