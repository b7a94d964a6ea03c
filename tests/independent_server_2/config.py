"""Command line and the few globals that every module needs."""
import argparse
import sys

DEFECTS = """
repeat-as-retry clip-64k history-window empty-answer-dropped length-unstored json-result tool-loop-instructions early-bind slug-prefix
path-plus evict-by-second branch-to-tip branch-steals-slug idem-memory idem-stuck idem-fingerprint replay-new-id group-commit
stream-commit-late breaker cache-before-commit done-is-finish retry-keeps-pieces hangup-before-head sse-splitlines delta-last-call
stream-text-with-call cache-depth tip-unscoped cut-through-call rotate-drops-slug covers-count summary-fallback stale-tip-in-queue
lock-by-name lock-pop call-id-map abandoned-once regenerate-appends delete-forward delete-unlocked like-delete foreign-delete id-255
list-by-second cors-stream gc-shared idem-global lock-prune utf8-chunks branch-race-delete replay-after-delete idem-scope-tip
empty-slug-cleanup
""".split()

active = set()


def bug(name):
    return name in active


def parse(argv=None):
    p = argparse.ArgumentParser(prog='gateway')
    a = p.add_argument
    a('--host', default='127.0.0.1')
    a('--port', type=int, default=8080)
    a('--db', default='gateway.db')
    a('--model', required=True, help='base URL of an OpenAI-compatible model, ending in /v1')
    a('--model-key', default='')
    a('--model-timeout', type=float, default=120.0)
    a('--control-token', default='')
    a('--key', action='append', default=[], metavar='NAME=KEY')
    a('--keep-responses', type=int, default=1000)
    a('--max-body', type=int, default=8_000_000)
    a('--context-chars', type=int, default=240_000, help='a longer history is compressed')
    a('--derivation', choices=['content-v1', 'content-v2', 'none'], default='content-v2')
    a('--compaction', choices=['rotate', 'in-place'], default='rotate')
    a('--echo', choices=['tip', 'alias'], default='tip')
    a('--degraded', choices=['answer', 'refuse'], default='answer')
    a('--turns', choices=['serialize', 'reject'], default='serialize')
    a('--announces', choices=['finish-chunk', 'event'], default='event')
    a('--hangup', choices=['finish', 'drop'], default='finish', help='what happens to a streamed turn whose client is gone')
    a('--keep-alive', type=float, default=5.0)
    a('--close-errors', choices=['yes', 'no'], default='yes', help='Connection: close after a 4xx or 5xx')
    a('--sse', choices=['rich', 'plain'], default='rich', help='comments and event ids in streams')
    a('--cors', default='*', help='allowed origin; empty: no CORS')
    a('--defect', action='append', default=[])
    args = p.parse_args(argv)
    args.keys = {}
    for k in args.key:
        name, sep, key = k.partition('=')
        if not sep or not name or not key:
            p.error('--key needs NAME=KEY')
        args.keys[key] = name
    for d in args.defect:
        if d not in DEFECTS:
            sys.exit('no such defect: ' + d)
        active.add(d)
    args.model = args.model.rstrip('/')
    return args
