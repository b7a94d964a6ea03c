"""Defects that can be planted with --defect NAME. Each is described in defects.md."""

NAMES = frozenset("""
slug-pruned-at-start idle-slug-cleanup branch-becomes-next group-commit draft-question hangup-stores-partial hangup-keeps-lock
failed-turn-spends-call stream-response-node stream-same-name-calls utf8-split delete-downstream-only evicts-by-id
deleted-response-continues slug-rtrim slug-limit-bytes id-unquoted tip-without-principal delete-foreign-response after-foreign-cursor
page-by-second unstored-binds-slug store-null-is-false instructions-stick stored-system-doubles compress-cuts-open-call slug-one-hop
lock-by-sent-id decide-before-lock slug-first-race derived-append-only announce-only-on-stop degraded-overwrites
stream-write-failure-hidden principal-on-server results-by-call-id history-window regenerate-repeated gc-forgets-responses
like-lookup stores-text-only branch-from-tip stream-rotation-loses-question
""".split())
ACTIVE: set[str] = set()


def bug(name: str) -> bool:
    assert name in NAMES, name
    return name in ACTIVE
