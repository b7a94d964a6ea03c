"""A small server that a test starts as a process through the kit. It reports its environment, and can be slow at its first turn or at its end."""

import argparse
import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("port", type=int)
parser.add_argument("--first-turn", type=float, default=0.0)
parser.add_argument("--refuses", action="store_true")
parser.add_argument("--deaf", action="store_true")
parser.add_argument("--redirects", default="")
options = parser.parse_args()
turns, asked = [], []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked.append(dict(self.headers))
        here = sorted(map(str, Path().rglob("*.txt")))
        self._answer({"env": dict(os.environ), "turns": turns, "asked": asked, "here": here})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.0 if turns else options.first_turn)
        turns.append(dict(self.headers))
        self._answer({"error": "no model"} if options.refuses else {}, 503 if options.refuses else 200)

    def _answer(self, body: object, status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(307 if options.redirects else status)
        if options.redirects:
            self.send_header("Location", options.redirects + self.path)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if options.deaf:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()
