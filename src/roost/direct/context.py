"""``roost.PlacementDirect``: the whole Placement API for the length of a ``with`` block."""

import types
from collections.abc import Callable
from typing import Any

from roost.api.placement.in_process import InProcess
from roost.app import open_in_process
from roost.direct.database_config import resolve_config
from roost.direct.direct_client import Client
from roost.errors import BadRequest


class PlacementDirect:
    """A context that gives a client of the Placement API, answered in process: no server, no socket.

    The client asks as an administrator (``x-auth-token: admin``), who is believed whatever ``auth_strategy`` says,
    and does not raise on an error status. It is a keystoneauth adapter where keystoneauth1 is installed, else
    ``roost.direct.direct_client.Client``, whose methods are named alike.

    Args:
        config: where the database is: the path of a ``roost.toml``, of a ``placement.conf`` or of a SQLite file;
            a URL (``sqlite://`` is a database in memory, gone at the end); ``Settings``; or a loaded
            configuration with ``placement_database.connection``.
        latest_microversion: ask in the newest version where a request names none; else in the oldest.

    Raises:
        BadSettings: no database can be told from ``config``; raised on entering, as the others.
        BadFile: a file of settings cannot be read.
        StoreBusy: another process serves this SQLite file.
        Unavailable: the database cannot be used; the message says why.
    """

    def __init__(self, config: object, latest_microversion: bool = False) -> None:  # noqa: FBT001, FBT002  # as upstream
        self._config = config
        self._latest_microversion = latest_microversion
        self._api: InProcess | None = None
        self._close_client: Callable[[], None] | None = None

    def __enter__(self) -> Any:
        """Open the database, and return the client.

        Raises:
            BadRequest: this context is entered already.
        """
        if self._api is not None:
            raise BadRequest("this PlacementDirect is entered already: make another one")
        api = self._api = open_in_process(*resolve_config(self._config))
        version = "latest" if self._latest_microversion else None
        try:
            from roost.direct.keystone_adapter import adapter  # keystoneauth1 may not be installed
        except ModuleNotFoundError:
            return Client(api, microversion=version)
        session = adapter(api, microversion=version)
        self._close_client = session.close
        return session.adapter

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: types.TracebackType | None
    ) -> None:
        """Leave nothing behind: no thread, no lock, no open file."""
        close_client, self._close_client = self._close_client, None
        api, self._api = self._api, None
        if close_client is not None:
            close_client()
        if api is not None:
            api.close()
