"""Options of the fake driver."""

import msgspec


class FakeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the fake driver."""

    script: str = ""  # path of its script; empty: one plain node
    state: str = ""  # path of a folder for guests, so that they survive the process; empty: in memory
    seed: int | None = None  # of the random faults; None: a new seed
