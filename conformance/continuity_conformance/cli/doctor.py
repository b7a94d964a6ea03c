"""`continuity doctor`: what a server at an address is, what a run could decide about it, and a profile to start from."""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from continuity_conformance.cli.target import add_profile
from continuity_conformance.core.errors import UsageError
from continuity_conformance.terminal.output import complain, say, say_json

if TYPE_CHECKING:
    from continuity_conformance.doctor.profile_writer import AccessOptions
    from continuity_conformance.doctor.state import SurveyState
    from continuity_conformance.http.messages import Request
    from continuity_conformance.results.redaction import Redactor
    from continuity_conformance.target.profile import Profile

_UNSENT = """\
Nothing was sent. At most these {} requests would be: most servers get fewer,
and a turn that is refused because its session is busy (409) is sent again."""
_MOVED = """\
Where another address has such a server and this one has none, the rest goes
there."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """\
About twenty requests, of which some ten are short turns. Our ids begin with
continuity-, our User-Agent is session-continuity-conformance; what was made is
deleted again where the server lets us, and named where not.

  continuity doctor http://127.0.0.1:8080
  continuity doctor https://host/gateway/v1 --key-env MY_KEY --write my.yaml
  continuity doctor URL --auth 'X-Api-Key: {key}' --key-env MY_KEY --dry-run

exit codes:
  0 looked at to the end   1 no turn succeeds   2 usage, or the key is refused
  3 no such server there   4 kit error
"""
    parser.add_argument(
        "url", metavar="URL", help="the base address of a server that is running; /v1 may stand at its end"
    )
    add_profile(parser)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write a profile to start from to this new file")
    parser.add_argument("--json", action="store_true", help="the findings as JSON")
    parser.add_argument("--dry-run", action="store_true", help="print the requests, and send nothing")
    given = parser.add_argument_group("how to get in (secrets by the name of their environment variable)")
    given.add_argument("--key-env", metavar="NAME", help="the variable with the key")
    given.add_argument("--second-key-env", metavar="NAME", help="the variable with the key of somebody else")
    given.add_argument(
        "--auth", metavar="'NAME: {key}'", help="the field of the key (default: 'Authorization: Bearer {key}')"
    )
    given.add_argument(
        "--header", action="append", default=[], metavar="'NAME: $VALUE'", help="on every request; may be given again"
    )
    given.add_argument("--ca", metavar="FILE", help="certificates to trust (PEM), for TLS with a private CA")
    more = parser.add_argument_group("what it cannot know")
    more.add_argument("--model", metavar="NAME", help="the model to ask for (default: the first that the server lists)")
    more.add_argument("--probe", metavar="URL", help="the probe model that the server was given (continuity model)")
    more.add_argument("--seconds", type=float, metavar="S", help="how long a turn may take (default: 20)")


def doctor(options: argparse.Namespace) -> int:
    # Imported here because they bring the whole kit along.
    from continuity_conformance.doctor import render as sheet  # noqa: PLC0415
    from continuity_conformance.doctor.survey import dry_run, survey  # noqa: PLC0415
    from continuity_conformance.results.redaction import redactor_of  # noqa: PLC0415
    from continuity_conformance.suite.release import newest  # noqa: PLC0415
    from continuity_conformance.target.resolve import resolve  # noqa: PLC0415

    _must_be_possible(options)
    if "://" not in options.url:
        raise UsageError("this is no address.", where=options.url, do="Give it as http://host:port")
    profile, url = resolve(options.url, options.profile)
    profile, given = _given(profile, options)
    release = newest()
    complain(release.packs.broken)
    if options.dry_run:
        visits = asyncio.run(dry_run(url, profile, release.requirements))
        return _rehearsed(visits, profile, given, redactor_of(profile, options.url))
    state = asyncio.run(survey(url, profile, release.requirements))
    redactor = redactor_of(state.profile, options.url)
    if options.json:
        say_json(_redacted(sheet.as_json(state.findings), redactor))
    elif state.findings.sentences:
        say("\n".join(redactor.text(line) for line in sheet.lines(state.findings)))
    return _ended(state, given, options, redactor)


def _must_be_possible(options: argparse.Namespace) -> None:
    if options.write is not None and (options.profile is not None or options.dry_run):
        what = "a profile is there already" if options.profile is not None else "a dry run finds out nothing"
        raise UsageError(f"{what}, so none can be written.", where="--write", do="Leave one of the two out.")
    if options.write is not None and options.write.exists():
        raise UsageError(
            "this file is there already, and what people wrote in it would be lost.",
            where=str(options.write),
            do="Name another.",
        )


def _ended(state: "SurveyState", given: "AccessOptions", options: argparse.Namespace, redactor: "Redactor") -> int:
    from continuity_conformance.doctor import profile_writer as starter  # noqa: PLC0415

    findings = state.findings
    if findings.error is not None:
        raise redactor.error(findings.error)
    if options.write is not None:
        starter.write(options.write, starter.text(findings, state.profile, given, options.write))
        sys.stderr.write(f"continuity: wrote {options.write}\n")
    return 0


def _rehearsed(
    visits: "Sequence[Sequence[Request]]", profile: "Profile", given: "AccessOptions", redactor: "Redactor"
) -> int:
    from continuity_conformance.doctor import render as sheet  # noqa: PLC0415
    from continuity_conformance.doctor.dry_run import plan  # noqa: PLC0415

    known = {profile.principals[who]: name for who, name in given.principals.items()}
    known |= {profile.headers[field]: name for field, name in given.headers.items() if name.startswith("$")}
    for line in sheet.plan_lines(plan(visits)):
        say(redactor.text(_by_name(line, known)))
    say(f"\n{_UNSENT.format(max(map(len, visits)))}")
    if not profile.secrets:
        say(_MOVED)
    return 0


def _by_name(line: str, known: Mapping[str, str]) -> str:
    for secret, name in sorted(known.items(), key=lambda pair: -len(pair[0])):
        line = line.replace(secret, name)
    return line


def _redacted(value: object, redactor: "Redactor") -> object:
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, Mapping):
        return {key: _redacted(item, redactor) for key, item in value.items()}
    return [_redacted(item, redactor) for item in value] if isinstance(value, list) else value


def _given(profile: "Profile", options: argparse.Namespace) -> "tuple[Profile, AccessOptions]":
    """The profile with what the command line says, and the same as the user wrote it."""
    from continuity_conformance.doctor.profile_writer import AccessOptions  # noqa: PLC0415
    from continuity_conformance.http.auth import KeyField  # noqa: PLC0415

    named = {"alice": options.key_env, "bob": options.second_key_env}
    principals = {who: f"${name.lstrip('$')}" for who, name in named.items() if name}
    headers = dict(_header(line) for line in options.header)
    keys = {who: _value(name) for who, name in principals.items()}
    if "bob" in keys and not {**profile.principals, **keys}.get("alice"):
        raise UsageError("a second key needs a first one.", where="--second-key-env", do="Add --key-env NAME.")
    seconds = options.seconds or profile.limits.turn_seconds
    return (
        replace(
            profile,
            principals={**profile.principals, **keys},
            headers={**profile.headers, **{name: _value(value) for name, value in headers.items()}},
            key_field=KeyField.read(_auth(options.auth)) if options.auth else profile.key_field,
            ca=options.ca or profile.ca,
            model=options.model or profile.model,
            probe=options.probe or profile.probe,
            limits=replace(profile.limits, turn_seconds=seconds),
        ),
        AccessOptions(principals, headers),
    )


def _auth(line: str) -> str:
    name, colon, value = line.partition(":")
    if not colon or not name.strip() or "{key}" not in value:
        raise UsageError("this says not where the key stands.", where=f"--auth {line}", do="Write 'X-Api-Key: {key}'.")
    return line


def _header(line: str) -> tuple[str, str]:
    from continuity_conformance.results.redaction import names_a_secret  # noqa: PLC0415

    name, colon, value = (part.strip() for part in line.partition(":"))
    if not colon or not name or not value:
        raise UsageError("this is no header field.", where="--header", do="Write 'X-Tenant: $TENANT'.")
    if names_a_secret(name) and not value.startswith("$"):
        raise UsageError(
            f"the value of {name} may be a secret, which is given by the name of its environment variable.",
            where="--header",
            do=f"Write '{name}: $NAME'.",
        )
    return name, value


def _value(text: str) -> str:
    """`$NAME` is the value of that variable; anything else stands for itself."""
    if not text.startswith("$"):
        return text
    if not os.environ.get(text[1:]):
        raise UsageError(f"{text} is not set in the environment.", do=f"Run: export {text[1:]}=…")
    return os.environ[text[1:]]
