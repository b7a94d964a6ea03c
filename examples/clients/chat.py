"""A chat in one session, with the official `openai` package. Each line that you type is a turn; each answer is printed with the id of its session.

    python chat.py --base-url http://127.0.0.1:8642/v1                    a new session
    python chat.py --base-url http://127.0.0.1:8642/v1 --session trip     a session that you name
    python chat.py --base-url http://127.0.0.1:8642/v1 --slug trip        by a slug, on /v1/responses

What a client must do to keep its conversation: send the id back that the last answer had. After a compression it may be a new one.
"""
import argparse
import sys

import openai

HEADER = "X-Hermes-Session-Id"


class Conversation:
    """A session on chat completions, by its id."""

    def __init__(self, client: openai.OpenAI, session: str | None = None, *, stream: bool = False) -> None:
        self.client, self.session, self.stream = client, session, stream

    def say(self, text: str) -> str:
        """One turn. Only the new message is sent: the server has the others."""
        raw = self.client.chat.completions.with_raw_response.create(
            model="default",
            messages=[{"role": "user", "content": text}],
            stream=self.stream,
            extra_headers={HEADER: self.session} if self.session else {},
        )
        self.session = raw.headers[HEADER]
        return self._pieces(raw.parse()) if self.stream else raw.parse().choices[0].message.content or ""

    def _pieces(self, chunks: openai.Stream) -> str:
        text = ""
        for chunk in chunks:
            text += chunk.choices[0].delta.content or "" if chunk.choices else ""
            # The headers of a stream are sent before the turn ends. If the session moves, the last chunk says where to.
            told = (chunk.model_extra or {}).get("session")
            self.session = told["id"] if told else self.session
        return text


class NamedConversation:
    """A conversation on /v1/responses, by a name that the client chose. No id has to be kept."""

    def __init__(self, client: openai.OpenAI, slug: str) -> None:
        self.client, self.slug, self.session = client, slug, ""

    def say(self, text: str) -> str:
        raw = self.client.responses.with_raw_response.create(model="default", conversation=self.slug, input=text)
        self.session = raw.headers[HEADER]
        return raw.parse().output_text


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", default="http://127.0.0.1:8642/v1")
    parser.add_argument("--session")
    parser.add_argument("--slug")
    parser.add_argument("--stream", action="store_true")
    options = parser.parse_args()
    # The key is read from OPENAI_API_KEY. A lost connection is tried again, so a restart of the server is not noticed.
    client = openai.OpenAI(base_url=options.base_url, max_retries=5)
    conversation = NamedConversation(client, options.slug) if options.slug else Conversation(client, options.session, stream=options.stream)
    for line in sys.stdin:
        answer = conversation.say(line.strip())
        print(f"[{conversation.session}] {answer}", flush=True)


if __name__ == "__main__":
    main()
