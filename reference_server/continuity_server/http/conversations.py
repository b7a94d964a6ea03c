"""POST, GET and DELETE /v1/conversations: slugs that the server names itself, as OpenAI's conversation objects."""

import time
from contextlib import nullcontext
from typing import Any

from aiohttp import web

from continuity_server.http.body import expect
from continuity_server.http.request import PRINCIPAL, answer, json_body
from continuity_server.http.stored import StoredHandler
from continuity_server.rules.compress import Session
from continuity_server.rules.error import Case, Refusal, invalid
from continuity_server.store.records import StoredConversation


class ConversationsHandler(StoredHandler):
    """The endpoints. A conversation object is the name of a slug, which begins with its first turn."""

    async def post(self, request: web.Request) -> web.Response:
        """SLUG-24: a new conversation under a minted id."""
        self._access.check_may_continue()
        body = await json_body(request, self._rules)
        if expect(body, "items", list):
            raise invalid("items are not taken here. Send them as the input of a response.", "items")
        metadata = expect(body, "metadata", dict, {})
        made = StoredConversation(self._rules.minted("conv_"), int(time.time()), metadata)
        await self._store.add_conversation(request[PRINCIPAL], made)
        return answer(_as_json(made))

    async def get(self, request: web.Request) -> web.Response:
        return answer(_as_json(self._conversation(request)))

    async def delete(self, request: web.Request) -> web.Response:
        """SLUG-24: the conversation with everything that was said in it, once its running turn is over."""
        owner, made = request[PRINCIPAL], self._conversation(request)
        async with self._locks.slug(owner, made.id):
            session = self._session(owner, made.id)
            async with self._locks.chain(owner, session.root) if session is not None else nullcontext():
                if session is not None:
                    await self._delete_environment(session)
                await self._store.delete_conversation(owner, made.id, self._deleted(session))
        return answer({"id": made.id, "object": "conversation.deleted", "deleted": True})

    def _session(self, owner: str, conversation: str) -> Session | None:
        slug = self._store.slug(owner, conversation)
        return self._resolver.find(owner, slug.session) if slug is not None and slug.session is not None else None

    def _deleted(self, session: Session | None) -> list[str]:
        """The sessions of a conversation: none before its first turn."""
        return [] if session is None else self._deleted_with(session)

    def _conversation(self, request: web.Request) -> StoredConversation:
        """ISOLATE-06: the conversation of another principal is unknown."""
        self._access.check_may_continue()
        made = self._store.conversation(request[PRINCIPAL], request.match_info["id"])
        if made is None:
            raise Refusal(Case.CONVERSATION_NOT_FOUND, "There is no conversation with this id.")
        return made


def _as_json(made: StoredConversation) -> dict[str, Any]:
    return {"id": made.id, "object": "conversation", "created_at": made.created, "metadata": made.metadata}
