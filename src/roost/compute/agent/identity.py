"""The identity of an agent: its host, its process and its driver."""

import msgspec


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of an agent."""

    host: str  # name of the service
    run: str  # uuid of this process
    driver: str  # name of its driver
    software: str = ""
    cell: str = ""
