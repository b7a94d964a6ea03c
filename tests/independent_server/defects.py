"""Defects that can be planted with --defect NAME. Each is described in defects.md, or in defects2.md (SECOND)."""

FIRST = frozenset("""
slug-pruned-at-start idle-slug-cleanup branch-becomes-next group-commit draft-question hangup-stores-partial hangup-keeps-lock
failed-turn-spends-call stream-response-node stream-same-name-calls utf8-split delete-downstream-only evicts-by-id
deleted-response-continues slug-rtrim slug-limit-bytes id-unquoted tip-without-principal delete-foreign-response after-foreign-cursor
page-by-second unstored-binds-slug store-null-is-false instructions-stick stored-system-doubles compress-cuts-open-call slug-one-hop
lock-by-sent-id decide-before-lock slug-first-race derived-append-only announce-only-on-stop degraded-overwrites
stream-write-failure-hidden principal-on-server results-by-call-id history-window regenerate-repeated gc-forgets-responses
like-lookup stores-text-only branch-from-tip stream-rotation-loses-question
""".split())
SECOND = frozenset("""
empty-answer-unstored tool-result-reserialized text-column-64k input-stores-last-item assistant-closes-calls open-calls-in-memory
stream-args-to-last-call derive-html-escape slug-numeric-affinity slug-reads-own-chain stream-stored-unfinished idem-check-then-act
idem-survives-delete lock-without-principal conflict-without-principal delete-tombstone waiter-hangup-leaks-lock page-by-activity
has-more-at-cap rotation-by-chat-drops-slug rotating-response-branches summary-of-summary-lost sse-splitlines
lock-dropped-with-waiters ids-repeat-after-restart response-write-behind evict-sweeps-session branch-needs-its-response
refused-turn-stored-later cors-not-on-streams
""".split())
NAMES = FIRST | SECOND
IMPLIED = {"idem-check-then-act": "idempotency", "idem-survives-delete": "idempotency", "cors-not-on-streams": "cors"}  # Offers.
ACTIVE: set[str] = set()


def bug(name: str) -> bool:
    assert name in NAMES, name
    return name in ACTIVE
