"""Working state of one selection: hosts, claims and evidence so far."""

from roost.model.evidence.decision import HostScore, Pick, Scale, Stage
from roost.model.writes import Claim
from roost.ports import DepartedInstance
from roost.scheduler.shape.host_ranking import Ranking
from roost.scheduler.shape.shape import Shape


class Choice:
    """Hosts, claims and evidence of one selection."""

    __slots__ = (
        "alternates",
        "best",
        "claims",
        "departed",
        "faults",
        "is_refused",
        "picks",
        "rows",
        "scales",
        "stages",
    )

    def __init__(self) -> None:
        self.is_refused = False
        self.rows: list[int] = []
        self.picks: list[Pick] = []
        self.claims: list[Claim] = []
        self.departed: DepartedInstance | None = None  # the moving instance on its previous host
        self.alternates: dict[str, list[Pick]] = {}
        self.stages: list[Stage] = []
        self.scales: list[Scale] = []
        self.best: list[HostScore] = []
        self.faults: list[str] = []  # errors of rules

    def record_ranking(self, shape: Shape, ranking: Ranking) -> None:
        """Record the evidence of the first instance's ranking."""
        self.faults = shape.verdicts.faults
        self.stages = shape.evidence.stages(ranking)
        self.scales = shape.evidence.scales(ranking)
        self.best = shape.evidence.table(ranking)

    def record_refusal(self, shape: Shape, ranking: Ranking) -> None:
        """Record the evidence of the ranking without any host left."""
        self.is_refused = True
        self.faults = shape.verdicts.faults
        self.stages = shape.evidence.stages(ranking)
