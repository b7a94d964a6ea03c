"""`continuity doctor`: examines the server at an address, lists what a run could decide about it, and writes a first profile."""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from continuity_conformance.cli.options import add_options
from continuity_conformance.core.errors import UsageError
from continuity_conformance.doctor import profile_writer, render
from continuity_conformance.doctor.dry_run import plan
from continuity_conformance.doctor.profile_writer import AccessOptions
from continuity_conformance.doctor.state import SurveyState
from continuity_conformance.doctor.survey import dry_run, survey
from continuity_conformance.http.messages import KeyField, Request
from continuity_conformance.results.redaction import Redactor, names_a_secret, redactor_of
from continuity_conformance.run.signals import stoppable
from continuity_conformance.suite.release import newest
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.resolve import resolve
from continuity_conformance.terminal.output import say, say_json, warn

_NOTHING_SENT: Final = """\
Nothing was sent. At most these {} requests would be sent; most servers get
fewer. A turn that is refused because its session is busy (409) is repeated."""
_STARTED_AT: Final = "http://127.0.0.1"
"""Where a dry run sends the requests for a server that is not started yet."""
_OTHER_ADDRESS: Final = """\
If there is no such server at this address but at a nearby one, the rest goes
there."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """\
Sends about twenty requests, of which ten are short turns. Its ids begin with
continuity-, its User-Agent is session-continuity-conformance. It deletes what it
made if the server allows that, and lists it otherwise.

  continuity doctor http://127.0.0.1:8080
  continuity doctor --profile my.yaml     the kit starts the server (`process:`)
  continuity doctor https://host/gateway/v1 --key-env MY_KEY --write my.yaml
  continuity doctor URL --auth 'X-Api-Key: {key}' --key-env MY_KEY --dry-run

exit codes:
  0 examined to the end    1 no turn succeeds   2 usage, or the key is refused
  3 no such server there   4 the server of the profile does not start; kit error
"""
    parser.add_argument(
        "target",
        nargs="?",
        metavar="URL|NAME",
        help="the base address of a running server, with or without /v1; or the name of one that a plugin starts. "
        "Without either, the kit starts the server of --profile",
    )
    add_options(parser, "profile")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write a first profile to this new file")
    parser.add_argument("--json", action="store_true", help="the findings as JSON")
    parser.add_argument("--dry-run", action="store_true", help="print the requests without sending them")
    given = parser.add_argument_group("access (secrets are given by the name of their environment variable)")
    given.add_argument("--key-env", metavar="NAME", help="the variable with the key")
    given.add_argument("--second-key-env", metavar="NAME", help="the variable with the key of a second user")
    given.add_argument(
        "--auth", metavar="'NAME: {key}'", help="the header with the key (default: 'Authorization: Bearer {key}')"
    )
    given.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="'NAME: $VALUE'",
        help="a header of every request; may be repeated",
    )
    given.add_argument("--ca", metavar="FILE", help="certificates to trust (PEM), for TLS with a private CA")
    more = parser.add_argument_group("what it cannot find out")
    more.add_argument("--model", metavar="NAME", help="the model to ask for (default: the first that the server lists)")
    more.add_argument("--probe", metavar="URL", help="the probe model that the server uses (continuity model)")
    more.add_argument("--seconds", type=float, metavar="S", help="how long a turn may take (default: 20)")


def run(options: argparse.Namespace) -> int:
    _check_options(options)
    target = resolve(options.target, options.profile)
    profile, given = _given(target.profile, options)
    release = newest()
    warn(release.packs.broken)
    if options.dry_run:
        visits = asyncio.run(dry_run(target.url or _STARTED_AT, profile, release.requirements))
        return _print_plan(visits, profile, given, redactor_of(profile, target.url))
    with stoppable():
        state = asyncio.run(survey(target.url, profile, release.requirements))
    redactor = redactor_of(state.profile, target.url)
    if options.json:
        say_json(_redacted(render.as_json(state.findings), redactor))
    elif state.findings.sentences:
        say("\n".join(redactor.text(line) for line in render.lines(state.findings)))
    return _finish(state, given, options, redactor)


def _check_options(options: argparse.Namespace) -> None:
    if options.target is None and options.profile is None:
        raise UsageError(
            "no server is named.",
            do="Give the URL of a running server, or --profile FILE with `process:`, which the kit starts.",
        )
    if options.write is not None and "://" not in (options.target or "://"):
        raise UsageError(
            "a target that a plugin starts brings its own profile, so none can be written.",
            where="--write",
            do="Give the URL of a running server.",
        )
    if options.write is not None and (options.profile is not None or options.dry_run):
        what = "there is a profile already" if options.profile is not None else "a dry run finds out nothing"
        raise UsageError(f"{what}, so none can be written.", where="--write", do="Leave out one of the two options.")
    if options.write is not None and options.write.exists():
        raise UsageError(
            "this file exists already, and writing would destroy what people wrote in it.",
            where=str(options.write),
            do="Name another.",
        )


def _finish(state: SurveyState, given: AccessOptions, options: argparse.Namespace, redactor: Redactor) -> int:
    findings = state.findings
    if findings.error is not None:
        raise redactor.error(findings.error)
    if options.write is not None:
        profile_writer.write(options.write, profile_writer.text(findings, state.profile, given, options.write))
        sys.stderr.write(f"continuity: wrote {options.write}\n")
    return 0


def _print_plan(visits: Sequence[Sequence[Request]], profile: Profile, given: AccessOptions, redactor: Redactor) -> int:
    known = {profile.principals[who]: name for who, name in given.principals.items()}
    known |= {profile.headers[field]: name for field, name in given.headers.items() if name.startswith("$")}
    for line in render.plan_lines(plan(visits)):
        say(redactor.text(_by_name(line, known)))
    say(f"\n{_NOTHING_SENT.format(max(map(len, visits)))}")
    if not profile.secrets:
        say(_OTHER_ADDRESS)
    return 0


def _by_name(line: str, known: Mapping[str, str]) -> str:
    for secret, name in sorted(known.items(), key=lambda pair: -len(pair[0])):
        line = line.replace(secret, name)
    return line


def _redacted(value: object, redactor: Redactor) -> object:
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, Mapping):
        return {key: _redacted(item, redactor) for key, item in value.items()}
    return [_redacted(item, redactor) for item in value] if isinstance(value, list) else value


def _given(profile: Profile, options: argparse.Namespace) -> tuple[Profile, AccessOptions]:
    """The profile completed from the command line, and the access data as the user wrote them."""
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
        raise UsageError("missing `{key}` placeholder.", where=f"--auth {line}", do="Write 'X-Api-Key: {key}'.")
    return line


def _header(line: str) -> tuple[str, str]:
    name, colon, value = (part.strip() for part in line.partition(":"))
    if not colon or not name or not value:
        raise UsageError("this is not a header.", where="--header", do="Write 'X-Tenant: $TENANT'.")
    if names_a_secret(name) and not value.startswith("$"):
        raise UsageError(
            f"the value of {name} may be a secret, and secrets are given by the name of their environment variable.",
            where="--header",
            do=f"Write '{name}: $NAME'.",
        )
    return name, value


def _value(text: str) -> str:
    """The value of the environment variable for `$NAME`; other text as it is."""
    if not text.startswith("$"):
        return text
    if not os.environ.get(text[1:]):
        raise UsageError(f"{text} is not set in the environment.", do=f"Run: export {text[1:]}=…")
    return os.environ[text[1:]]
