"""The identity of an agent."""

import msgspec


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who an agent is."""

    host: str  # name of the service
    run: str  # uuid of this life
    driver: str  # name of what runs its guests
    software: str = ""
    cell: str = ""
