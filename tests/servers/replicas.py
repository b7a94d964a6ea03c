"""Clients that talk to two servers on one database, and judge by the answers whether a turn was lost.

The built-in model lists in its answer which turns it was sent. So the answers of a conversation show whether each turn saw exactly those before it.
"""

import json
import re
import secrets
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from reference_process import HEADER, said

_SEEN = re.compile(r"u:([0-9a-f]{8})")


@dataclass
class Conversation:
    """One conversation: what it is named by, and the turns that the model saw in each answer."""

    name: str = field(default_factory=lambda: f"c-{secrets.token_hex(6)}")
    views: list[list[str]] = field(default_factory=list)

    def problems(self):
        """The turns that did not see exactly those before them. Empty if nothing was lost."""
        views, before, found = sorted(self.views, key=len), [], []
        for view in views:
            if view[:-1] != before:
                found.append(f"{self.name}: {view} does not follow {before}")
            before = view
        return found


def by_header(server, conversation, mark):
    return server.chat(f"[u:{mark}]", conversation.name)


def streamed(server, conversation, mark):
    """A streamed turn by header, with its text put together as a plain answer has it."""
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": f"[u:{mark}]"}]})
    headers = {"Content-Type": "application/json", "Authorization": "Bearer key-of-alice", HEADER: conversation.name}
    request = urllib.request.Request(f"{server.url}/v1/chat/completions", body.encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        lines = [line.removeprefix(b"data: ") for line in answer.read().splitlines() if line.startswith(b"data: {")]
    deltas = [choice["delta"].get("content") or "" for line in lines for choice in json.loads(line)["choices"]]
    return 200, {}, {"object": "chat.completion", "choices": [{"message": {"content": "".join(deltas)}}]}


def by_slug(server, conversation, mark):
    return server.respond(f"[u:{mark}]", conversation=conversation.name)


def take_turns(servers, send, conversations=8, turns=10):
    """Each conversation has one client on each server, and both send at the same time. Returns the problems."""
    talks = [Conversation() for _ in range(conversations)]

    def client(talk, server, together):
        for _ in range(turns):
            together.wait(60)
            mark = secrets.token_hex(4)
            status, _, body = send(server, talk, mark)
            seen = seen_in(body) if status == 200 else []
            talk.views.append(seen if seen[-1:] == [mark] else [mark, "answered with", str(status)])

    jobs = [
        (talk, server, barrier) for talk in talks for barrier in [threading.Barrier(len(servers))] for server in servers
    ]
    with ThreadPoolExecutor(len(jobs)) as pool:
        list(pool.map(lambda job: client(*job), jobs))
    for talk in talks:
        talk.views.append(seen_in(send(servers[0], talk, secrets.token_hex(4))[2]))
    return [problem for talk in talks for problem in talk.problems()]


def branch(servers, conversations=8, turns=10):
    """Two clients go on from one response at the same time, each on its server. Each must see its own line and nothing else."""
    problems = []

    def line(server, first, mark, together):
        response, seen = first["id"], [mark]
        for _ in range(turns):
            together.wait(60)
            seen = [*seen, secrets.token_hex(4)]
            _, _, body = server.respond(f"[u:{seen[-1]}]", previous_response_id=response)
            response = body["id"]
            if seen_in(body) != seen:
                problems.append(f"{seen_in(body)} instead of {seen}")

    def conversation(_):
        mark, together = secrets.token_hex(4), threading.Barrier(len(servers))
        first = servers[0].respond(f"[u:{mark}]")[2]
        with ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(lambda server: line(server, first, mark, together), servers))

    with ThreadPoolExecutor(conversations) as pool:
        list(pool.map(conversation, range(conversations)))
    return problems


def repeat(servers, conversations=8, turns=10):
    """The same turn with the same Idempotency-Key goes to both servers at once. It must run once, with one answer."""
    problems = []

    def once(talk, together, server, mark):
        together.wait(60)
        key = {"Idempotency-Key": f"key-{mark}"}
        return said(server.chat(f"[u:{mark}]", talk.name, headers=key)[2])

    def conversation(_):
        talk, together = Conversation(), threading.Barrier(len(servers))
        for _ in range(turns):
            mark = secrets.token_hex(4)
            with ThreadPoolExecutor(len(servers)) as pool:
                answers = list(pool.map(lambda server, mark=mark: once(talk, together, server, mark), servers))
            talk.views.append(_SEEN.findall(answers[0]))
            if len(set(answers)) > 1:
                problems.append(f"{talk.name}: two answers to one key: {answers}")
        problems.extend(talk.problems())

    with ThreadPoolExecutor(conversations) as pool:
        list(pool.map(conversation, range(conversations)))
    return problems


def seen_in(body):
    """The turns that the model saw, in order, through summaries too."""
    return _SEEN.findall(said(body).partition(" saw ")[2])
