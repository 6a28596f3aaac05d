"""What comes of picking hosts for a request, until it is a decision."""

from roost.model.evidence.decision import HostScore, Pick, Scale, Stage
from roost.model.writes import Claim
from roost.ports import Left
from roost.scheduler.pipeline.shape import Shape
from roost.scheduler.pipeline.shape_result import Ranking


class Choice:
    """What came of picking: hosts and claims, and the evidence of the ranking that tells the story."""

    __slots__ = ("alternates", "best", "claims", "faults", "is_refused", "left", "picks", "rows", "scales", "stages")

    def __init__(self) -> None:
        self.is_refused = False
        self.rows: list[int] = []
        self.picks: list[Pick] = []
        self.claims: list[Claim] = []
        self.left: Left | None = None  # who moves
        self.alternates: dict[str, list[Pick]] = {}
        self.stages: list[Stage] = []
        self.scales: list[Scale] = []
        self.best: list[HostScore] = []
        self.faults: list[str] = []  # of rules that failed

    def record_ranking(self, shape: Shape, ranking: Ranking) -> None:
        """Keep the evidence of the first instance's ranking."""
        self.faults = shape.faults
        self.stages = shape.stages(ranking)
        self.scales = shape.scales(ranking)
        self.best = shape.table(ranking)

    def record_refusal(self, shape: Shape, ranking: Ranking) -> None:
        """Keep the evidence of the ranking that left no host."""
        self.is_refused = True
        self.faults = shape.faults
        self.stages = shape.stages(ranking)
