"""What the doctor sends, kept: what was made by it is known from there."""

from continuity_conformance.http.client import Transport
from continuity_conformance.http.messages import Answer, Request


class Recorder(Transport):
    """A transport that remembers each exchange."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type] # as Transport takes them
        self.exchanges: list[tuple[Request, Answer]] = []

    async def send(self, request: Request) -> Answer:
        answer = await super().send(request)
        self.exchanges.append((request, answer))
        return answer
