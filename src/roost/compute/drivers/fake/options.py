"""Options of the fake driver."""

import msgspec


class FakeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the fake driver is told."""

    script: str = ""  # path of its script; empty: one plain node
    state: str = ""  # path of a folder, for guests that outlive the process; empty: they do not
    seed: int | None = None  # of chance; None: a fresh one
