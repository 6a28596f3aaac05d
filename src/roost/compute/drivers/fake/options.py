"""Options of the fake driver."""

import msgspec


class FakeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the fake driver."""

    script: str = ""  # path of its script; empty: one plain node
    state: str = ""  # path of a folder, for guests that survive the process; empty: they do not
    seed: int | None = None  # of chance; None: a new one
