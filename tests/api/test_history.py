"""The history of the fleet over /v1, and its rows from a real server."""

import signal
import time
from urllib.parse import urlencode

import pytest

from roost.model.evidence.fleet_history import (
    MINUTE_S,
    ClassAmounts,
    DecisionCounts,
    HistoryRow,
    decode_amounts,
    decode_counts,
    encode_amounts,
    encode_counts,
)
from roost.store.upkeep.stored_history import SqlHistory
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import roost_api
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}


def fill(own, minutes):
    """Write a row of amounts and of decisions for each of the last minutes; return the first minute."""
    first = int(time.time() // MINUTE_S) - minutes
    for at in range(minutes):
        cells = [ClassAmounts(name, zone, 100, at, 1, 0) for name in ("MEMORY_MB", "VCPU") for zone in ("a", "b")]
        history = own.serving.store.history
        history.insert(HistoryRow(first + at, "", encode_amounts(cells), b""))
        history.insert(HistoryRow(first + at, "me", b"", encode_counts(DecisionCounts(2, 1, {"io_ops/rule": 3}))))
    return first


def history(own, **query):
    answer = own.get(f"/history?{urlencode(query)}")
    assert answer.status == 200, answer.json
    return answer.json


def test_history_has_aligned_arrays(own):
    first = fill(own, 30)
    since, until = first * MINUTE_S, (first + 30) * MINUTE_S - 1
    found = history(own, since=since, until=until, points=30)
    assert (found["step_s"], len(found["times"]), found["times"][0]) == (60, 30, since)
    assert [each["resource_class"] for each in found["classes"]] == ["MEMORY_MB", "VCPU"]
    assert found["classes"][1]["used"] == [2 * at for at in range(30)]
    assert (found["granted"], found["failed"]) == ([2] * 30, [1] * 30)
    assert found["refused"] == [{"rule": "io_ops", "reason": "rule", "counts": [3] * 30}]
    one = history(own, since=since, until=until, points=30, zone="a", **{"class": "VCPU"})
    assert [(each["resource_class"], each["used"][-1]) for each in one["classes"]] == [("VCPU", 29)]
    assert one["zones"] == ["a", "b"]


def test_fewer_points_are_longer_periods(own):
    fill(own, 60)
    found = history(own, since=time.time() - 3600, points=7)
    assert (found["step_s"], len(found["times"])) == (600, 7)
    assert sum(found["granted"]) == 120


def test_history_without_rows_is_empty(own):
    found = history(own)
    assert (found["classes"], found["refused"], set(found["granted"])) == ([], [], {0})
    assert len(found["times"]) <= 240


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=5&until=5", "?since"),
        ("since=-1", "?since"),
        ("since=nan", "?since"),
        ("until=-1", "?until"),
        ("until=inf", "?until"),
        ("points=0", "?points"),
        ("points=1001", "?points"),
    ],
)
def test_invalid_span_is_refused(own, query, field):
    answer = own.get(f"/history?{query}")
    assert (answer.status, answer.json["field"]) == (400, field)


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
def test_server_writes_the_minute_in_which_it_ends(tmp_path, request, backend):
    url = str(tmp_path / "roost.db") if backend == "sqlite" else request.getfixturevalue("postgres_url")
    with roost_api(fleet(3, vcpus=4), url=url):
        pass
    options = () if backend == "sqlite" else ("--database", url)
    settings = "[monitoring]\nsurvey_interval_s = 0.1"
    with serve(*options, folder=tmp_path, settings=settings, noun="up") as server:
        outcomes = [
            server.ask("POST", "/v1/decisions", {**SMALL, "count": count}, headers={"x-auth-token": "admin"})[2]
            for count in (1, 50)
        ]
        wait_until(lambda: b"roost_fleet_capacity{" in server.ask("GET", "/metrics", headers={})[2])
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(30)
    assert [each["outcome"] for each in outcomes] == ["granted", "refused"]
    rows = SqlHistory(url).read(0, 10**9)
    cells = [each for row in rows for each in decode_amounts(row.amounts)]
    assert ("VCPU", "nova", 12) in {(each.resource_class, each.zone, each.capacity) for each in cells}
    counts = [decode_counts(row.counts) for row in rows if row.counts]
    assert (sum(each.granted for each in counts), sum(sum(each.refused.values()) for each in counts)) == (1, 1)
