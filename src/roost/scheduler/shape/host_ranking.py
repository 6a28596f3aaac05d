"""The result of a pipeline run for one instance."""

import msgspec

from roost.model.evidence.decision import Scale

TABLE = 5  # hosts in the score table of the evidence


class Ranking(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The best hosts for one instance, and the evidence."""

    rows: list[int]  # best first; fewer than requested if fewer passed
    left: int  # number of hosts that passed all checks
    rejects: list[int]  # number of hosts rejected by each stage, in order
    raws: list[list[float]]  # per row, perhaps not for the last rows, one raw weight per active weigher
    totals: list[float]  # per row
    scales: list[Scale]  # of the active weighers
