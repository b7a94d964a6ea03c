"""A small earlier release: responses by slug, stored in the old schema. Usage: old_release.py PORT DATABASE.

Its answers have the marks of the probe model, which it does not ask.
"""

import json
import re
import secrets
import sqlite3
import sys
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations (name TEXT PRIMARY KEY, response_id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS responses (response_id TEXT PRIMARY KEY, data TEXT NOT NULL, accessed_at REAL NOT NULL);
"""
PORT, DATABASE = int(sys.argv[1]), sys.argv[2]


def stored(database, slug):
    """The session and the history of a slug."""
    query = "SELECT data FROM responses JOIN conversations USING (response_id) WHERE name = ?"
    row = database.execute(query, (slug,)).fetchone()
    data = json.loads(row[0]) if row else {"session_id": f"old-{secrets.token_hex(8)}", "conversation_history": []}
    return data["session_id"], data["conversation_history"]


def answered(body):
    """Store a turn, and return its response."""
    ident, slug = f"resp_{secrets.token_hex(12)}", body.get("conversation") or secrets.token_hex(8)
    text = f"Noted. [a:{re.search(r'u:([0-9a-f]{8})', body['input'])[1]}#0]"
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    created = int(time.time())
    frame = {"id": ident, "object": "response", "created_at": created, "status": "completed", "model": "old"}
    response = {**frame, "output": [item]}
    with closing(sqlite3.connect(DATABASE)) as database, database:
        database.executescript(SCHEMA)
        session, history = stored(database, slug)
        turn = [{"role": "user", "content": body["input"]}, {"role": "assistant", "content": text}]
        data = {"response": response, "session_id": session, "conversation_history": [*history, *turn]}
        database.execute("INSERT INTO responses VALUES (?, ?, ?)", (ident, json.dumps(data), time.time()))
        database.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?)", (slug, ident))
    return response


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.reply(200, {"status": "ok"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = self.path == "/v1/responses" and not body.get("stream")
        self.reply(200, answered(body)) if known else self.reply(404, {"error": {"message": "Unknown path."}})

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


HTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
