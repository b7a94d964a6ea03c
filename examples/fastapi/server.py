"""A server that keeps conversations: Session Continuity 1.0 with FastAPI and SQLite. This file has the HTTP surface."""
import argparse
import asyncio
import json
import logging
import re
import signal
import sys

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

import store as queries
from protocol import ApiError, Turn, chat_turn, check, parse, response_turn
from turns import Answer, ChatAnswer, Model, ResponseAnswer, Turns

HEADER = "X-Hermes-Session-Id"
MAX_BODY = 10_000_000


def reply(content, session_id: str | None = None) -> Response:
    """An error, a JSON object, or a stream of events; with the session, if it was found (ECHO-01, ECHO-08)."""
    headers = {"Cache-Control": "no-store"} | ({HEADER: session_id} if session_id else {})
    if isinstance(content, ApiError):
        return Response(json.dumps({"error": content.error}), content.status, headers, "application/json")
    if isinstance(content, dict):  # in pure ASCII, which carries even a lone surrogate of the model
        return Response(json.dumps(content), 200, headers, "application/json")
    return StreamingResponse(content, 200, headers, "text/event-stream")


def gate(app, keys: dict[str, str]):
    """ASGI middleware: who is asking? It answers 401 before anything is read (ISOLATE-01)."""
    principals = {f"Bearer {secret}".encode(): name for name, secret in keys.items()}

    async def guarded(scope, receive, send):
        next_app = app
        if scope["type"] == "http":
            sent = b",".join(value for name, value in scope["headers"] if name == b"authorization")
            scope["state"] = {"principal": principals.get(sent) if keys else "single user"}
            if not scope["state"]["principal"] and scope["path"] != "/health" and scope["method"] != "OPTIONS":
                next_app = reply(ApiError(401, "invalid_api_key", "The key is missing or wrong."))
        await next_app(scope, receive, send)
    return guarded


async def read_body(request: Request) -> dict:
    body = bytearray()
    async for piece in request.stream():  # to its end, or the client would see a reset instead of the 413 (4.11)
        body += piece if len(body) <= MAX_BODY else b""
    if len(body) > MAX_BODY:
        raise ApiError(413, "request_too_large", f"The request has more than {MAX_BODY} bytes.")
    return parse(bytes(body))


def session_header(request: Request) -> str | None:
    values = request.headers.getlist(HEADER)
    value = values[0].strip(" \t") if values else ""  # an empty value is no header (ECHO-04)
    if len(values) > 1 or value and not re.fullmatch(r"[!-~]{1,256}", value):  # ISOLATE-03, ISOLATE-04
        raise ApiError(400, "invalid_session_id", "Send one session id, of 1 to 256 visible ASCII characters.", HEADER)
    return value or None


async def run_turn(request: Request, turns: Turns, read_turn, answer_class: type[Answer]) -> Response:
    """Runs a turn in a task of its own. The headers go out with its first event, so earlier failures have a status."""
    header, body = session_header(request), await read_body(request)
    check(bool(body.get("model")), "model")
    turn, answer, events = read_turn(request.state.principal, header, body), answer_class(body), asyncio.Queue()
    task = asyncio.create_task(produce(turns, turn, answer, events))
    # Undo a turn that nobody waits for, so that it does not keep its session busy (STREAM-03, HISTORY-16). The body
    # has been read, so all that can still come is http.disconnect.
    watcher = asyncio.create_task(request.receive())
    watcher.add_done_callback(lambda _: task.cancel())
    task.add_done_callback(lambda _: watcher.cancel())
    first = await events.get()
    if first is None:
        raise ClientDisconnect
    return reply(drain(first, events) if isinstance(first, str) else first, answer.session_id)


async def produce(turns: Turns, turn: Turn, answer: Answer, events: asyncio.Queue):
    try:
        await turns.run(turn, answer, events.put_nowait)
    except Exception as failure:
        if not isinstance(failure, ApiError):
            logging.exception("defect")
            failure = ApiError(500, "internal_error", "The server has a defect.")
        events.put_nowait(answer.failure(failure.error) if answer.started else failure)
    finally:  # the end, also if the turn was cancelled
        events.put_nowait(None)


async def drain(event, events: asyncio.Queue):
    while event is not None:
        yield event
        event = await events.get()


def build_app(store: queries.Store, model: Model, keys: dict[str, str], token: str | None) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.add_middleware(gate, keys=keys)
    app.add_exception_handler(ApiError, lambda request, error: reply(error))
    app.add_exception_handler(ClientDisconnect, lambda *_: Response(status_code=400))  # nobody reads it
    turns = Turns(store, model)

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        return await run_turn(request, turns, chat_turn, ChatAnswer)

    @app.post("/v1/responses")
    async def respond(request: Request) -> Response:
        return await run_turn(request, turns, response_turn, ResponseAnswer)

    @app.get("/v1/responses/{response_id}")
    async def get_response(request: Request, response_id: str) -> Response:
        row = await store.read(queries.find_response, request.state.principal, response_id)
        return reply(json.loads(row["body"]))

    @app.delete("/v1/responses/{response_id}")
    async def delete_response(request: Request, response_id: str) -> Response:
        await store.write(queries.delete_response, request.state.principal, response_id)
        return reply({"id": response_id, "object": "response", "deleted": True})

    @app.get("/v1/models")
    async def models() -> Response:  # `model` is passed on as it is; this is only a name for clients that need one
        return reply({"object": "list", "data": [{"id": "any", "object": "model", "created": 0, "owned_by": "me"}]})

    @app.get("/v1/capabilities")
    async def capabilities() -> Response:  # all of it must be true (DISCOVER-02)
        options = {"derivation": "none", "compaction": "in-place", "echo": "tip", "degraded": "refuse",
                   "turns": "serialize", "environment": "none", "tells": "header", "announces": "finish-chunk"}
        offers = ["chat", "responses", "stored-responses", "streaming"] + (["tenants"] if keys else [])
        return reply({"object": "capabilities", "continuity": {
            "release": "1.0", "header": HEADER, "headers": [HEADER], "options": options, "offers": offers,
            "single_user": not keys, "controls": token is not None}})

    @app.get("/health")
    async def health() -> Response:
        return reply({"status": "ok"})

    @app.post("/conformance/v1/{name}")
    async def control(request: Request, name: str) -> Response:
        """Causes evictions and store faults for a conformance run (chapter 5)."""
        if token is None or request.headers.get("X-Conformance-Token") != token:
            raise ApiError(404, "not_found", "There is nothing here.")
        body = await read_body(request)
        if name == "evict":
            await store.write(queries.delete_response, request.state.principal, body.get("response_id"))
        elif name == "fault" and body.get("what") in ("read", "write"):
            (store.faults.add if body.get("on") else store.faults.discard)(body["what"])
        else:
            raise ApiError(404, "not_found", "There is no such control.")
        return reply({})

    return app


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--db", required=True, help="file of the SQLite database")
    parser.add_argument("--model", required=True, help="base URL of an OpenAI-compatible model, ending in /v1")
    parser.add_argument("--key", action="append", default=[], metavar="NAME=SECRET", help="a principal and its key")
    parser.add_argument("--keep-responses", type=int, default=1000, help="of each principal; older ones are evicted")
    parser.add_argument("--idle-seconds", type=int, default=75, help="a connection without a request is closed then")
    parser.add_argument("--control-token", help="turns the control API for conformance runs on")
    args = parser.parse_args()
    logging.basicConfig(format="%(levelname)s %(message)s")
    store, keys = queries.Store(args.db, args.keep_responses), dict(key.split("=", 1) for key in args.key)
    app = build_app(store, Model(args.model), keys, args.control_token)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn repeats the signal when it has shut down
    uvicorn.run(app, host="127.0.0.1", port=args.port, timeout_keep_alive=args.idle_seconds,
                timeout_graceful_shutdown=5, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
