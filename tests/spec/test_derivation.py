"""The derived id is a pure function of the opening."""

import copy
import json
import sys

import pytest
import rfc8785

from continuity_spec.derivation import NoUserMessageError, UnknownDerivationError, defines, derive, opening, salted

VERSIONS = ["content-v1", "content-v2"]
HELLO = {"role": "user", "content": "Hello"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def text(value):
    return {"type": "text", "text": value}


def user(content):
    return {"role": "user", "content": content}


def system(content):
    return {"role": "system", "content": content}


@pytest.mark.parametrize("version", VERSIONS)
class TestOpening:
    def test_without_a_system_message_the_system_prompt_is_empty(self, version):
        assert opening(version, [HELLO]) == ("", "Hello")

    def test_without_a_user_message_the_first_user_message_is_empty_and_every_system_message_counts(self, version):
        messages = [system("a"), {"role": "assistant", "content": "Ahoy"}, system("b")]

        assert opening(version, messages) == ("a\nb", "")

    def test_no_messages_are_an_empty_opening(self, version):
        assert opening(version, []) == ("", "")

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("plain", "plain"),
            ([text("one")], "one"),
            ([{"type": "input_text", "text": "one"}], "one"),
            ([{"type": "output_text", "text": "one"}], "one"),
            ([text("one"), text("two")], "one\ntwo"),
            ([text("one"), IMAGE, text("two")], "one\ntwo"),
            ([text(""), text("two"), text("")], "two"),
            ([IMAGE], ""),
            ([], ""),
            (None, ""),
            ([{"type": "text"}, {"type": "text", "text": None}, "bare"], ""),
        ],
    )
    def test_only_text_counts(self, version, content, expected):
        assert opening(version, [user(content)]) == ("", expected)


class TestSystemPrompt:
    MESSAGES = (system("a"), {"role": "developer", "content": "b"}, system("c"), HELLO, system("d"))

    def test_content_v1_takes_every_system_message_and_no_developer_message(self):
        assert opening("content-v1", self.MESSAGES) == ("a\nc\nd", "Hello")

    def test_content_v2_takes_what_comes_before_the_first_user_message(self):
        assert opening("content-v2", self.MESSAGES) == ("a\nb\nc", "Hello")


@pytest.mark.parametrize(
    ("version", "content", "defined"),
    [
        ("content-v1", "plain", True),
        ("content-v1", [text("one")], True),
        ("content-v1", [text("one"), IMAGE], False),
        ("content-v2", [text("one"), IMAGE], True),
    ],
)
def test_content_v1_defines_no_id_for_an_image(version, content, defined):
    assert defines(version, [system([IMAGE]), user(content)]) is defined


class TestDerive:
    def test_the_two_versions_look_different(self):
        assert derive("content-v1", [HELLO]) == "api-7c129c8425088ece"
        assert derive("content-v2", [HELLO]).startswith("api2-")
        assert len(derive("content-v2", [HELLO])) == len("api2-") + 32

    @pytest.mark.parametrize("version", VERSIONS)
    def test_a_message_that_is_only_read_by_role_and_content_may_have_more(self, version):
        assert derive(version, [{**HELLO, "name": "alice", "id": 7}]) == derive(version, [HELLO])

    def test_text_moved_across_the_border_collides_in_v1_alone(self):
        left, right = [system("a"), user("b\nc")], [system("a\nb"), user("c")]

        assert derive("content-v1", left) == derive("content-v1", right)
        assert derive("content-v2", left) != derive("content-v2", right)

    @pytest.mark.parametrize("version", ["none", "content-v3", ""])
    def test_an_unknown_derivation_is_refused_with_those_that_are_known(self, version):
        with pytest.raises(UnknownDerivationError, match=r"use one of: content-v1, content-v2"):
            derive(version, [HELLO])


class TestCanonicalForm:
    """For two strings `json.dumps` without blanks is RFC 8785."""

    def test_every_character_of_unicode_is_written_alike(self):
        surrogates = range(0xD800, 0xE000)
        every = "".join(chr(point) for point in range(sys.maxunicode + 1) if point not in surrogates)

        written = json.dumps([every, every[::-1]], ensure_ascii=False, separators=(",", ":"))

        assert written.encode() == rfc8785.dumps([every, every[::-1]])

    @pytest.mark.parametrize("pair", [["", ""], ["\\", '"'], ["\x00\x1f\x7f", "\b\t\n\f\r"], ["\u2028", "</script>"]])
    def test_the_corners_are_written_alike(self, pair):
        assert json.dumps(pair, ensure_ascii=False, separators=(",", ":")).encode() == rfc8785.dumps(pair)


class TestSalted:
    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("Hello", "#Hello"),
            ("  Hello  ", "  #Hello  "),
            ("\ufeffHello", "\ufeff#Hello"),
            ("e\u0301", "#e\u0301"),
            ('{"a": 1}', '{"#a": 1}'),
            ("\u2764\ufe0f", "\u2764\ufe0f#"),
            ("", "#"),
            (None, "#"),
            ([text("one"), text("two")], [text("#one"), text("two")]),
            ([IMAGE, text("one")], [IMAGE, text("#one")]),
            ([IMAGE], [IMAGE, text("#")]),
        ],
    )
    def test_the_salt_stands_in_the_first_text(self, content, expected):
        assert salted([user(content)], "#") == [user(expected)]

    def test_only_the_first_user_message_is_salted(self):
        messages = [system("a"), HELLO, {"role": "assistant", "content": "Hi"}, user("More")]

        assert salted(messages, "#") == [system("a"), user("#Hello"), *messages[2:]]

    def test_the_given_messages_stay_as_they_are(self):
        messages = [system([text("a")]), user([text("one"), IMAGE])]
        before = copy.deepcopy(messages)

        salted(messages, "#")

        assert messages == before

    @pytest.mark.parametrize("version", VERSIONS)
    def test_one_salt_gives_one_id_and_another_salt_another(self, version):
        ids = [derive(version, salted([HELLO], salt)) for salt in ("one", "one", "two")]

        assert ids[0] == ids[1]
        assert ids[1] != ids[2]

    def test_messages_without_a_user_message_are_refused(self):
        with pytest.raises(NoUserMessageError, match="add a message with the role user"):
            salted([system("a")], "#")
