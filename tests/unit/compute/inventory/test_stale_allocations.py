"""Stale allocations: only those of deleted or moved instances are released."""

import pytest

from roost.compute.inventory.stale_allocations import Judgment, Standing, judge


@pytest.mark.parametrize(
    ("standing", "verdict"),
    [
        (None, ""),
        (Standing(is_deleted=True), "released"),
        (Standing(is_deleted=True, host="a", is_busy=True), "released"),
        (Standing(), ""),
        (Standing(host="a"), "is on this host, whose agent does not know it"),
        (Standing(host="a", is_busy=True), ""),
        (Standing(host="A"), "is on this host, whose agent does not know it"),
        (Standing(host="b"), "moved"),
        (Standing(host="b", is_busy=True), ""),
    ],
)
def test_verdict_on_a_consumer_that_the_host_does_not_track(standing, verdict):
    standings = {} if standing is None else {"c": standing}
    doubtful = {} if verdict in {"", "released", "moved"} else {"c": verdict}
    released, moved = (("c",) if verdict == kind else () for kind in ("released", "moved"))
    assert judge(["c", "c"], tracked=[], standings=standings, host="a") == Judgment(released, moved, doubtful)


def test_tracked_consumers_keep_their_allocations():
    standings = {"c": Standing(is_deleted=True), "m": Standing(host="b")}
    assert judge(["c", "m"], tracked={"c", "m"}, standings=standings, host="a") == Judgment((), (), {})
