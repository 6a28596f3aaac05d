"""``roost.PlacementDirect``: the whole Placement API within a ``with`` block."""

import types
from collections.abc import Callable
from typing import Any

from roost.api.placement.in_process import InProcess
from roost.app import open_in_process
from roost.direct.database_config import resolve_config
from roost.direct.direct_client import Client
from roost.errors import BadRequest


class PlacementDirect:
    """A context manager that runs the Placement API in this process, without a server or socket, and yields a client.

    The client acts as an administrator (``x-auth-token: admin``), regardless of ``auth_strategy``, and does not raise
    on error statuses. It is a keystoneauth adapter if keystoneauth1 is installed, else
    ``roost.direct.direct_client.Client`` with the same methods.

    Args:
        config: location of the database: the path of a ``roost.toml``, a ``placement.conf`` or a SQLite file; a URL
            (``sqlite://`` is a temporary database in memory); ``Settings``; or a loaded configuration with
            ``placement_database.connection``.
        latest_microversion: whether requests use the newest microversion by default; if not, the oldest.

    Raises:
        BadSettings: ``config`` does not determine a database, or its file cannot be read. This error and those below
            are raised on entry.
        StoreBusy: another process serves this SQLite file.
        Unavailable: the database cannot be used; the message gives the reason.
    """

    def __init__(self, config: object, latest_microversion: bool = False) -> None:  # noqa: FBT001, FBT002  # as upstream
        self._config = config
        self._latest_microversion = latest_microversion
        self._api: InProcess | None = None
        self._close_client: Callable[[], None] | None = None

    def __enter__(self) -> Any:
        """Open the database, and return the client.

        Raises:
            BadRequest: the context is already open.
        """
        if self._api is not None:
            raise BadRequest("this PlacementDirect is already open: create another one")
        api = self._api = open_in_process(*resolve_config(self._config))
        version = "latest" if self._latest_microversion else None
        try:
            from roost.direct.keystone_adapter import open_adapter  # keystoneauth1 may not be installed
        except ModuleNotFoundError:
            return Client(api, microversion=version)
        session = open_adapter(api, microversion=version)
        self._close_client = session.close
        return session.adapter

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: types.TracebackType | None
    ) -> None:
        """Close the client and the API, with all threads, locks and files."""
        close_client, self._close_client = self._close_client, None
        api, self._api = self._api, None
        if close_client is not None:
            close_client()
        if api is not None:
            api.close()
