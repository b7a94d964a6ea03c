"""The requests that are measured, as bytes: short turns, in sessions that go on for ten turns."""

import json
from typing import Any, Final

TURNS_A_SESSION: Final = 10
SAID: Final = "What is the capital of France, and how many people live there?"
SESSION: Final = "X-Hermes-Session-Id"
CHAT: Final = "/v1/chat/completions"


def request(path: str, body: dict[str, Any], session: str = "") -> bytes:
    data = json.dumps({"model": "continuity-agent", **body}).encode()
    named = f"{SESSION}: {session}\r\n" if session else ""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{named}"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


def chat(session: str, *, stream: bool = False, path: str = CHAT) -> bytes:
    return request(path, {"messages": [{"role": "user", "content": SAID}], "stream": stream}, session)


def respond(**named: str) -> bytes:
    """A turn of the other endpoint, in the session that a slug or an earlier response names."""
    return request("/v1/responses", {"input": SAID, **named})


def body_of(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


def pieces_of(answer: bytes) -> list[str]:
    """The chunks of a streamed answer."""
    pieces, rest = [], body_of(answer)
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        pieces.append(rest[:length].decode())
        rest = rest[length + 2 :]
    return [piece for piece in pieces if piece]
