"""The client library of ``/v1``, and the HTTP clients of agents, servers and commands.

``from roost.client import Client, AsyncClient`` is the library; ``structs`` has its bodies and answers.

``library``: the client library of ``/v1``.
``structs``: bodies and answers of the library.
``wire``: requests on a persistent connection.
``service_http``: a service of OpenStack: tokens and retries.
``placement_http``: a Placement API, with retries.
``keystone_login``: tokens of Keystone, and the endpoint in its catalog.
``remote_claims``: candidates and claims of a remote Placement.
``host_mirror``: mirrors a remote Placement's providers in the columns.
``report_http``: a report client's connection to a Placement.
``agent_server``: the agent's client of its server.
``agent_token``: the token of an agent, which follows its file.
``server_list``: the servers of an agent, and the one in use.
``event_stream``: follows the events of a server.
``outage_text``: describes why a server gave no answer.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from roost.client.library.api_error import (
        ApiError,
        InvalidRequest,
        NoAnswer,
        ObjectMissing,
        OperationOpen,
        RequestConflict,
        RequestDenied,
        ServerTrouble,
    )
    from roost.client.library.async_client import AsyncClient
    from roost.client.library.attempts import Retry
    from roost.client.library.endpoint import ClientOptions
    from roost.client.library.sync_client import Client

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "ClientOptions",
    "InvalidRequest",
    "NoAnswer",
    "ObjectMissing",
    "OperationOpen",
    "RequestConflict",
    "RequestDenied",
    "Retry",
    "ServerTrouble",
]
_MODULES = {"AsyncClient": "async_client", "Client": "sync_client", "ClientOptions": "endpoint", "Retry": "attempts"}


def __getattr__(name: str) -> object:
    """Import the library on first use: agents import other modules of this package, and must start fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"roost.client.library.{_MODULES.get(name, 'api_error')}")
    return getattr(module, name)
