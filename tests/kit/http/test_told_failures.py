"""A failure that is told in a 2xx answer counts as one."""

from continuity_conformance.http.messages import Answer


def test_a_turn_whose_body_says_failed_is_not_accepted():
    answer = Answer(status=200, body={"id": "resp_1", "status": "failed"}, failed=True)

    assert not answer.accepted
    assert answer.outcome == 500


def test_a_refusal_keeps_its_status():
    assert Answer(status=404, failed=True).outcome == 404


def test_a_completed_event_with_a_failed_response_is_a_failure():
    events = ({"type": "response.completed", "response": {"id": "resp_1", "status": "failed"}},)

    assert Answer(status=200, streamed=True, events=events).outcome == 500


def test_a_completed_answer_is_accepted():
    assert Answer(status=200, body={"status": "completed"}).accepted
