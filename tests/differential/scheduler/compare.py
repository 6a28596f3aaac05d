"""What differs between the reference and Roost on one pair, and whether that is meant."""

import itertools
import json
import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from roost.errors import BadRequest
from tests.differential.scheduler.differences import DIFFERENCES
from tests.differential.scheduler.nova import EXACT, TOPOLOGY_ERRORS, Nova
from tests.differential.scheduler.pairs import pair, whole
from tests.differential.scheduler.subject import FILTERS, WEIGHERS, Columns, HostStates

Json = dict[str, Any]
TOLERANCE = 1e-9  # relative, of weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A place where Roost says something else than the reference."""

    rule: str  # class of the reference, or "chosen"
    way: str  # columns or host states
    what: str  # passes, raw, normalised, totals, survivors, ranking, consumed
    at: int  # number of the host, -1: of none
    theirs: object
    ours: object

    @property
    def kind(self) -> tuple[str, str, str]:
        """What faults of one cause have in common, most of the time."""
        return self.rule, self.way, self.what


@dataclass(slots=True, kw_only=True)
class Tally:
    """What was compared."""

    pairs: int = 0
    refused: int = 0  # requests that the reference does not take
    kept: dict[str, int] = field(default_factory=dict)  # by filter, hosts
    dropped: dict[str, int] = field(default_factory=dict)
    apart: dict[str, int] = field(default_factory=dict)  # by weigher, pairs in which hosts differ
    meant: dict[str, int] = field(default_factory=dict)  # by name of the difference

    def add(self, other: "Tally") -> None:
        """Add what another compared."""
        self.pairs += other.pairs
        self.refused += other.refused
        for mine, theirs in (
            (self.kept, other.kept),
            (self.dropped, other.dropped),
            (self.apart, other.apart),
            (self.meant, other.meant),
        ):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count

    def text(self) -> str:
        """Return it as a table."""
        lines = [f"{self.pairs} pairs compared; {self.refused} more that the reference refuses as requests"]
        lines += [
            f"  {name:38} kept {self.kept[name]:7} dropped {self.dropped.get(name, 0):7}" for name in sorted(self.kept)
        ]
        lines += [f"  {name:38} tells hosts apart in {count} pairs" for name, count in sorted(self.apart.items())]
        lines += [f"  meant: {name}: {count}" for name, count in sorted(self.meant.items())]
        return "\n".join(lines)


class Duel:
    """The reference and Roost, asked about the same pairs."""

    def __init__(self, nova: Nova) -> None:
        self._nova = nova
        self.filters = sorted(name for name in nova.filters if name in FILTERS)
        self.weighers = sorted(name for name in nova.weighers if name in WEIGHERS)
        missing = {*nova.filters, *nova.weighers} - {*self.filters, *self.weighers}
        self.skipped = dict.fromkeys(missing, "Roost has no rule that stands for it")

    def compare(self, told: Json) -> tuple[list[Fault], Tally]:
        """Return what differs and is not meant, and what was compared."""
        asked, tally = whole(told), Tally()
        theirs = self._nova.ask(asked, filters=self.filters, weighers=self.weighers)
        if "refused" in theirs or not asked["hosts"]:
            tally.refused = 1
            return _refused(theirs.get("refused", ""), asked) if "NUMATopologyFilter" in self.filters else [], tally
        tally.pairs = 1
        faults = []
        for way, ours in (("columns", Columns(asked)), ("host states", HostStates(asked))):
            found = [fault for name in self.filters for fault in _filtered(name, way, theirs["filters"][name], ours)]
            found += [fault for name in self.weighers for fault in _weighed(name, way, theirs["weighers"][name], ours)]
            excused = {fault.rule for fault in found}
            named = [name for name in asked["enabled"] if name in self.filters]
            errors = any("error" in each for each in theirs["weighers"].values())
            if not excused & {*named, *self.weighers} and not errors and "error" not in theirs["chosen"]:
                found += _chosen(way, theirs["chosen"], ours.chosen(named, self.weighers))
            found += _consumed(way, theirs["consumed"], ours, asked)
            for fault in found:
                name = next((each.name for each in DIFFERENCES if each.excuses(fault, asked)), None)
                if name is None:
                    faults.append(fault)
                else:
                    tally.meant[name] = tally.meant.get(name, 0) + 1
        for name, verdicts in theirs["filters"].items():
            tally.kept[name] = sum(verdict is True for verdict in verdicts)
            tally.dropped[name] = len(verdicts) - tally.kept[name]
        for name, weights in theirs["weighers"].items():
            tally.apart[name] = int(len(set(weights.get("totals", ()))) > 1)
        return faults, tally


def _refused(theirs: str, asked: Json) -> list[Fault]:
    """Return a fault where the reference refuses the memory nodes that a request asks for, and Roost does not."""
    rule = "NUMATopologyFilter"
    if theirs.split(":", maxsplit=1)[0] not in TOPOLOGY_ERRORS or Columns(asked).refusal(rule):
        return []
    return [Fault(rule=rule, way="columns", what="refusal", at=-1, theirs=theirs, ours="")]


def _filtered(name: str, way: str, theirs: list[bool | str], ours: Columns | HostStates) -> list[Fault]:
    try:
        verdicts: list[Any] = ours.passing(name)
    except Exception as error:  # noqa: BLE001  (whatever it is, it is a fault, and the pair shows why)
        verdicts = [f"{type(error).__name__}: {error}"] * len(theirs)
    return [
        Fault(rule=name, way=way, what="passes", at=at, theirs=their, ours=our)
        for at, (their, our) in enumerate(zip(theirs, verdicts, strict=True))
        if their is not our
    ]


def _weighed(name: str, way: str, theirs: Json, ours: Columns | HostStates) -> list[Fault]:
    try:
        weights = ours.weights(name)
    except Exception as error:  # noqa: BLE001
        weights = {"error": type(error).__name__}
    if "error" in theirs or "error" in weights:
        if "error" in theirs and "error" in weights:
            return []
        return [Fault(rule=name, way=way, what="error", at=-1, theirs=theirs.get("error"), ours=weights.get("error"))]
    kinds = ("raw", "normalised", "totals") if len(theirs["raw"]) > 1 else ("raw", "normalised")
    return [
        Fault(rule=name, way=way, what=kind, at=at, theirs=their, ours=our)
        for kind in kinds
        for at, (their, our) in enumerate(zip(theirs[kind], weights[kind], strict=True))
        if not is_near(their, our)
    ]


def _chosen(way: str, theirs: Json, ours: Json) -> list[Fault]:
    if theirs["survivors"] != ours["survivors"]:
        return [
            Fault(rule="chosen", way=way, what="survivors", at=-1, theirs=theirs["survivors"], ours=ours["survivors"])
        ]
    if len(theirs["totals"]) < 2:
        return []
    sums = dict(zip(ours["survivors"], ours["totals"], strict=True))
    size = max(map(abs, theirs["totals"]))  # Sums of large and small parts are as exact as the large ones.
    faults = [
        Fault(rule="chosen", way=way, what="totals", at=at, theirs=their, ours=sums[at])
        for at, their in zip(theirs["survivors"], theirs["totals"], strict=True)
        if not is_near(their, sums[at], size=size)
    ]
    ranked = theirs["ranking"]
    faults += [
        Fault(rule="chosen", way=way, what="ranking", at=later, theirs=ranked, ours=sums)
        for before, later in itertools.pairwise(ranked)
        if sums[later] > sums[before] and not is_near(sums[later], sums[before], size=size)
    ]
    return faults


def _consumed(way: str, theirs: list[Any], ours: Columns | HostStates, asked: Json) -> list[Fault]:
    """Return the hosts of which instances of one request take something else."""
    faults: list[Fault] = []
    if "_nova_check_type" in asked["request"]["hints"]:
        return faults  # What is there already takes nothing.
    for at, their in enumerate(theirs):
        if not (asked["hosts"][at]["numa_cells"] or asked["hosts"][at]["pci_pools"]):
            continue
        try:
            our: Any = ours.consumed(list(EXACT), at)
        except Exception as error:  # noqa: BLE001
            our = [type(error).__name__]
        if our != their:
            rule = EXACT[0] if asked["hosts"][at]["numa_cells"] else EXACT[1]
            faults.append(Fault(rule=rule, way=way, what="consumed", at=at, theirs=their, ours=our))
    return faults


def is_near(their: float, our: float, *, size: float = 0.0) -> bool:
    """Return whether two weights are the same, but for how they were added up."""
    if math.isnan(their) or math.isnan(our):
        return math.isnan(their) and math.isnan(our)
    return math.isclose(their, our, rel_tol=TOLERANCE, abs_tol=max(TOLERANCE * size, 1e-12))


def story(duel: Duel, seed: int, fault: Fault, *, may_shorten: bool) -> str:
    """Tell a fault, with the smallest pair found that shows one of its kind."""
    lines = [
        f"seed {seed}: {fault.rule} by {fault.way}: {fault.what} of host {fault.at}",
        f"  reference: {fault.theirs!r}",
        f"  Roost:     {fault.ours!r}",
        f"  again: python -m tests.differential.scheduler --seed {seed}",
    ]
    if may_shorten:
        smallest = json.dumps(shorten(duel, pair(seed), fault), ensure_ascii=False)
        lines.append(f"  the smallest pair that shows it: {smallest}")
    return "\n".join(lines)


def shorten(duel: Duel, told: Json, fault: Fault) -> Json:
    """Take away whatever can be taken away while a fault of the same kind remains."""
    while True:
        for smaller in _smaller(told):
            with suppress(BadRequest):  # What is left cannot be meant.
                if any(each.kind == fault.kind for each in duel.compare(smaller)[0]):
                    told = smaller
                    break
        else:
            return told


def _smaller(table: Any) -> Any:
    """Yield copies of a value with one thing taken away; lists in lists are one thing."""
    if isinstance(table, dict):
        for name, value in table.items():
            yield {other: each for other, each in table.items() if other != name}
            for smaller in _smaller(value):
                yield {**table, name: smaller}
    elif isinstance(table, list):
        for at, value in enumerate(table):
            yield table[:at] + table[at + 1 :]
            for smaller in _smaller(value) if isinstance(value, dict) else ():
                yield [*table[:at], smaller, *table[at + 1 :]]
