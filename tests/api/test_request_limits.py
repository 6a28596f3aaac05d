"""Bounds of what one request, flavor or image may say."""

import msgspec
import pytest

from roost.fleet.stored_documents import storing
from roost.model.documents.request_document import ENTRIES_MAX, PROPERTY_MAX
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.settings.roost_settings import Scheduler, Settings
from roost.placement.write_plan import Plan
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import asking_own

# To judge a thousand extra specs takes longer than a search may, where the machine has much else to do.
PATIENT = Settings(scheduler=Scheduler(search_budget_s=60.0))
TOO_MANY = {f"trait:CUSTOM_{number}": "required" for number in range(ENTRIES_MAX + 1)}
BAD_SPECS = [TOO_MANY, {"k" * 256: "1"}, {"": "1"}, {"key": "v" * 256}]
BAD_PROPERTIES = [TOO_MANY, {"k" * 256: "1"}, {"": "1"}, {"key": "v" * (PROPERTY_MAX + 1)}]


@pytest.fixture
def own():
    """Roost's own API over three hosts, with time for searches."""
    with asking_own(fleet(3, vcpus=4), settings=PATIENT) as found:
        yield found


@pytest.mark.parametrize("extra_specs", BAD_SPECS, ids=["many", "long key", "empty key", "long value"])
def test_extra_specs_beyond_the_bounds_are_refused(own, extra_specs):
    asked = {"flavor": {"name": "f", "vcpus": 1, "extra_specs": extra_specs}}
    answers = [
        own.put("/flavors/f", asked["flavor"]),
        own.post("/decisions", asked),
        own.post("/capacity", {"request": asked}),
    ]
    assert [(each.status, "$" in each.json["detail"]) for each in answers] == [(400, True)] * 3


@pytest.mark.parametrize("properties", BAD_PROPERTIES, ids=["many", "long key", "empty key", "long value"])
def test_image_properties_beyond_the_bounds_are_refused(own, properties):
    asked = {"flavor": {"name": "f", "vcpus": 1}, "image": {"properties": properties}}
    answers = [own.put("/images/i", asked["image"]), own.post("/decisions", asked)]
    assert [each.status for each in answers] == [400, 400]


def test_as_many_extra_specs_as_the_bound_allows_are_taken(own):
    specs = {f"trait:CUSTOM_{number}": "forbidden" for number in range(ENTRIES_MAX)}
    assert own.put("/flavors/f", {"vcpus": 1, "extra_specs": specs}).status == 200
    assert own.post("/decisions", {"flavor": "f"}).status == 201


def test_a_flavor_and_an_image_stored_before_the_bounds_are_used_as_they_are(own):
    specs = {f"scope:{number}": "1" for number in range(ENTRIES_MAX + 1)}
    bodies = {"flavor": Flavor(name="old", vcpus=1, extra_specs=specs), "image": Image(properties=specs)}
    for noun, value in bodies.items():

        def store(current, noun=noun, value=value):
            return Plan(answer=None, writes=storing(current.state, noun, "old", body=msgspec.json.encode(value)))

        own.serving.run(store)
    assert own.post("/decisions", {"flavor": "old", "image": "old"}).status == 201
    assert own.get("/images/old").json["properties"] == specs
