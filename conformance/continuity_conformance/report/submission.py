"""What a run publishes: every verdict with its reason, and of each scenario that did not pass the first evidence. Nothing of the machine.

`continuity submit` checks that results are fit to be listed beside those of others, and writes them in this form.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from continuity_conformance.core.cache import user_cache
from continuity_conformance.results.write import DIGEST, digest, with_digest

DAYS: Final = 90
"""How old results may be: servers and the suite change."""
_DROPPED: Final = {"scenarios", "why", "origin", "how", "question", "checked", "build", "pitfalls"}
"""What the spec says about a requirement: it stands in the spec."""
_UNDECIDED: Final = {"not_applicable", "not_tested"}
_DECIDED: Final = {"pass", "fail"}
"""Of these requirements it is also published which scenarios say nothing: a cause that would show there has nothing against it."""
_SCRATCH: Final = re.compile(rf"(?:/tmp|{re.escape(tempfile.gettempdir())})/continuity-[\w-]+")
_IN_WORDS: Final = (
    (re.compile(r"saved as CACHE/found/[\w-]+\.yaml"), "the run saved it as a scenario"),
    (
        re.compile(r"Play it alone: continuity run CACHE/found/[^\"\\\n]+"),
        "Play it alone: the run says where it saved it",
    ),
    (re.compile(r"CACHE/targets/[^/\s]+/bin/"), ""),
    (re.compile(r"\bhost=[\w.-]+ \| os=[^|]+\|"), "host=… | os=… |"),
    (re.compile(r"https?://github\.com[\w./-]*"), "(a page)"),
    (re.compile(r"SCRATCH/home\b"), "SCRATCH/HOME"),
    (re.compile(r" — install from https?://[\w./-]+"), ""),
)
"""Files that are not published, and hosts that a target speaks of."""
_SOURCES: Final = (
    (re.compile(r"(File \\?\")/[^\"\\]*/"), r"\1"),
    (
        re.compile(
            r"(?<![\w:/.~-])(?:file://)?/(?:[^/\s\"'\\:]+/)+(?=[^/\s\"'\\:]+\.(?:py|[cm]?[jt]sx?|go|rb|java|kt|rs|php|cs|exs?)\b)"
        ),
        "",
    ),
    (re.compile(r"(?<![\w:/.~-])/(?:home|Users)/[^/\s\"'\\:]+/"), "~/"),
)
"""Where the sources of a target and its users are: in a traceback, the name of the file is enough."""
_NAME: Final = re.compile(r"(?P<name>[\w .-]*\w) +v?(?P<version>\d[\w.+-]*)")


@dataclass(frozen=True, slots=True)
class Submission:
    """Results that can be listed: the folder's name, and its files."""

    folder: str
    files: Mapping[str, str]


def problems(results: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """What keeps results from being listed, one sentence each. A failure does not, nor does something that could not be tested."""
    if not results["finished"]:
        yield "The run was stopped before its end. Run it again."
    elif not results["complete"]:
        yield "Only a part of the release was selected. Run it without --class, --area and -k."
    if DIGEST not in results:
        yield "There is no digest: an earlier kit wrote it. Run it again."
    elif results[DIGEST] != digest(results):
        yield "The content does not match its digest: the file was changed after the run. Submit it as the run wrote it."
    if not _NAME.fullmatch(results["target"]["name"]):
        yield f'The name "{results["target"]["name"]}" has no version at its end. Write it into the profile, such as name: my-gateway 2.1.'
    if now - datetime.fromisoformat(results["started"]) > timedelta(days=DAYS):
        yield f"The run is older than {DAYS} days. Run it again."


def submission(results: Mapping[str, Any]) -> Submission:
    """The files of a run that has no problems."""
    found = _NAME.fullmatch(results["target"]["name"])
    assert found is not None, "it has no problems"
    name = re.sub(r"[^a-z0-9.-]+", "-", found["name"].lower())
    again = results.get("again") or {}
    published = json.loads(_with_short_profile(text(dict(results)), again.get("profile") or ""))
    words = [
        "continuity check",
        again.get("target") or "",
        "--profile PROFILE" if again.get("profile") else "",
        "--report DIR",
    ]
    command = " ".join(filter(None, words)).replace(str(results["target"]["url"]), "URL")
    return Submission(
        f"{name}-{found['version']}",
        {
            "results.json": json.dumps(with_digest(published), indent=1, ensure_ascii=False),
            "command.txt": f"{results['started']}  {command}\n",
        },
    )


def _with_short_profile(told: str, profile: str) -> str:
    """JSON in which the profile has its name only."""
    path, name = (json.dumps(each, ensure_ascii=False)[1:-1] for each in (cleaned(profile), Path(profile).name))
    return told.replace(path, name) if path else told


def text(results: dict[str, Any], project: Path | None = None) -> str:
    """The JSON that is published of results."""
    return cleaned(json.dumps(kept(results), indent=1, ensure_ascii=False), project)


def cleaned(told: str, project: Path | None = None) -> str:
    """The same without where a machine has its files. `project`: a checkout, in which paths are relative."""
    told = _SCRATCH.sub("SCRATCH", told.replace(str(user_cache()), "CACHE"))
    told = told.replace(f"{project}/", "") if project is not None else told
    told = told.replace(sys.base_prefix, "PYTHON").replace(f"{Path.home()}/", "~/")
    for path, words in (*_IN_WORDS, *_SOURCES):
        told = path.sub(words, told)
    return told


def kept(results: Mapping[str, Any]) -> dict[str, Any]:
    """What is published of results: verdicts, reasons, and the first evidence of each scenario that did not pass."""
    return {**results, "requirements": [_requirement(each) for each in results["requirements"]]}


def _requirement(each: Mapping[str, Any]) -> dict[str, Any]:
    first: dict[tuple[str, str], dict[str, Any]] = {}
    silent = [evidence for evidence in each["evidence"] if evidence["outcome"] in _UNDECIDED]
    for evidence in [*filter(_shows_failure, each["evidence"]), *(silent if each.get("verdict") in _DECIDED else [])]:
        told_in_text = {**evidence, "exchanges": [], "interventions": []}
        first.setdefault((evidence["scenario"], evidence["example"]), told_in_text)
    told = {key: value for key, value in each.items() if key not in _DROPPED}
    return {**told, "evidence": list(first.values())}


def _shows_failure(evidence: Mapping[str, Any]) -> bool:
    """Whether it is of a scenario that failed, or would have if it were not blocked."""
    return evidence["outcome"] == "fail" or bool(evidence.get("kinds"))


def now() -> datetime:
    return datetime.now(UTC)
