"""The file of a fleet, decoded by its description, and its cached forms."""

import zlib
from random import Random

import pytest

from roost.api.v1.fleet import fleet_file
from roost.api.v1.fleet.fleet_file import Encoded, FleetFile, encode
from roost.app.monitoring.host_zones import zone_finder
from roost.engine.survey.fleet_snapshot import SnapshotReader
from tests.reference.fleet_snapshot import list_hosts
from tests.support.fleets.changing_fleets import DEFAULT_ZONE, DOWN_TIME_S, NOW_S, ChangingFleet
from tests.support.servers.fleet_files import FleetColumns


def read(state, reader=None):
    return (reader or SnapshotReader()).read(
        state,
        now_s=NOW_S,
        down_time_s=DOWN_TIME_S,
        zone_of=zone_finder(state, default_zone=DEFAULT_ZONE),
        pause=lambda: None,
    )


@pytest.mark.parametrize("seed", range(20))
def test_file_has_all_hosts(seed):
    fleet = ChangingFleet(Random(seed))
    for _ in range(6):
        fleet.change()
    classes, slow = list_hosts(fleet.state, now_s=NOW_S, down_time_s=DOWN_TIME_S, default_zone=DEFAULT_ZONE)
    found = FleetColumns(encode(read(fleet.state)))
    head, columns = found.head, found.columns
    assert (found.hosts, head["classes"], head["position"]) == (len(slow), classes, 6)
    for at, host in enumerate(slow):
        place = found.place_of(at)
        assert [each[at] for each in found.shares] == host["shares"]
        assert columns["instances"][at] == host["instances"]
        assert columns["state"][at] == host["state"]
        assert columns["reported_s"][at] == host["reported_s"]
        assert head["racks"][columns["rack"][at]] == host["rack"]
        assert head["kinds"][columns["kind"][at]] == host["kind"]
        assert (place[0], sorted(place[1])) == (host["zone"], sorted(name for _, name in host["aggregates"]))


def test_file_of_an_empty_fleet_is_a_head():
    fleet = ChangingFleet(Random(0), providers=0)
    assert FleetColumns(encode(read(fleet.state))).hosts == 0


def test_forms_are_made_once(monkeypatch):
    built = []

    def build():
        built.append(1)
        return b"fleet" * 1000

    encoded = Encoded(build)
    short = encoded.read(is_compressed=True)
    monkeypatch.setattr(fleet_file, "gzip_body", None)
    assert encoded.read(is_compressed=True) is short
    assert zlib.decompress(short, 31) == encoded.read(is_compressed=False)
    assert built == [1]


def test_names_are_kept_for_a_generation():
    fleet, reader = ChangingFleet(Random(3)), SnapshotReader()
    first = FleetFile(read(fleet.state, reader))
    fleet.make_quiet_change()
    second = FleetFile(read(fleet.state, reader), first)
    assert second.names is first.names
    assert second.columns is not first.columns
    fleet._create()
    fleet._put_host(7_777, fleet._next_id, version=1)
    third = FleetFile(read(fleet.state, reader), second)
    assert third.generation != second.generation
    assert third.names is not second.names
