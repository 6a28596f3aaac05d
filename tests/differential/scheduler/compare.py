"""Compare the reference and Roost on a pair, and sort out intended differences."""

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
    """One difference between Roost and the reference."""

    rule: str  # class of the reference, or "chosen"
    way: str  # columns or host states
    what: str  # passes, raw, normalised, totals, survivors, ranking, consumed
    at: int  # number of the host; -1 for none
    theirs: object
    ours: object

    @property
    def kind(self) -> tuple[str, str, str]:
        """The fields that faults of the same cause usually share."""
        return self.rule, self.way, self.what


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of a comparison."""

    pairs: int = 0
    refused: int = 0  # requests that the reference refuses
    kept: dict[str, int] = field(default_factory=dict)  # by filter, hosts
    dropped: dict[str, int] = field(default_factory=dict)
    apart: dict[str, int] = field(default_factory=dict)  # by weigher, pairs in which hosts differ
    intended: dict[str, int] = field(default_factory=dict)  # by name of the difference

    def add(self, other: "Tally") -> None:
        """Add another tally."""
        self.pairs += other.pairs
        self.refused += other.refused
        for mine, theirs in (
            (self.kept, other.kept),
            (self.dropped, other.dropped),
            (self.apart, other.apart),
            (self.intended, other.intended),
        ):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count

    def text(self) -> str:
        """Return the counts as a table."""
        lines = [f"{self.pairs} pairs compared; {self.refused} more that the reference refuses as requests"]
        lines += [
            f"  {name:38} kept {self.kept[name]:7} dropped {self.dropped.get(name, 0):7}" for name in sorted(self.kept)
        ]
        lines += [f"  {name:38} distinguishes hosts in {count} pairs" for name, count in sorted(self.apart.items())]
        lines += [f"  intended: {name}: {count}" for name, count in sorted(self.intended.items())]
        return "\n".join(lines)


class Duel:
    """A comparison of the reference and Roost on the same pairs."""

    def __init__(self, nova: Nova) -> None:
        self._nova = nova
        self.filters = sorted(name for name in nova.filters if name in FILTERS)
        self.weighers = sorted(name for name in nova.weighers if name in WEIGHERS)
        missing = {*nova.filters, *nova.weighers} - {*self.filters, *self.weighers}
        self.skipped = dict.fromkeys(missing, "Roost has no equivalent rule")

    def compare(self, table: Json) -> tuple[list[Fault], Tally]:
        """Return the unintended differences of a pair, and the counts."""
        table, tally = whole(table), Tally()
        theirs = self._nova.ask(table, filters=self.filters, weighers=self.weighers)
        if "refused" in theirs or not table["hosts"]:
            tally.refused = 1
            return _compare_refusal(
                theirs.get("refused", ""), table
            ) if "NUMATopologyFilter" in self.filters else [], tally
        tally.pairs = 1
        faults = []
        for way, ours in (("columns", Columns(table)), ("host states", HostStates(table))):
            found = [
                fault for name in self.filters for fault in _compare_filter(name, way, theirs["filters"][name], ours)
            ]
            found += [
                fault for name in self.weighers for fault in _compare_weigher(name, way, theirs["weighers"][name], ours)
            ]
            excused = {fault.rule for fault in found}
            named = [name for name in table["enabled"] if name in self.filters]
            errors = any("error" in each for each in theirs["weighers"].values())
            if not excused & {*named, *self.weighers} and not errors and "error" not in theirs["chosen"]:
                found += _compare_choice(way, theirs["chosen"], ours.chosen(named, self.weighers))
            found += _compare_consumption(way, theirs["consumed"], ours, table)
            for fault in found:
                name = next((each.name for each in DIFFERENCES if each.excuses(fault, table)), None)
                if name is None:
                    faults.append(fault)
                else:
                    tally.intended[name] = tally.intended.get(name, 0) + 1
        for name, verdicts in theirs["filters"].items():
            tally.kept[name] = sum(verdict is True for verdict in verdicts)
            tally.dropped[name] = len(verdicts) - tally.kept[name]
        for name, weights in theirs["weighers"].items():
            tally.apart[name] = int(len(set(weights.get("totals", ()))) > 1)
        return faults, tally


def _compare_refusal(theirs: str, table: Json) -> list[Fault]:
    """Return a fault if the reference refuses the NUMA topology of a request and Roost accepts it."""
    rule = "NUMATopologyFilter"
    if theirs.split(":", maxsplit=1)[0] not in TOPOLOGY_ERRORS or Columns(table).refusal(rule):
        return []
    return [Fault(rule=rule, way="columns", what="refusal", at=-1, theirs=theirs, ours="")]


def _compare_filter(name: str, way: str, theirs: list[bool | str], ours: Columns | HostStates) -> list[Fault]:
    try:
        verdicts: list[Any] = ours.passing(name)
    except Exception as error:  # noqa: BLE001  (any error is a fault, which the pair reproduces)
        verdicts = [f"{type(error).__name__}: {error}"] * len(theirs)
    return [
        Fault(rule=name, way=way, what="passes", at=at, theirs=their, ours=our)
        for at, (their, our) in enumerate(zip(theirs, verdicts, strict=True))
        if their is not our
    ]


def _compare_weigher(name: str, way: str, theirs: Json, ours: Columns | HostStates) -> list[Fault]:
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


def _compare_choice(way: str, theirs: Json, ours: Json) -> list[Fault]:
    if theirs["survivors"] != ours["survivors"]:
        return [
            Fault(rule="chosen", way=way, what="survivors", at=-1, theirs=theirs["survivors"], ours=ours["survivors"])
        ]
    if len(theirs["totals"]) < 2:
        return []
    sums = dict(zip(ours["survivors"], ours["totals"], strict=True))
    size = max(map(abs, theirs["totals"]))  # The precision of a sum depends on its largest parts.
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


def _compare_consumption(way: str, theirs: list[Any], ours: Columns | HostStates, table: Json) -> list[Fault]:
    """Return the hosts on which instances of one request consume different resources."""
    faults: list[Fault] = []
    if "_nova_check_type" in table["request"]["hints"]:
        return faults  # An instance that already exists consumes nothing.
    for at, their in enumerate(theirs):
        if not (table["hosts"][at]["numa_cells"] or table["hosts"][at]["pci_pools"]):
            continue
        try:
            our: Any = ours.consumed(list(EXACT), at)
        except Exception as error:  # noqa: BLE001
            our = [type(error).__name__]
        if our != their:
            rule = EXACT[0] if table["hosts"][at]["numa_cells"] else EXACT[1]
            faults.append(Fault(rule=rule, way=way, what="consumed", at=at, theirs=their, ours=our))
    return faults


def is_near(their: float, our: float, *, size: float = 0.0) -> bool:
    """Return whether two weights are equal except for rounding."""
    if math.isnan(their) or math.isnan(our):
        return math.isnan(their) and math.isnan(our)
    return math.isclose(their, our, rel_tol=TOLERANCE, abs_tol=max(TOLERANCE * size, 1e-12))


def story(duel: Duel, seed: int, fault: Fault, *, may_shorten: bool) -> str:
    """Return a report of a fault, with the smallest known pair that shows one of its kind."""
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


def shorten(duel: Duel, table: Json, fault: Fault) -> Json:
    """Remove all parts of a pair that a fault of the same kind does not need."""
    while True:
        for smaller in _smaller(table):
            with suppress(BadRequest):  # The rest may be an invalid request.
                if any(each.kind == fault.kind for each in duel.compare(smaller)[0]):
                    table = smaller
                    break
        else:
            return table


def _smaller(table: Any) -> Any:
    """Yield copies of a value without one of its parts; a list in a list counts as one part."""
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
