"""A server on PostgreSQL: what the composition root does differently there. The driver is an extra, so nothing here imports it before it is needed."""

from typing import TYPE_CHECKING

from aiohttp import web

from continuity_server.http.middleware import Handler
from continuity_server.rules import Rules
from continuity_server.settings import Settings
from continuity_server.store.upgrade import StoreUnusableError

if TYPE_CHECKING:
    from continuity_server.store.postgres.store import PostgresStore


async def opened_on_postgres(settings: Settings, rules: Rules) -> "PostgresStore":
    """Open the store. Raises StoreUnusableError, also if the driver is missing."""
    try:
        from continuity_server.store.postgres.upgrade import open_postgres  # noqa: PLC0415 - its driver is an extra
    except ModuleNotFoundError as missing:
        raise StoreUnusableError(
            f"{missing.name} is not installed, which PostgreSQL needs: pip install 'session-continuity[postgres]'."
        ) from None
    return await open_postgres(settings.db, rules, settings.first_principal, mend=settings.controls is not None)


def waiting_for(store: "PostgresStore", application: web.Application) -> None:
    """Let the plain calls of every request wait for the database."""

    @web.middleware
    async def may_wait(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await store.attend(handler, request)

    application.middlewares.insert(0, may_wait)
