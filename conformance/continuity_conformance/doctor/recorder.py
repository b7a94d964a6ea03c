"""Record what the doctor sends, so that it can delete what its requests created."""

from continuity_conformance.http.client import Transport
from continuity_conformance.http.messages import Answer, Request


class Recorder(Transport):
    """A transport that records each exchange."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type] # those of Transport
        self.exchanges: list[tuple[Request, Answer]] = []

    async def send(self, request: Request) -> Answer:
        answer = await super().send(request)
        self.exchanges.append((request, answer))
        return answer
