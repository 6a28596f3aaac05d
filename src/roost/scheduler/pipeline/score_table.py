"""The weighing half of the pipeline: weighers, multipliers, scales and the score table."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roost.engine.columns.host_columns import FIXED
from roost.engine.columns.state import State
from roost.engine.columns.types import Cells, Rows, Scores
from roost.engine.ranking import ranks
from roost.engine.ranking.score_cache import Board
from roost.model.evidence.decision import HostScore, Scale
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import (
    FactsOnly,
    SupportsMultipliers,
    SupportsUnweighable,
    Weigher,
    changes_per_instance,
    implements,
)
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import least_value, unreadable_warnings
from roost.scheduler.rule_support.ratios import parse_finite


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostWeights:
    """Scores of the hosts that passed, with what they were made of."""

    raws: list[Scores]  # one an active weigher, float64, shape (survivors,), clamped
    scales: list[Scale]  # one an active weigher
    totals: Scores  # float64, shape (survivors,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """What each weigher that tells hosts apart adds to their scores; float64, shape (survivors,), each."""

    normalised: dict[str, Scores]  # by weigher
    parts: dict[str, Scores]  # the same times the multiplier
    multipliers: dict[str, float]  # of those weighers for which no aggregate sets one
    totals: Scores


class ScoreTable:
    """The weighers that concern a request, told apart by whether hosts can differ in them.

    A weigher whose multiplier is 0 everywhere is off. One whose raw weight is the same for all hosts and
    adds nothing is flat: it stays in the score table and out of the arithmetic. If it is made of what most hosts
    do not have, devices or metrics, it is off too.
    """

    def __init__(self, state: State, spec: Spec, weighers: Sequence[Weigher]) -> None:
        self._state = state
        self._all_hosts = HostView(state)
        self._is_multiple = spec.is_multiple
        self._active: list[Weigher] = []
        self._overrides: list[Scores | None] = []  # float64, shape (hosts,): multipliers set by aggregates
        self._columns: list[str | None] = []  # the host column that is the raw weight, if it is one
        # Raw weights that stand for all requests while facts stay, or follow use by themselves; None: to be asked.
        self._lasting: list[Scores | None] = []
        self.warnings: list[str] = []  # multipliers that cannot be read
        self._flat_scales: list[Scale] = []
        self._may_be_unweighable = False  # a host that is left may be one that cannot be weighed
        for weigher in weighers:
            self._add_weigher(weigher, spec)
        self._is_overridden = any(override is not None for override in self._overrides)
        lasting = [raw for raw in self._lasting if raw is not None]
        self.is_lasting = len(lasting) == len(self._active)  # and so weighs alike for every request it concerns
        self.is_local = not self._is_overridden and self.is_lasting and not self._may_be_unweighable
        # Good until the next epoch, like all that is made here.
        self._each: list[Cells] = [raw.data for raw in lasting]
        self._bounds = [
            (at, weigher.minval, weigher.maxval)
            for at, weigher in enumerate(self._active)
            if weigher.minval is not None or weigher.maxval is not None
        ]
        self._board: Board | None = None
        self.names = [weigher.name for weigher in self._active] + [scale.weigher for scale in self._flat_scales]
        self.floating = [(weigher.minval is None, weigher.maxval is None) for weigher in self._active]

    def _add_weigher(self, weigher: Weigher, spec: Spec) -> None:
        override = self._host_multipliers(weigher, spec)
        is_off = weigher.multiplier == 0.0 and override is None
        if is_off and not implements(weigher, SupportsUnweighable):
            return
        raw = weigher.raw(self._all_hosts, spec)
        is_complete = not (
            implements(weigher, SupportsUnweighable) and np.isnan(raw[self._state.hosts.alive.view]).any()
        )
        if is_off and is_complete:
            return
        columns = self._state.hosts.columns
        name = next((name for name, column in columns.items() if column.view is raw), None)
        is_fixed = not changes_per_instance(weigher, spec)
        is_of_facts = is_fixed and implements(weigher, FactsOnly)
        if (is_of_facts or (is_fixed and name in FIXED)) and len(raw):
            value = float(raw[0])
            low = value if weigher.minval is None else weigher.minval
            if bool((raw == value).all()) and value == low:
                if not is_of_facts:
                    self._flat_scales.append(Scale(weigher.name, low, low, weigher.multiplier))
                return
        self._active.append(weigher)
        self._overrides.append(override)
        self._columns.append(name)
        self._lasting.append(raw if name is not None or is_of_facts else None)
        self._may_be_unweighable |= implements(weigher, SupportsUnweighable) and not (is_of_facts and is_complete)

    def _host_multipliers(self, weigher: Weigher, spec: Spec) -> Scores | None:
        """Return the multiplier of every host if any aggregate sets one: the least of its aggregates'."""
        if implements(weigher, SupportsMultipliers):
            own = weigher.multipliers(self._all_hosts, spec)
            return None if own is None or bool((own == weigher.multiplier).all()) else own
        key, sign = weigher.aggregate_key, weigher.sign
        if not any(key in metadata for metadata in self._state.metadata.values()):
            return None
        self.warnings += unreadable_warnings(self._all_hosts, key, cast=parse_finite)
        return least_value(self._all_hosts, key, default=weigher.multiplier * sign, cast=parse_finite) * sign

    def weigh(self, rows: Rows | None, spec: Spec) -> HostWeights:
        """Weigh the hosts that passed for a request.

        Args:
            rows: intp, shape (survivors,), or None for all; two at least.
            spec: the request.

        Raises:
            RoostError: what a weigher says of a host that it cannot weigh.
        """
        raws, scales, parts = [], [], []
        count = len(self._all_hosts) if rows is None else len(rows)
        for weigher, override, lasting in zip(self._active, self._overrides, self._lasting, strict=True):
            raw = weigher.raw(self._all_hosts, spec) if lasting is None else lasting
            if rows is not None:
                raw = raw.take(rows)
            if self._may_be_unweighable:
                check_weighable(weigher, raw, hosts=HostView(self._state, rows), spec=spec)
            raw = ranks.clamp(raw, minval=weigher.minval, maxval=weigher.maxval)
            multiplier = weigher.multiplier if override is None else 1.0
            scale = ranks.scale_of(
                raw, weigher=weigher.name, minval=weigher.minval, maxval=weigher.maxval, multiplier=multiplier
            )
            part = ranks.contributions(raw, scale)
            if part is not None:
                if override is not None:
                    part = part * (override if rows is None else override[rows])
                parts.append(part)
            raws.append(raw)
            scales.append(scale)
        return HostWeights(raws=raws, scales=scales, totals=ranks.total(parts, count))

    def board(self) -> Board | None:
        """Return the scores of all hosts as they are now; None where they do not follow from hosts alone."""
        if not self.is_local or not self._active:
            return None
        if self._board is None:
            self._board = Board(
                alive=self._state.hosts.alive.view,
                columns=[raw for raw in self._lasting if raw is not None],
                scales=[Scale(weigher.name, 0.0, 0.0, weigher.multiplier) for weigher in self._active],
                bounds=[(weigher.minval, weigher.maxval) for weigher in self._active],
                raws_of=self.raws_of,
                log=self._state.changes.hosts,
            )
        self._board.catch_up()
        return self._board

    def shares(self, rows: Rows, spec: Spec) -> Shares:
        """Weigh the hosts that passed, and keep every weigher's part: intp, shape (survivors,), two at least."""
        weighed = self.weigh(rows, spec)
        shares = Shares(normalised={}, parts={}, multipliers={}, totals=weighed.totals)
        for weigher, override, raw, scale in zip(
            self._active, self._overrides, weighed.raws, weighed.scales, strict=True
        ):
            normalised = ranks.normalise(raw, low=scale.low, high=scale.high)
            shares.normalised[weigher.name] = normalised
            shares.parts[weigher.name] = normalised * (weigher.multiplier if override is None else override[rows])
            if override is None:
                shares.multipliers[weigher.name] = weigher.multiplier
        return shares

    def raws_of(self, row: int) -> list[float]:
        """Return the raw weights of one host, clamped; only where every raw weight is a column."""
        raws: list[float] = [each[row] for each in self._each]
        for at, minval, maxval in self._bounds:
            if minval is not None and raws[at] < minval:
                raws[at] = float(minval)
            if maxval is not None and raws[at] > maxval:
                raws[at] = float(maxval)
        return raws

    def raws_of_rows(self, rows: Rows) -> Scores:
        """Return the same of some hosts: float64, shape (active weighers, rows)."""
        raws = np.empty((len(self._active), len(rows)))
        for at, (weigher, lasting) in enumerate(zip(self._active, self._lasting, strict=True)):
            assert lasting is not None
            raws[at] = ranks.clamp(lasting[rows], minval=weigher.minval, maxval=weigher.maxval)
        return raws

    def increments(self, amounts: list[tuple[int, int]]) -> list[float] | None:
        """Return what one instance adds to the raw weights of its host, one an active weigher.

        Args:
            amounts: class id and amount of everything it takes there.

        Returns:
            None where that cannot be told, because a raw weight is no column or has an upper bound.
        """
        if not self.is_local or any(weigher.maxval is not None for weigher in self._active):
            return None
        columns = self._state.hosts.columns
        added = dict.fromkeys(columns, 0.0)
        added["num_instances"], added["num_io_ops"] = 1.0, float(self._is_multiple)
        names = {id(column): name for name, column in columns.items()}
        for class_id, amount in amounts:
            counted = self._state.counted.get(class_id)
            if counted is not None:
                used, free, factor = counted
                added[names[id(used)]] += amount
                added[names[id(free)]] -= amount * factor
        return [0.0 if name is None else added[name] for name in self._columns]

    def scales(self, scales: list[Scale]) -> list[Scale]:
        """Return the scales of a ranking as evidence: those of active weighers, then of flat ones."""
        if not scales and self._active:
            return []
        if self._is_overridden:
            # Multipliers of aggregates are in the table, host by host.
            scales = [
                Scale(weigher.name, scale.low, scale.high, weigher.multiplier)
                for weigher, scale in zip(self._active, scales, strict=True)
            ]
        return scales + self._flat_scales

    def lines(
        self, hosts: list[str], rows: list[int], *, raws: list[list[float]], totals: list[float]
    ) -> list[HostScore]:
        """Return one line of the score table a host; flat weighers have no raw weights there, their scales tell."""
        if not raws or (not raws[0] and self._active):
            return [HostScore(hosts[row], 0.0, []) for row in rows]
        if not self._is_overridden:
            return [HostScore(hosts[row], total, raw) for row, raw, total in zip(rows, raws, totals, strict=False)]
        own = [weigher.multiplier for weigher in self._active]
        ends = [scale.multiplier for scale in self._flat_scales]
        return [
            HostScore(
                hosts[row],
                total,
                raw,
                [
                    multiplier if override is None else override.item(row)
                    for multiplier, override in zip(own, self._overrides, strict=True)
                ]
                + ends,
            )
            for row, raw, total in zip(rows, raws, totals, strict=False)
        ]


def check_weighable(weigher: Weigher, raw: Scores, *, hosts: HostView, spec: Spec) -> None:
    """See to it that a weigher can weigh all of some hosts.

    Args:
        raw: what it says of them: float64, shape (len(hosts),).

    Raises:
        RoostError: it cannot weigh one of them, as it says of the first.
    """
    if implements(weigher, SupportsUnweighable):
        lacking = np.flatnonzero(np.isnan(raw))
        if len(lacking):
            raise weigher.unweighable(hosts.subset(lacking[:1]), spec)
