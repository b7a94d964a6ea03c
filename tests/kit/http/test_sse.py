"""Server-sent events are decoded as the WHATWG standard says, however the bytes are cut into pieces."""

import pytest

from continuity_conformance.http.sse import Event, EventStreamDecoder


def decoded(*pieces: bytes) -> list[Event]:
    decoder = EventStreamDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "lone CR"])
def test_a_line_ends_with_any_of_the_three(end):
    assert decoded(b"data: one" + end + end + b"data: two" + end + end) == [Event("one"), Event("two")]


def test_line_ends_may_be_mixed():
    assert decoded(b"data: a\rdata: b\r\ndata: c\n\r\n") == [Event("a\nb\nc")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "lone CR"])
def test_pieces_of_one_byte_give_the_same_events(end):
    stream = end.join([b"event: x", "data: ü€😀".encode(), b"id: 7", b"", b"data", b"data", b"", b""])

    assert (
        decoded(*(bytes([byte]) for byte in stream))
        == decoded(stream)
        == [Event("ü€😀", "x", "7"), Event("\n", "", "7")]
    )


def test_a_piece_may_end_between_cr_and_lf():
    assert decoded(b"data: a\r", b"\n\r", b"\ndata: b\n\n") == [Event("a"), Event("b")]


def test_a_piece_may_end_inside_a_character():
    word = "grün".encode()

    assert decoded(b"data: " + word[:3], word[3:] + b"\n\n") == [Event("grün")]


def test_bytes_that_are_no_utf8_are_replaced():
    assert decoded(b"data: \xff\n\n") == [Event("\ufffd")]


def test_one_byte_order_mark_at_the_start_is_dropped():
    assert decoded(b"\xef\xbb\xbfdata: a\n\ndata: \xef\xbb\xbfb\n\n") == [Event("a"), Event("\ufeffb")]


def test_an_event_has_the_name_that_was_sent_with_it():
    assert decoded(b"event: response.created\ndata: 1\n\ndata: 2\n\n") == [Event("1", "response.created"), Event("2")]


def test_the_last_id_stays_until_another_is_sent():
    assert decoded(b"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n") == [
        Event("a", id="1"),
        Event("b", id="1"),
        Event("c"),
    ]


def test_an_id_with_nul_is_ignored():
    assert decoded(b"id: a\0b\ndata: x\n\n") == [Event("x")]


def test_comments_and_unknown_fields_are_ignored():
    assert decoded(b": ping\nretry: 3\ncolour: red\ndata: x\n\n: ping\n\n") == [Event("x")]


def test_only_one_blank_after_the_colon_is_dropped():
    assert decoded(b"data:  two\ndata:none\n\n") == [Event(" two\nnone")]


def test_an_event_without_data_is_dropped_with_its_name():
    assert decoded(b"event: x\n\ndata: y\n\n") == [Event("y")]


def test_an_event_that_the_end_of_the_stream_cuts_off_is_dropped():
    assert decoded(b"data: whole\n\ndata: half\n") == [Event("whole")]
