"""Random testing on real servers: the same from the same seed, and a finding can be read and run again.

That its defects are found is in the matrix, with one seed; `tools/benchmarks/seeds.py` tries five.
"""

import asyncio
import re

import pytest

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.fuzz.generated.campaign import run_campaign
from continuity_conformance.fuzz.names import RunNames
from continuity_conformance.fuzz.sync_client import run_in_thread
from continuity_conformance.results.redaction import redactor_of
from continuity_conformance.run.scheduler import Scheduler
from continuity_conformance.run.session import Run
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec


def result_of(defect, entry, seed=1):
    profile = reference_profile((f"--defect={defect}",))
    with Run(resolve(None, profile), [load_spec().requirement(entry)], Budget(seed=seed)) as run:
        return run.result(entry), profile


async def requests_of(seed):
    profile = reference_profile()
    scheduler = Scheduler(resolve(None, profile), redactor_of(profile))
    await scheduler.open()
    sent = []

    def recorded(client):
        client.on_answer = lambda request, _: sent.append(
            (request.method, request.url.removeprefix(client.url), request.data)
        )
        run_campaign(client, RunNames.of(scheduler.context, seed), Budget(examples=2, seed=seed))

    try:
        await run_in_thread(scheduler.context, recorded)
    finally:
        await scheduler.close()
    # Ids that the server minted are new each time.
    return [(method, re.sub(r"(sess|resp|conv)_[0-9a-f]{32}", "minted", url), data) for method, url, data in sent]


def test_the_same_seed_sends_the_same_requests():
    first, second = (asyncio.run(requests_of(7)) for _ in range(2))

    assert len(first) > 500
    assert first == second


@pytest.fixture(scope="module")
def longer_key():
    return result_of("longer-key-taken", "CONTRACT-08", seed=3)


def test_a_finding_reads_like_every_other_failure(longer_key):
    failure = longer_key[0].failure

    assert failure.startswith("CONTRACT-08 (MUST) is not met: ")
    assert "expected  401" in failure
    assert "Why it matters: " in failure
    assert "continuity run CONTRACT-08 --target reference --seed 3" in failure


def test_the_smallest_request_is_shown_as_a_command_without_a_key(longer_key):
    result, profile = longer_key
    shown = f"{result.failure}{result.evidence}"

    assert re.search(r"""curl -i -X \w+ .*-H 'Authorization: Bearer '"\$\{KEY\}"\S""", result.failure)
    assert not [key for key in profile.secrets if key[:-1] in shown or key.swapcase() in shown]


def test_a_deep_body_is_shown_by_the_program_that_makes_it():
    result, _ = result_of("deep-body-500", "CONTRACT-07")

    assert result.verdict is Verdict.FAIL, result.reason
    assert re.search(r"python3 -c .* \| curl -i -X POST .*--data-binary @-", result.failure)
