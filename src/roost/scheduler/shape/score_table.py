"""Weighers, multipliers, scales and the score table: the second half of the pipeline."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from roost.engine.candidates.provider_order import ProviderOrder
from roost.engine.columns.host_columns import FIXED
from roost.engine.columns.state import State
from roost.engine.columns.types import Cells, Rows, Scores
from roost.engine.ranking import ranks
from roost.engine.ranking.score_cache import ScoreCache
from roost.model.evidence.decision import HostScore, Scale
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import (
    FactsOnly,
    HostsAlone,
    OrdersProviders,
    SupportsComparison,
    SupportsMultipliers,
    SupportsUnweighable,
    Weigher,
    changes_per_instance,
    implements,
)
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import lowest_value, unreadable_warnings
from roost.scheduler.rule_support.ratios import parse_finite


class KeptWeigher(Weigher, HostsAlone, Protocol):
    """A weigher with kept raw weights."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostWeights:
    """Scores of the accepted hosts, with their raw weights and scales."""

    raws: list[Scores]  # one per active weigher, float64, shape (survivors,), clamped
    scales: list[Scale]  # one per active weigher
    totals: Scores  # float64, shape (survivors,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """Each active weigher's part of the scores: float64, shape (survivors,) each."""

    normalised: dict[str, Scores]  # by weigher
    parts: dict[str, Scores]  # normalised weight times multiplier
    multipliers: dict[str, float]  # of weighers without multipliers from aggregates
    totals: Scores


class ScoreTable:
    """The weighers of a request, divided into active, flat and off.

    A weigher with multiplier 0 everywhere is off. A weigher with equal raw weights on all hosts is flat: it appears in
    the score table, but not in the arithmetic. A flat weigher of devices or metrics is off too, because most hosts
    lack these.
    """

    def __init__(self, state: State, spec: Spec, weighers: Sequence[Weigher]) -> None:
        self._state = state
        self._all_hosts = HostView(state)
        self._is_multiple = spec.is_multiple
        self._active: list[Weigher] = []
        self._overrides: list[Scores | None] = []  # float64, shape (hosts,): multipliers from aggregates
        self._multipliers: list[float] = []  # from the settings
        self._columns: list[str | None] = []  # the host column with the raw weight, if any
        # Raw weights of all hosts: host columns, or valid until facts change, or kept since the latest ``refresh``;
        # None: compute per request.
        self._raws: list[Scores | None] = []
        self._kept: list[tuple[int, KeptWeigher]] = []  # positions of the active weighers with kept raw weights
        self.warnings: list[str] = []  # invalid multipliers
        self._flat_scales: list[Scale] = []
        self._may_be_unweighable = False  # an accepted host may have the raw weight NaN
        for weigher in weighers:
            self._add_weigher(weigher, spec)
        self._orderers = [
            weigher for weigher in weighers if implements(weigher, OrdersProviders) and weigher.multiplier != 0.0
        ]
        self._is_overridden = any(override is not None for override in self._overrides)
        lasting = [raw for raw in self._raws if raw is not None]
        self.is_lasting = len(lasting) == len(self._active)  # raw weights are equal for all requests
        # Raw weights of one host depend on that host alone: a change of another host leaves them valid.
        self.is_local = (
            len(lasting) + len(self._kept) == len(self._active)
            and not self._is_overridden
            and not self._may_be_unweighable
        )
        # Valid until the next epoch, like all attributes, except for those of kept raw weights.
        self._cells: list[Cells] = [np.empty(0).data if raw is None else raw.data for raw in self._raws]
        self._kept_keys: dict[int, Hashable] = {}
        self.kept_version = 0  # see ``refresh``
        self._bounds = [
            (at, weigher.minval, weigher.maxval)
            for at, weigher in enumerate(self._active)
            if weigher.minval is not None or weigher.maxval is not None
        ]
        self._score_cache: ScoreCache | None = None
        self.names = [weigher.name for weigher in self._active] + [scale.weigher for scale in self._flat_scales]
        self.floating = [(weigher.minval is None, weigher.maxval is None) for weigher in self._active]

    def _add_weigher(self, weigher: Weigher, spec: Spec) -> None:
        override = self._host_multipliers(weigher, spec)
        is_off = weigher.multiplier == 0.0 and override is None
        if is_off and not implements(weigher, SupportsUnweighable):
            return
        raw = self._raw(weigher, spec)
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
        self._multipliers.append(weigher.multiplier)
        self._columns.append(name)
        if name is None and not is_of_facts and implements(weigher, HostsAlone):
            self._kept.append((len(self._raws), weigher))
        self._raws.append(raw if name is not None or is_of_facts else None)
        self._may_be_unweighable |= implements(weigher, SupportsUnweighable) and not (is_of_facts and is_complete)

    def _raw(self, weigher: Weigher, spec: Spec) -> Scores:
        """Return the raw weights of all hosts: float64, shape (hosts,); kept ones may change at the next call."""
        if not implements(weigher, HostsAlone):
            return weigher.raw(self._all_hosts, spec)
        return self._keep(weigher, spec, key=weigher.weight_key(self._all_hosts, spec))

    def _keep(self, weigher: Weigher, spec: Spec, *, key: Hashable) -> Scores:
        return self._all_hosts.follow(("raw weights", weigher, key), partial(_positive_zeros, weigher, spec=spec))

    def read_keys(self, spec: Spec) -> int:
        """Read the keys of kept raw weights.

        Returns:
            The version of the raw weights: it rises when those of unchanged hosts may have changed, since a weigher
            has another key.
        """
        for at, weigher in self._kept:
            key = weigher.weight_key(self._all_hosts, spec)
            if at not in self._kept_keys or self._kept_keys[at] != key:
                self._kept_keys[at] = key
                self.kept_version += 1
        return self.kept_version

    def refresh(self, spec: Spec) -> None:
        """Update the kept raw weights of changed hosts; ``read_keys`` must have been called since the last change."""
        for at, weigher in self._kept:
            raw = self._raws[at] = self._keep(weigher, spec, key=self._kept_keys[at])
            self._cells[at] = raw.data

    def compare(self, rows: Rows, spec: Spec) -> dict[str, str]:
        """Return the comparison of the first of two hosts with the second, by weigher; without equal hosts."""
        pair = HostView(self._state, rows)
        texts = {
            weigher.name: weigher.compare(pair, spec)
            for weigher in self._active
            if implements(weigher, SupportsComparison)
        }
        return {name: text for name, text in texts.items() if text}

    def provider_order(self, row: int, spec: Spec) -> ProviderOrder | None:
        """Return the preference among the providers of a host; None: no preference."""
        if not self._orderers:
            return None
        state = self._state
        host = HostView(state, np.array([row], dtype=np.intp))

        def costs_of(class_id: int, amount: int) -> dict[int, float]:
            name = state.class_ids.name_of(class_id)
            for weigher in self._orderers:
                costs = weigher.provider_costs(host, spec, resource_class=name, amount=amount)
                if costs is not None:
                    # The places without a provider are the last ones.
                    costs = costs.tolist() if isinstance(costs, np.ndarray) else costs
                    rows = [provider for provider in state.class_rows(class_id)[row].tolist() if provider >= 0]
                    return dict(zip(rows, costs, strict=False))
            return {}

        return ProviderOrder(costs_of)

    def _host_multipliers(self, weigher: Weigher, spec: Spec) -> Scores | None:
        """Return every host's multiplier if any aggregate sets one: the lowest of its aggregates."""
        if implements(weigher, SupportsMultipliers):
            own = weigher.multipliers(self._all_hosts, spec)
            return None if own is None or bool((own == weigher.multiplier).all()) else own
        key, sign = weigher.aggregate_key, weigher.sign
        if not any(key in metadata for metadata in self._state.metadata.values()):
            return None
        self.warnings += unreadable_warnings(self._all_hosts, key, cast=parse_finite)
        return lowest_value(self._all_hosts, key, default=weigher.multiplier * sign, cast=parse_finite) * sign

    def weigh(self, rows: Rows | None, spec: Spec) -> HostWeights:
        """Weigh the accepted hosts for a request.

        Args:
            rows: intp, shape (survivors,), or None for all; at least two.
            spec: the request.

        Raises:
            RoostError: the error of a weigher for a host that it cannot weigh.
        """
        raws, scales, parts = [], [], []
        count = len(self._all_hosts) if rows is None else len(rows)
        self.read_keys(spec)
        self.refresh(spec)
        for weigher, own, override, known in zip(
            self._active, self._multipliers, self._overrides, self._raws, strict=True
        ):
            raw = _positive_zeros(weigher, self._all_hosts, spec=spec) if known is None else known
            if rows is not None:
                raw = raw.take(rows)
            if self._may_be_unweighable:
                check_weighable(weigher, raw, hosts=HostView(self._state, rows), spec=spec)
            raw = ranks.clamp(raw, minval=weigher.minval, maxval=weigher.maxval)
            multiplier = own if override is None else 1.0
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

    def cached_scores(self) -> ScoreCache | None:
        """Return the current scores of all hosts; None if they depend on more than hosts."""
        if not self.is_local or not self.is_lasting or not self._active:
            return None
        if self._score_cache is None:
            self._score_cache = ScoreCache(
                alive=self._state.hosts.alive.view,
                columns=[raw for raw in self._raws if raw is not None],
                scales=[Scale(weigher.name, 0.0, 0.0, weigher.multiplier) for weigher in self._active],
                bounds=[(weigher.minval, weigher.maxval) for weigher in self._active],
                raws_of=self.raws_of,
                log=self._state.changes.hosts,
            )
        self._score_cache.catch_up()
        return self._score_cache

    def shares(self, rows: Rows, spec: Spec) -> Shares:
        """Weigh accepted hosts, and return each weigher's part.

        Args:
            rows: intp, shape (survivors,), at least two.
            spec: the request.
        """
        weights = self.weigh(rows, spec)
        shares = Shares(normalised={}, parts={}, multipliers={}, totals=weights.totals)
        for weigher, override, raw, scale in zip(
            self._active, self._overrides, weights.raws, weights.scales, strict=True
        ):
            normalised = ranks.normalise(raw, low=scale.low, high=scale.high)
            shares.normalised[weigher.name] = normalised
            shares.parts[weigher.name] = normalised * (weigher.multiplier if override is None else override[rows])
            if override is None:
                shares.multipliers[weigher.name] = weigher.multiplier
        return shares

    def raws_of(self, row: int) -> list[float]:
        """Return one host's clamped raw weights; valid only if ``is_local``, after ``refresh``."""
        return self._clamp([cells[row] for cells in self._cells])

    def _clamp(self, raws: list[float]) -> list[float]:
        for at, minval, maxval in self._bounds:
            if minval is not None and raws[at] < minval:
                raws[at] = float(minval)
            if maxval is not None and raws[at] > maxval:
                raws[at] = float(maxval)
        return raws

    def raws_of_changed(self, rows: list[int], spec: Spec) -> list[list[float]]:
        """Return the clamped raw weights of a few hosts, valid without ``refresh``.

        Kept raw weights are computed here, and left as is: they are updated less often, for more hosts at once.
        """
        if not self._kept or not rows:
            return [self.raws_of(row) for row in rows]
        hosts = HostView(self._state, np.array(rows, dtype=np.intp))
        fresh = [(at, _positive_zeros(weigher, hosts, spec=spec).tolist()) for at, weigher in self._kept]
        found = []
        for position, row in enumerate(rows):
            raws = [cells[row] for cells in self._cells]
            for at, parts in fresh:
                raws[at] = parts[position]
            found.append(self._clamp(raws))
        return found

    def raws_of_rows(self, rows: Rows) -> Scores:
        """Return the clamped raw weights of some hosts: float64, shape (active weighers, rows); see ``raws_of``."""
        raws = np.empty((len(self._active), len(rows)))
        for at, (weigher, raw) in enumerate(zip(self._active, self._raws, strict=True)):
            assert raw is not None
            raws[at] = ranks.clamp(raw[rows], minval=weigher.minval, maxval=weigher.maxval)
        return raws

    def increments(self, amounts: list[tuple[int, int]]) -> list[float] | None:
        """Return the change of a host's raw weights by one instance, one per active weigher.

        Args:
            amounts: class id and amount of each resource of the instance.

        Returns:
            None if unknown, because a raw weight is not a column or has an upper bound.
        """
        is_known = self.is_local and self.is_lasting
        if not is_known or any(weigher.maxval is not None for weigher in self._active):
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
        """Return the scales of a ranking as evidence: first active weighers, then flat ones."""
        if not scales and self._active:
            return []
        if self._is_overridden:
            # The table has the multipliers from aggregates per host.
            scales = [
                Scale(weigher.name, scale.low, scale.high, weigher.multiplier)
                for weigher, scale in zip(self._active, scales, strict=True)
            ]
        return scales + self._flat_scales

    def lines(
        self, hosts: list[str], rows: list[int], *, raws: list[list[float]], totals: list[float]
    ) -> list[HostScore]:
        """Return one line of the score table per host; flat weighers appear only in the scales."""
        if not raws or (not raws[0] and self._active):
            return [HostScore(hosts[row], 0.0, []) for row in rows]
        if not self._is_overridden:
            return [HostScore(hosts[row], total, raw) for row, raw, total in zip(rows, raws, totals, strict=False)]
        own = self._multipliers
        flat_multipliers = [scale.multiplier for scale in self._flat_scales]
        return [
            HostScore(
                hosts[row],
                total,
                raw,
                [
                    multiplier if override is None else override.item(row)
                    for multiplier, override in zip(own, self._overrides, strict=True)
                ]
                + flat_multipliers,
            )
            for row, raw, total in zip(rows, raws, totals, strict=False)
        ]


def check_weighable(weigher: Weigher, raw: Scores, *, hosts: HostView, spec: Spec) -> None:
    """Check that a weigher can weigh all given hosts.

    Args:
        weigher: the weigher.
        raw: its raw weights: float64, shape (len(hosts),).
        hosts: the hosts.
        spec: the request.

    Raises:
        RoostError: the weigher's error for the first host that it cannot weigh.
    """
    if implements(weigher, SupportsUnweighable):
        unweighable = np.flatnonzero(np.isnan(raw))
        if len(unweighable):
            raise weigher.unweighable(hosts.subset(unweighable[:1]), spec)


def _positive_zeros(weigher: Weigher, hosts: HostView, *, spec: Spec) -> Scores:
    """Return raw weights without -0.0, which the arithmetic of a pool would turn into 0.0."""
    raw: Scores = weigher.raw(hosts, spec) + 0.0
    return raw
