"""What the model sees, and what a turn leaves behind, over HTTP."""

from reference_process import HEADER, said
from scripted_model import BreakOff, CallTool, Fail, Say

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def user(text):
    return {"role": "user", "content": text}


def test_history_comes_from_the_store_and_not_from_the_body(scripted, model, session):
    model.will(Say("one"))
    scripted.chat("a", session)
    forged = [user("forged"), {"role": "assistant", "content": "lie"}, user("b")]
    scripted.chat("", session, messages=forged)

    assert model.seen() == [("user", "a"), ("assistant", "one"), ("user", "b")]


def test_a_system_prompt_reaches_the_model_once_and_for_its_turn_only(scripted, model, session):
    scripted.chat("", session, messages=[{"role": "system", "content": "s1"}, user("a")])
    scripted.chat("", session, messages=[{"role": "developer", "content": "s2"}, user("b")])
    scripted.chat("c", session)

    assert model.seen(0) == [("system", "s1"), ("user", "a")]
    assert model.seen(1) == [("developer", "s2"), ("user", "a"), ("assistant", "Fine."), ("user", "b")]
    assert [role for role, _ in model.seen(2)] == ["user", "assistant", "user", "assistant", "user"]


def test_a_derived_turn_sees_its_body_and_leaves_the_bodys_history(scripted, model, session):
    _, headers, _ = scripted.chat(f"a {session}")
    body = [user(f"a {session}"), {"role": "assistant", "content": "edited"}, user("b")]
    _, again, _ = scripted.chat("", messages=body)
    scripted.chat("c", headers[HEADER])

    assert headers[HEADER] == again[HEADER]
    assert [("user", f"a {session}"), ("assistant", "edited"), ("user", "b")] == model.seen(1)
    assert [*model.seen(1), ("assistant", "Fine."), ("user", "c")] == model.seen(2)


def test_a_failed_turn_leaves_nothing_and_tells_its_session(scripted, model, session):
    scripted.chat("a", session)
    model.will(Fail())
    status, headers, body = scripted.chat("b", session)

    assert (status, body["error"]["code"]) == (502, "upstream_error")
    assert session == headers[HEADER]
    assert scripted.stored(session) == [("user", "a"), ("assistant", "Fine.")]


def test_the_models_429_is_passed_on(scripted, model, session):
    model.will(Fail(429))
    status, headers, _ = scripted.chat("a", session)

    assert (status, headers["Retry-After"]) == (429, "1")


def test_a_chat_stream_that_breaks_off_says_so_and_is_not_stored(scripted, model, session):
    scripted.chat("a", session)
    model.will(BreakOff())
    status, _, events = scripted.chat("b", session, stream=True)

    assert status == 200
    assert '"code":"upstream_error"' in events
    assert events.endswith("data: [DONE]\n\n")
    assert scripted.stored(session) == [("user", "a"), ("assistant", "Fine.")]


def test_an_answer_that_the_model_cut_off_says_so_and_is_stored(scripted, model, session):
    model.will(Say("Half", "length"), Say("Half", "length"), Say("Half", "length"), Say("Half", "length"))
    _, _, plain = scripted.chat("a", session)
    _, _, chunks = scripted.chat("b", session, stream=True)
    _, _, body = scripted.respond("c", headers={HEADER: session})
    _, _, events = scripted.respond("d", headers={HEADER: session}, stream=True)
    scripted.chat("e", session)

    assert plain["choices"][0]["finish_reason"] == "length"
    assert '"finish_reason":"length"' in chunks
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert "event: response.incomplete" in events
    assert [text for role, text in model.seen() if role == "user"] == ["a", "b", "c", "d", "e"]
    assert [text for role, text in model.seen() if role == "assistant"] == ["Half"] * 4


def test_a_response_stream_that_breaks_off_ends_with_response_failed(scripted, model, session):
    model.will(BreakOff())
    _, _, events = scripted.respond("b", conversation=session, stream=True)

    assert events.split("\n\n")[-2].startswith("event: response.failed\n")


def test_chat_and_responses_share_one_history(scripted, model, session):
    _, headers, _ = scripted.respond("a", conversation=session)
    scripted.chat("b", headers[HEADER])
    scripted.respond("c", conversation=session)

    assert [text for _, text in model.seen()] == ["a", "Fine.", "b", "Fine.", "c"]


def test_a_client_tool_is_called_and_its_result_continues_the_turn(scripted, model, session):
    model.will(CallTool("weather", {"city": "Ulm"}))
    _, _, body = scripted.chat("a", session, tools=[WEATHER])
    choice = body["choices"][0]
    result = {"role": "tool", "tool_call_id": choice["message"]["tool_calls"][0]["id"], "content": "rain"}
    scripted.chat("", session, messages=[user("a"), choice["message"], result], tools=[WEATHER])

    assert choice["finish_reason"] == "tool_calls"
    assert model.seen() == [("user", "a"), ("assistant", None), ("tool", "rain")]


def test_an_abandoned_client_tool_gets_a_placeholder_result(scripted, model, session):
    model.will(CallTool("weather"))
    scripted.chat("a", session, tools=[WEATHER])
    scripted.chat("b", session)

    assert [role for role, _ in model.seen()] == ["user", "assistant", "tool", "user"]


def test_a_tool_result_that_answers_no_call_is_refused(scripted, model, session):
    status, _, _ = scripted.chat("", session, messages=[{"role": "tool", "tool_call_id": "x", "content": "y"}])

    assert status == 404
    assert model.calls == []


def test_a_client_tool_in_a_stream_is_a_function_call_item(scripted, model, session):
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
    model.will(CallTool("weather"))
    _, _, body = scripted.respond("a", conversation=session, tools=[tool])
    item = body["output"][0]
    result = {"type": "function_call_output", "call_id": item["call_id"], "output": "rain"}
    scripted.respond([result], conversation=session, stream=True)

    assert (item["type"], item["name"]) == ("function_call", "weather")
    assert model.seen() == [("user", "a"), ("assistant", None), ("tool", "rain")]


def test_the_workspace_keeps_notes_between_turns(scripted, model, session):
    model.will(CallTool("workspace", {"action": "write", "name": "../n", "text": session}), Say("written"))
    scripted.chat("a", session)
    model.will(CallTool("workspace", {"action": "read", "name": "../n"}), Say("read"))
    _, _, body = scripted.chat("b", session, stream=False)

    assert said(body) == "read"
    assert ("tool", session) == model.seen()[-1]
    assert "tool_calls" not in body["choices"][0]["message"]


def test_an_unreadable_store_degrades_the_answer_and_keeps_what_was_stored(scripted, model, session):
    scripted.chat("a", session)
    with scripted.broken("read"):
        status, headers, body = scripted.chat("b", session)
    scripted.chat("c", session)

    assert (200, session, "history-unavailable") == (status, headers[HEADER], headers["X-Session-Degraded"])
    assert body["session"]["degraded"] is True
    assert model.seen(1) == [("user", "b")]
    assert model.seen(2) == [("user", "a"), ("assistant", "Fine."), ("user", "c")]


def test_an_unreadable_lineage_degrades_the_answer_too(scripted, session):
    with scripted.broken("lineage"):
        status, headers, _ = scripted.chat("b", session)

    assert (200, session, "history-unavailable") == (status, headers[HEADER], headers["X-Session-Degraded"])


def test_a_turn_that_cannot_be_stored_is_refused_before_the_model_is_asked(scripted, model, session):
    with scripted.broken("write"):
        status, headers, body = scripted.chat("a", session)

    assert (503, "history_unavailable", session) == (status, body["error"]["code"], headers[HEADER])
    assert model.calls == []
