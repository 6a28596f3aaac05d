"""What a pipeline finds for one instance."""

import msgspec

from roost.model.evidence.decision import Scale


class Ranking(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The outcome for one instance: hosts best first, and the evidence."""

    rows: list[int]  # as many as were wanted, fewer if fewer are left
    left: int  # how many hosts passed everything
    rejects: list[int]  # hosts refused by each stage, in order
    raws: list[list[float]]  # per row, one raw weight an active weigher
    totals: list[float]  # per row
    scales: list[Scale]  # of the active weighers
