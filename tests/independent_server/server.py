"""A small server that conforms to Session Continuity 1.0. notes.md says what it assumes, defects.md what can be broken on purpose."""

import argparse
import asyncio
import hashlib
import hmac
import json
import logging
import random
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import asdict
from typing import Any
from urllib.parse import unquote
from weakref import WeakValueDictionary

from aiohttp import web, web_protocol

import defects
import rules
from defects import bug
from model import Answer, Model
from rules import SYSTEM, Json, Refusal
from store import Store, StoreError, Turn
from streams import ChatReply, Reply, ResponseReply

HEADER = "X-Hermes-Session-Id"
PASSED = ("parallel_tool_calls", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop", "presence_penalty",
          "frequency_penalty", "logit_bias", "response_format", "reasoning_effort")
OFFERS = ["chat", "responses", "stored-responses", "streaming", "compression", "sessions", "client-tools"]
Handler = Callable[..., Awaitable[web.StreamResponse]]
SEEDED = random.Random(20260101)
log = logging.getLogger("continuity")


def refusal_of(error: Exception) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, StoreError):
        log.warning("The store failed: %s", error)
        return Refusal(503, "history_unavailable", "The history is unavailable, or the turn cannot be stored.")
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return Refusal(413, "request_too_large", "The request is too large.")
    if isinstance(error, web.RequestPayloadError):
        return Refusal(400, "invalid_json", "The body cannot be read.")
    log.error("The server has a defect.", exc_info=error)
    return Refusal(500, "internal_error", "The server has a defect.")


def missing(what: str, param: str) -> Refusal:
    return Refusal(404, what + "_not_found", f"There is no such {what.replace('_', ' ')}.", param)


def conflict() -> Refusal:
    return Refusal(409, "session_conflict", "Header and body select two sessions.", HEADER)


def reply(data: Json, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(text=json.dumps(data), status=status, content_type="application/json",
                        headers={"Cache-Control": "no-store"} | (headers or {}))


def fresh(principal: str) -> Turn:
    name = "sess_" + (f"{SEEDED.getrandbits(128):032x}" if bug("ids-repeat-after-restart") else secrets.token_hex(16))
    return Turn(principal, name, name, name)


class Server:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.keys = {key: name for name, _, key in (given.partition("=") for given in options.key)}
        self.extra = {*options.offer, *(offer for name, offer in defects.IMPLIED.items() if bug(name))}
        self.store = Store(options.db, options.keep_responses, "idempotency" in self.extra)
        self.model = Model(options.model)
        self.busy: dict[tuple[str, ...], asyncio.Lock] = {}
        self.calls: set[tuple[str, str]] = set()
        self.outbox: list[tuple[Turn, Json, str | None, Json | None]] = []
        self.locks: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()
        self.pending: set[tuple[str, str]] = set()  # Sessions (their roots) that a control told to compress.
        self.spent: set[tuple[str, str, str]] = set()
        self.abandoned: list[AsyncExitStack] = []
        self.current = ""
        self.routes: list[tuple[str, dict[str, Handler]]] = [
            ("/v1/chat/completions", {"POST": self.chat}), ("/v1/responses", {"POST": self.responses}),
            ("/v1/responses/([^/]+)", {"GET": self.get_response, "DELETE": self.delete_response}),
            ("/v1/sessions", {"GET": self.list_sessions}), ("/v1/sessions/([^/]+)/messages", {"GET": self.get_messages}),
            ("/v1/sessions/([^/]+)", {"GET": self.get_session, "DELETE": self.delete_session}),
            ("/v1/models", {"GET": self.models}), ("/v1/capabilities", {"GET": self.capabilities}), ("/health", {"GET": self.health})]

    # Requests

    async def dispatch(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self.route(request)
        except Exception as error:
            refusal = refusal_of(error)
            known = {HEADER: request["session"]} if request.get("session") else {}
            return reply(refusal.body, refusal.status, refusal.headers | known)

    async def route(self, request: web.Request) -> web.StreamResponse:
        path = request.raw_path.partition("?")[0]
        if request.method == "OPTIONS" and "cors" in self.extra:
            return web.Response(status=204)
        self.current = principal = "" if request.method == "OPTIONS" or path == "/health" else self.authenticate(request)
        if (control := re.fullmatch("/conformance/v1/(evict|fault|compress)", path)) and request.method == "POST":
            return await self.control(request, principal, control[1])
        for pattern, handlers in self.routes:
            if match := re.fullmatch(pattern, path):
                if request.method not in handlers:
                    allow = ", ".join(handlers)
                    raise Refusal(405, "method_not_allowed", f"This path takes {allow}.", None, {"Allow": allow})
                return await handlers[request.method](request, principal, *(unquote(name) for name in match.groups()))
        raise Refusal(404, "not_found", "There is nothing at this path.")

    def authenticate(self, request: web.Request) -> str:
        values = request.headers.getall("Authorization", [])
        scheme, _, given = (values[0] if len(values) == 1 else "").partition(" ")
        found = [name for key, name in self.keys.items() if hmac.compare_digest(key.encode(), given.encode("utf-8", "surrogateescape"))]
        if self.keys and (scheme.lower() != "bearer" or not found):
            raise Refusal(401, "invalid_api_key", "The key is missing or wrong.")
        return found[0] if found else ""

    async def read(self, request: web.Request, shapes: Json) -> Json:
        if not re.fullmatch(r"application/([^;\s]+\+)?json", request.content_type):
            raise Refusal(415, "unsupported_media_type", "The content type is not application/json.", "Content-Type")
        body = rules.parse(await request.read())
        rules.check(body, shapes)
        return body

    async def cors(self, request: web.Request, response: web.StreamResponse) -> None:
        """Called before the head of any answer is sent, if the server offers cors."""
        names = f"Authorization, Content-Type, Idempotency-Key, {HEADER}"
        response.headers["Access-Control-Allow-Origin"] = "*"
        if request.method == "OPTIONS":
            response.headers.update({"Access-Control-Allow-Methods": "GET, POST, DELETE", "Access-Control-Allow-Headers": names})
        elif not bug("cors-not-on-streams") or response.content_type == "application/json":
            response.headers["Access-Control-Expose-Headers"] = f"{HEADER}, X-Session-Degraded"

    async def close(self, app: web.Application) -> None:
        """A clean end."""
        if self.store.late:
            with self.store.use("write") as db:
                self.store.flush(db)

    # Repeated requests

    async def repeated(self, stack: AsyncExitStack, request: web.Request, principal: str, body: Json, out: Reply,
                       header: str | None) -> tuple[Any, web.StreamResponse | None]:
        """What is to be kept of a request with an Idempotency-Key, and the answer if it is a repetition."""
        key = request.headers.get("Idempotency-Key", "")
        if "idempotency" not in self.extra or not key:
            return None, None
        if len(key) > 256:
            raise Refusal(400, "invalid_request", "The Idempotency-Key is too long.", "Idempotency-Key")
        if not bug("idem-check-then-act"):
            await self.lock(stack, principal, "key", key)
        slug, previous, named, scope = out.slug, body.get("previous_response_id"), header, None
        try:
            if slug is not None and isinstance(out, ResponseReply):
                named = row["session"] if (row := self.store.slug(principal, slug)) else header
            elif previous is not None and isinstance(out, ResponseReply):
                named = row["session"] if (row := self.store.response(principal, previous)) else header
            if named is not None or slug is None:
                scope = "" if named is None else self.store.root(principal, named)
            row = None if scope is None else self.store.replay(principal, scope, key)
        except StoreError:
            if slug is not None or previous is not None or self.options.degraded == "refuse":
                raise
            return None, None
        digest = hashlib.sha256(f"{request.path}\n{json.dumps(body, sort_keys=True)}".encode()).hexdigest()
        if row is None:
            return (scope, key, digest), None
        if row["digest"] != digest:
            raise Refusal(409, "idempotency_key_reused", "This key was used with another body.", "Idempotency-Key")
        kept = json.loads(row["answer"])
        final, answer = kept["final"], Answer(**kept["answer"])
        headers = {"Cache-Control": "no-store", HEADER: final["session"]["id"]}
        if not body.get("stream"):
            return None, reply(final, headers=headers)
        out.again(final)
        if answer.content:
            await out.send(request, headers, out.piece(answer.content))
        pieces: list[Json] = [{"index": i, **call} for i, call in enumerate(answer.tool_calls)]
        for piece in pieces:
            await out.send(request, headers, out.piece(piece))
        return None, await out.send(request, headers, out.end(answer, final))

    # Selecting the session of a turn

    async def lock(self, stack: AsyncExitStack, *key: str) -> None:
        key = key[1:] if bug("lock-without-principal") and key[1] == "session" else key
        if bug("lock-dropped-with-waiters"):
            await stack.enter_async_context(self.dropping(key))
        elif bug("waiter-hangup-leaks-lock"):
            lock = self.busy.setdefault(key, asyncio.Lock())
            await asyncio.shield(lock.acquire())
            stack.callback(lock.release)
        else:
            await stack.enter_async_context(self.locks.setdefault(key, asyncio.Lock()))

    @asynccontextmanager
    async def dropping(self, key: tuple[str, ...]) -> AsyncIterator[None]:
        """Only for the defect lock-dropped-with-waiters."""
        async with self.busy.setdefault(key, asyncio.Lock()):
            try:
                yield
            finally:
                self.busy.pop(key, None)

    def deliver(self, principal: str, root: str) -> None:
        """Only for the defect refused-turn-stored-later."""
        for kept in [k for k in self.outbox if (k[0].principal, k[0].root) == (principal, root)]:
            if not self.store.faults:
                self.outbox.remove(kept)
                self.store.commit(*kept)

    async def by_id(self, stack: AsyncExitStack, principal: str, asked: str, hops: int = -1) -> Turn:
        """The turn in the tip of `asked`, when it is this turn's time to run. All ids of a chain share the lock of its root."""
        while True:
            async with AsyncExitStack() as inner:
                root = asked if bug("lock-by-sent-id") else self.store.root(principal, asked)
                await self.lock(inner, principal, "session", root)
                if bug("lock-by-sent-id") or self.store.root(principal, asked) == root:
                    self.deliver(principal, root)
                    turn = Turn(principal, asked, self.store.tip(principal, asked, hops), root)
                    row = self.store.session(principal, turn.session)
                    if row is not None:
                        turn.exists, turn.head, turn.history = True, row["head"], self.store.history(row["head"])
                    stack.push_async_exit(inner.pop_all())
                    return turn

    async def by_header(self, stack: AsyncExitStack, request: web.Request, principal: str, asked: str) -> Turn:
        request["session"] = asked
        try:
            return await self.by_id(stack, principal, unquote(asked) if bug("id-unquoted") else asked)
        except StoreError:
            if self.options.degraded == "refuse":
                raise
            return Turn(principal, asked, asked, asked, degraded=True)

    async def by_slug(self, stack: AsyncExitStack, principal: str, slug: str, header: str | None) -> Turn:
        slug = rules.numeric(slug) if bug("slug-numeric-affinity") else slug
        if not bug("slug-first-race"):
            await self.lock(stack, principal, "slug", slug)
        row, turn = self.store.slug(principal, slug), None
        if row is not None:
            turn = await self.by_id(stack, principal, row["session"], 1 if bug("slug-one-hop") else -1)
            turn.asked = turn.root
            last = self.store.response(principal, row["last_response"])
            if bug("slug-reads-own-chain") and last is not None and last["session"] == turn.session:
                turn.head, turn.history = last["node"], self.store.history(last["node"])
            if last is None:
                log.info("Slug %r continues in session %s although its last response is gone.", slug, turn.session)
        if turn is None or not turn.exists:
            turn = await self.by_id(stack, principal, header) if header else fresh(principal)
            named = self.store.named(principal, turn.session)
            if named is not None and named["slug"] not in (None, slug):
                raise conflict()
        elif header and self.store.root(principal, header) != turn.root:
            raise conflict()
        turn.slug = slug
        return turn

    async def by_response(self, stack: AsyncExitStack, principal: str, name: str, header: str | None) -> Turn:
        """Continues the session of a response if nothing came after it when the turn starts to run; otherwise branches."""
        found = self.store.response(principal, name, cached=True)
        row = self.store.session(principal, found["session"]) if found else None
        if found and row and row["head"] == found["node"] and row["next"] is None:
            async with AsyncExitStack() as inner:
                turn = await self.by_id(inner, principal, found["session"])
                if bug("decide-before-lock"):
                    turn.head, turn.history = found["node"], self.store.history(found["node"])
                found = self.store.response(principal, name, cached=True)
                if found and turn.session == found["session"] and turn.head == found["node"]:
                    turn.asked = turn.root
                    if header and self.store.root(principal, header) != turn.root:
                        raise conflict()
                    stack.push_async_exit(inner.pop_all())
                    return turn
        if found is None:
            raise missing("previous_response", "previous_response_id")
        if header:
            raise conflict()
        turn = fresh(principal)
        turn.head, turn.kind, turn.parent = found["node"], "branch", found["session"]
        if bug("branch-from-tip") and row and row["next"]:
            turn.head = self.store.session(principal, self.store.tip(principal, row["id"]))["head"]  # type: ignore[index]
        turn.history = self.store.history(turn.head)
        return turn

    # Turns

    async def chat(self, request: web.Request, principal: str) -> web.StreamResponse:
        body = await self.read(request, rules.CHAT)
        header = rules.session_id(request.headers.getall(HEADER, []))
        async with AsyncExitStack() as stack:
            replay, done = await self.repeated(stack, request, principal, body, ChatReply(body, None), header)
            if done is not None:
                return done
            if not header and self.options.derivation == "none":
                turn = fresh(principal)
            else:
                turn = await self.by_header(stack, request, principal, header or rules.derive(body["messages"], self.options.derivation))
            turn.replay = replay
            return await self.turn(stack, request, turn, body, ChatReply(body, None), whole=header is None)

    async def responses(self, request: web.Request, principal: str) -> web.StreamResponse:
        body = await self.read(request, rules.RESPONSES)
        header, slug = rules.session_id(request.headers.getall(HEADER, [])), body.get("conversation")
        slug = slug["id"] if isinstance(slug, dict) else slug
        async with AsyncExitStack() as stack:
            replay, done = await self.repeated(stack, request, principal, body, ResponseReply(body, slug), header)
            if done is not None:
                return done
            if body.get("previous_response_id") is not None:
                turn = await self.by_response(stack, principal, body["previous_response_id"], header)
            elif slug is not None:
                turn = await self.by_slug(stack, principal, slug, header)
            else:
                turn = await self.by_header(stack, request, principal, header) if header else fresh(principal)
            turn.store = bool(body.get("store", True)) if bug("store-null-is-false") else body.get("store") is not False
            turn.replay = replay
            return await self.turn(stack, request, turn, body, ResponseReply(body, slug), whole=False)

    async def turn(self, stack: AsyncExitStack, request: web.Request, turn: Turn, body: Json, out: Reply,
                   whole: bool) -> web.StreamResponse:
        turn.stream = bool(body.get("stream"))
        request["session"] = self.told(turn, request)
        headers = {"Cache-Control": "no-store", HEADER: request["session"]}
        headers |= {"X-Session-Degraded": "history-unavailable"} if turn.degraded else {}
        payload = self.payload(body, isinstance(out, ChatReply), self.compose(turn, body, isinstance(out, ChatReply), whole))
        calls = {(turn.principal, turn.session, m["tool_call_id"]) for _, m in turn.fresh if m["role"] == "tool"}
        self.spent |= calls if bug("failed-turn-spends-call") else set()
        if not turn.stream:
            final = self.finish(turn, await self.model.ask(payload), out, request)
            self.spent -= calls
            return reply(final, headers=headers | {HEADER: final["session"]["id"]})
        answer, drafted = Answer(), bug("draft-question") and turn.exists and not turn.compressed
        try:
            async with aclosing(self.model.stream(payload)) as pieces:
                async for piece in pieces:
                    if drafted and not out.started:
                        turn.anchor, turn.fresh = self.store.move_head(turn, turn.anchor, turn.fresh), []
                    if isinstance(piece, Answer):
                        answer = piece
                    else:
                        await out.send(request, headers, out.piece(piece))
                        answer.content += piece if isinstance(piece, str) else ""
                    if out.gone and bug("hangup-stores-partial"):
                        break
            final = self.finish(turn, answer, out, request)
            self.spent -= calls
        except Exception as error:
            if drafted:
                self.store.move_head(turn, turn.head, [])
            if not out.started:
                raise
            return await out.send(request, headers, out.fail(refusal_of(error)))
        finally:
            if out.gone and bug("hangup-keeps-lock"):
                self.abandoned.append(stack.pop_all())
        return await out.send(request, headers, out.end(answer, final))

    def told(self, turn: Turn, request: web.Request) -> str:
        if bug("id-unquoted") and turn.session == unquote(request.headers.get(HEADER, "")):
            return request.headers[HEADER]
        return turn.asked if self.options.echo == "alias" else turn.session

    def compose(self, turn: Turn, body: Json, chat: bool, whole: bool) -> list[Json]:
        """Fills in what the turn will store, and returns what the model sees."""
        stored = [(kind, message) for _, kind, message in turn.history]
        systems: list[Json] = []
        if whole:  # The body is the history.
            entries = rules.rebase(body["messages"], stored)
            start = rules.new_input([m for _, m in entries])
            before, new = entries[:start], entries[start:]
        else:
            systems, added = rules.chat_input(body) if chat else rules.response_input(body)
            before, new = stored, [("", m) for m in added]
        unasked = any(at >= len(before) for at in rules.scan([m for _, m in before + new])[1])
        if bug("open-calls-in-memory") and not whole:
            given = {call["id"] for _, m in new for call in m.get("tool_calls") or []}
            unasked |= any(m["role"] == "tool" and m["tool_call_id"] not in given
                           and (turn.principal, m["tool_call_id"]) not in self.calls for _, m in new)
        if unasked and turn.degraded:
            raise StoreError("the call of a result cannot be read")
        if unasked or any((turn.principal, turn.session, m.get("tool_call_id")) in self.spent for _, m in new):
            raise Refusal(404, "tool_call_not_found", "The results answer no open tool call.", "messages" if chat else "input")
        turn.anchor, turn.new = turn.head, len(new)
        last = max((i for i, (_, m) in enumerate(before) if m["role"] == "user"), default=0)
        if bug("regenerate-repeated") and not whole and last and before[last:last + 1] == new:
            before, turn.anchor = before[:last], turn.history[last - 1][0]
        due = (turn.principal, turn.root) in self.pending or sum(len(json.dumps(m)) for _, m in before) > self.options.context_chars
        short = rules.compress(before) if due and turn.store and not turn.degraded else before
        turn.compressed, before, turn.fresh = short is not before, short, new
        if bug("derived-append-only") and whole and stored and not turn.compressed:
            turn.fresh = (before + new)[len(stored):] or new
        elif whole or turn.compressed:  # The body, or the summary, replaces the stored history from where they differ.
            turn.anchor, turn.fresh = None, before + new
            for node, kind, message in turn.history:
                if len(turn.fresh) < 2 or turn.fresh[0] != (kind, message):
                    break
                turn.anchor, turn.fresh = node, turn.fresh[1:]
        if bug("instructions-stick") and not chat and any(m["role"] == "tool" for _, m in new):
            turn.fresh = [("", m) for m in systems] + turn.fresh
        if bug("input-stores-last-item") and not chat:
            start = rules.new_input([m for _, m in new])
            turn.fresh = turn.fresh[:max(0, len(turn.fresh) - len(new))] + new[start:]
        shown = [m for kind, m in before if kind or not systems or m["role"] not in SYSTEM or bug("stored-system-doubles")]
        return rules.pair(systems + shown + [m for _, m in new])

    def payload(self, body: Json, chat: bool, messages: list[Json]) -> Json:
        tools, choice = body.get("tools") or [], body.get("tool_choice")
        sent: Json = {"model": body["model"], "messages": messages, "stream": bool(body.get("stream"))}
        sent |= {name: body[name] for name in (*PASSED, *(["stream_options"] if chat else [])) if body.get(name) is not None}
        if not chat:
            tools = [t if "function" in t else {"type": "function", "function": {k: v for k, v in t.items() if k != "type"}}
                     for t in tools if t["type"] == "function"]
            if isinstance(choice, dict) and "name" in choice:
                choice = {"type": "function", "function": {"name": choice["name"]}}
            if body.get("max_output_tokens") is not None:
                sent["max_tokens"] = body["max_output_tokens"]
        return sent | ({"tools": tools} if tools else {}) | ({"tool_choice": choice} if tools and choice is not None else {})

    def finish(self, turn: Turn, answer: Answer, out: Reply, request: web.Request) -> Json:
        """Commits the turn and returns the answer. Nothing that acknowledges the turn was sent before."""
        rotates = turn.compressed and turn.exists and self.options.compaction == "rotate"
        rotated = fresh(turn.principal).session if rotates else None
        told = rotated if rotated and self.options.echo == "tip" else self.told(turn, request)
        final = out.final(answer, {"id": told, "rotated_from": turn.session if rotated else None, "degraded": turn.degraded})
        turn.principal = self.current if turn.stream and bug("principal-on-server") else turn.principal
        if bug("open-calls-in-memory"):
            self.calls |= {(turn.principal, call["id"]) for call in answer.tool_calls}
        if bug("empty-answer-unstored") and not answer.content and not answer.tool_calls:
            return final
        if turn.store and (not turn.degraded or bug("degraded-overwrites")):
            kept = final if isinstance(out, ResponseReply) else None
            if kept and turn.stream and bug("stream-stored-unfinished"):
                kept = final | {"status": "in_progress", "output": []}
            if turn.replay is not None:
                turn.replayed = json.dumps({"final": final, "answer": asdict(answer)})
            try:
                self.store.commit(turn, answer.message(), rotated, kept)
            except StoreError:
                if bug("refused-turn-stored-later"):
                    self.outbox.append((turn, answer.message(), rotated, kept))
                if not (turn.stream and bug("stream-write-failure-hidden")):
                    raise
            if turn.compressed:
                self.pending.discard((turn.principal, turn.root))
        elif turn.slug and turn.exists and bug("unstored-binds-slug"):
            with self.store.use("write") as db:
                self.store.bind(db, turn, None, None)
        return final

    # What is stored

    def find(self, principal: str, name: str) -> Any:
        row = self.store.session(principal, name)
        if row is None:
            raise missing("session", "session_id")
        return row

    def describe(self, principal: str, row: Any) -> Json:
        return {"id": row["id"], "object": "session", "created_at": row["created"], "parent_id": row["parent"],
                "tip_id": self.store.tip(principal, row["id"]), "end_reason": row["end_reason"], "conversation": row["slug"]}

    async def get_response(self, request: web.Request, principal: str, name: str) -> web.Response:
        row = self.store.response(principal, name)
        if row is None:
            raise missing("response", "response_id")
        return reply(json.loads(row["body"]))

    async def delete_response(self, request: web.Request, principal: str, name: str) -> web.Response:
        if not self.store.delete_response(principal, name):
            raise missing("response", "response_id")
        return reply({"id": name, "object": "response", "deleted": True})

    async def list_sessions(self, request: web.Request, principal: str) -> web.Response:
        limit, after = request.query.get("limit", "20"), request.query.get("after")
        if not re.fullmatch("[0-9]{1,3}", limit) or not 1 <= int(limit) <= 100:
            raise Refusal(400, "invalid_request", "limit is not a number from 1 to 100.", "limit")
        rows = self.store.sessions(principal, int(limit), after)
        if rows is None:
            raise missing("session", "after")
        data = [self.describe(principal, row) for row in rows[:int(limit)]]
        return reply({"object": "list", "data": data, "has_more": len(rows) > int(limit)})

    async def get_session(self, request: web.Request, principal: str, name: str) -> web.Response:
        return reply(self.describe(principal, self.find(principal, name)))

    async def get_messages(self, request: web.Request, principal: str, name: str) -> web.Response:
        history = self.store.history(self.find(principal, name)["head"])
        return reply({"object": "list", "data": [{"content": None} | m for _, _, m in history], "has_more": False})

    async def delete_session(self, request: web.Request, principal: str, name: str) -> web.Response:
        async with AsyncExitStack() as stack:
            turn = await self.by_id(stack, principal, name)  # Waits for a turn that runs in the session.
            self.find(principal, name)
            self.store.delete_session(principal, name)
            self.pending.discard((principal, turn.root))
        return reply({"id": name, "object": "session", "deleted": True})

    # Discovery and controls

    async def models(self, request: web.Request, principal: str) -> web.Response:
        return reply({"object": "list", "data": [{"id": "any", "object": "model", "created": 1760000000, "owned_by": "indep"}]})

    async def health(self, request: web.Request, principal: str) -> web.Response:
        return reply({"status": "ok"})

    async def capabilities(self, request: web.Request, principal: str) -> web.Response:
        options = {name: getattr(self.options, name) for name in ("derivation", "compaction", "echo", "degraded")}
        options |= {"turns": "serialize", "environment": "none", "tells": "header", "announces": "finish-chunk"}
        return reply({"object": "capabilities", "continuity": {
            "release": "1.0", "header": HEADER, "headers": [HEADER], "options": options, "single_user": not self.keys,
            "offers": OFFERS + (["tenants"] if self.keys else []) + sorted(self.extra), "controls": bool(self.options.control_token)}})

    async def control(self, request: web.Request, principal: str, name: str) -> web.Response:
        token = request.headers.get("X-Conformance-Token", "").encode("utf-8", "surrogateescape")
        if (not self.options.control_token or request.remote not in ("127.0.0.1", "::1")
                or not hmac.compare_digest(token, self.options.control_token.encode())):
            raise Refusal(404, "not_found", "There is nothing at this path.")
        body = rules.parse(await request.read())
        if name == "fault":
            if body.get("what") not in ("read", "write", *(["lineage"] if self.options.compaction == "rotate" else [])):
                raise Refusal(404, "not_found", "There is no such control.")
            (self.store.faults.add if body.get("on") else self.store.faults.discard)(body["what"])
        elif name == "compress":
            self.find(principal, str(body.get("session_id")))
            self.pending.add((principal, self.store.root(principal, str(body["session_id"]))))
        elif not self.store.delete_response(principal, str(body.get("response_id")), cache=True):
            raise missing("response", "response_id")
        return reply({"ok": True})


def bad_http(self: Any, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None,
             message: str | None = None) -> web.StreamResponse:
    """The answer to a request that is not HTTP, such as one with a control character in a header."""
    if request.writer.output_size > 0:
        raise ConnectionError("the answer was begun")
    answer = reply(Refusal(status, "internal_error" if status >= 500 else "invalid_request", "The request cannot be read.").body, status)
    answer.force_close()
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--db", required=True)
    parser.add_argument("--model", required=True, help="base URL of an OpenAI-compatible model")
    parser.add_argument("--key", action="append", default=[], metavar="PRINCIPAL=KEY")
    parser.add_argument("--control-token", help="turns the control API on")
    parser.add_argument("--keep-responses", type=int, default=1000, help="for each principal")
    parser.add_argument("--derivation", choices=["content-v1", "content-v2", "none"], default="content-v2")
    parser.add_argument("--compaction", choices=["rotate", "in-place"], default="rotate")
    parser.add_argument("--echo", choices=["tip", "alias"], default="tip")
    parser.add_argument("--degraded", choices=["answer", "refuse"], default="answer")
    parser.add_argument("--context-chars", type=int, default=8_000_000, help="longer histories are compressed")
    parser.add_argument("--offer", action="append", default=[], choices=["cors", "idempotency"], help="offers this too")
    parser.add_argument("--defect", action="append", default=[], choices=sorted(defects.NAMES), metavar="NAME")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    defects.ACTIVE.update(options.defect)
    server, app = Server(options), web.Application(client_max_size=4 << 20)
    web_protocol.RequestHandler.handle_error = bad_http  # type: ignore[method-assign]
    app.router.add_route("*", "/{rest:.*}", server.dispatch)
    app.on_cleanup.append(server.close)
    if "cors" in server.extra:
        app.on_response_prepare.append(server.cors)
    web.run_app(app, host="127.0.0.1", port=options.port, access_log=None, print=None, shutdown_timeout=5, keepalive_timeout=75,
                handler_cancellation=bug("waiter-hangup-leaks-lock"))


if __name__ == "__main__":
    main()
