"""Who holds what, and the ways to hold a request."""

import msgspec


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One way to satisfy a whole request: amounts on providers."""

    allocations: dict[str, dict[str, int]]  # provider uuid -> resource class -> amount
    mappings: dict[str, tuple[str, ...]] = {}  # group suffix -> provider uuids


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """Holder of allocations, with the allocations it holds."""

    uuid: str
    generation: int = 0
    project_id: str = ""
    user_id: str = ""
    consumer_type: str = ""
    allocations: dict[str, dict[str, int]] = {}  # provider uuid -> resource class -> amount
