"""What results.json keeps of a scenario that passed: one line for each exchange."""

from continuity_conformance.results.evidence import trace


def exchange(number, **parts):
    request = {"method": "POST", "url": "http://127.0.0.1:8080/v1/chat/completions", "headers": [], "body": "{}"}
    answer = {"status": 200, "headers": [], "body": "{}"}
    own = {"step": str(number), "principal": "alice", "request": request, "answer": answer, "error": "", "seen": None}
    return {**own, **parts}


def test_a_line_tells_who_asked_what_the_status_and_what_the_model_saw():
    assert trace([exchange(1, seen=["red", "blue"])]) == [
        "1  alice: POST /v1/chat/completions → 200; the model saw red, blue"
    ]


def test_a_request_without_an_answer_says_why():
    assert trace([exchange(1, answer=None, error="connection lost: reset")]) == [
        "1  alice: POST /v1/chat/completions → connection lost: reset"
    ]


def test_of_many_the_first_and_the_last_are_kept():
    lines = trace([exchange(number) for number in range(1, 31)])

    assert [line.partition("  ")[0] for line in lines] == [*"123", "… 20 more", *map(str, range(24, 31))]
