import pytest

from roost.app.up import open_product
from roost.model.fleet import Fleet
from roost.model.host import Aggregate
from roost.model.settings.roost_settings import Settings
from roost.scheduler.rule_support.scopes import aggregates_by_zone, has_zone
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import hosts, merge_fleets

ZONES = {"one": "east, west", "two": "northeast", "three": None}


@pytest.fixture
def state():
    """Yield columns with aggregates of several zones."""
    product, serving = open_product("sqlite://", Settings())
    aggregates = [
        Aggregate(uuid=uuid_named(name), name=name, metadata={"availability_zone": zone} if zone else {"a": "east"})
        for name, zone in ZONES.items()
    ]
    serving.run(lambda _: product.install(merge_fleets(Fleet(aggregates=aggregates), hosts(1))))
    yield serving.state
    serving.stop()


@pytest.mark.parametrize("zone", ["east", "west", "northeast", "north", "st", "east, west", "", "nova"])
def test_zone_exists_if_an_aggregate_has_exactly_its_name(state, zone):
    assert has_zone(state, zone) == (zone in aggregates_by_zone(state))


def test_known_zones(state):
    assert [zone for zone in ("east", "north", "northeast") if has_zone(state, zone)] == ["east", "northeast"]
