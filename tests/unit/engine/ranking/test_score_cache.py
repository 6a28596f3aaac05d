import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roost.engine.columns.change_log import ChangeLog
from roost.engine.ranking.ranks import clamp, contributions, scale_of, total
from roost.engine.ranking.score_cache import ScoreCache
from roost.model.evidence.decision import Scale

NUMBERS = st.sampled_from([0.0, 1.0, 2.0, 7.0, 0.1, -3.0, 1e9])
BOUNDS = st.sampled_from([(None, None), (0.0, None), (None, 5.0), (0.0, 5.0)])


class Fleet:
    """Hosts with changing raw weights, and a score cache over them."""

    def __init__(self, columns, *, alive, bounds, multipliers):
        self.columns = columns
        self.alive = alive
        self.bounds = bounds
        self.multipliers = multipliers
        self.log = ChangeLog()
        self.cache = ScoreCache(
            alive=alive,
            columns=columns,
            scales=[Scale(str(at), 0.0, 0.0, each) for at, each in enumerate(multipliers)],
            bounds=bounds,
            raws_of=lambda row: [float(raw[row]) for raw in self.raws()],
            log=self.log,
        )

    def raws(self):
        """Return the raw weights of all hosts, clamped to their bounds: one array per weigher."""
        return [
            clamp(each, minval=low, maxval=high) for each, (low, high) in zip(self.columns, self.bounds, strict=True)
        ]

    def weigh(self, passing):
        """Return the scales and totals of some hosts, computed from scratch."""
        raws = [raw[passing] for raw in self.raws()]
        scales = [
            scale_of(raw, weigher=str(at), minval=low, maxval=high, multiplier=multiplier)
            for at, (raw, (low, high), multiplier) in enumerate(zip(raws, self.bounds, self.multipliers, strict=True))
        ]
        parts = [contributions(raw, scale) for raw, scale in zip(raws, scales, strict=True)]
        return scales, total([part for part in parts if part is not None], int(passing.sum())) + 0.0


@st.composite
def fleets(draw):
    hosts, weighers = draw(st.integers(2, 12)), draw(st.integers(1, 3))
    columns = [np.array(draw(st.lists(NUMBERS, min_size=hosts, max_size=hosts))) for _ in range(weighers)]
    alive = np.array(draw(st.lists(st.booleans(), min_size=hosts, max_size=hosts)))
    alive[draw(st.integers(0, hosts - 1))] = True
    return Fleet(
        columns,
        alive=alive,
        bounds=[draw(BOUNDS) for _ in range(weighers)],
        multipliers=[draw(st.sampled_from([1.0, -1.0, 0.0, 1000.0, 0.3])) for _ in range(weighers)],
    )


@given(fleets(), st.data())
def test_score_cache_equals_a_recomputation_bit_for_bit(fleet, data):
    hosts = len(fleet.alive)
    rows = [row for row in range(hosts) if fleet.alive[row]]
    for _ in range(data.draw(st.integers(0, 6))):
        for row in data.draw(st.lists(st.sampled_from(rows), max_size=3)):
            for column in fleet.columns:
                column[row] = data.draw(NUMBERS)
            fleet.log.add(row)
        fleet.cache.catch_up()
        passing = fleet.alive & np.array(data.draw(st.lists(st.booleans(), min_size=hosts, max_size=hosts)))
        for mask in (fleet.alive, passing):
            if mask.any() and fleet.cache.holds_for(mask):
                scales, totals = fleet.weigh(mask)
                assert fleet.cache.scales == scales
                assert (fleet.cache.totals[mask] + 0.0).tobytes() == totals.tobytes()
        assert fleet.cache.holds_for(fleet.alive)


def fleet_of(hosts):
    """Return a fleet in which each host has a different weight."""
    all_hosts = np.ones(hosts, dtype=np.bool_)
    return Fleet([np.arange(float(hosts))], alive=all_hosts, bounds=[(None, None)], multipliers=[1.0])


def test_cache_holds_only_if_the_hosts_at_both_ends_pass():
    fleet = fleet_of(4)
    assert fleet.cache.holds_for(np.array([True, False, True, True]))
    assert not fleet.cache.holds_for(np.array([False, True, True, True]))
    assert not fleet.cache.holds_for(np.array([True, True, True, False]))


def test_cache_is_recomputed_after_the_log_is_truncated():
    fleet = fleet_of(500)
    for _ in range(20_000):
        fleet.log.add(3)
    fleet.columns[0][3] = 499.0
    fleet.columns[0][7] = 499.0  # Not in the log, so only a full recomputation sees it.
    fleet.cache.catch_up()
    assert fleet.cache.totals[[3, 7]].tolist() == [1.0, 1.0]
