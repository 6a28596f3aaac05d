"""Limits of a request, flavor or image."""

import msgspec
import pytest

from roost.fleet.stored_documents import plan_document
from roost.model.documents.request_document import ENTRIES_MAX, PROPERTY_MAX
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.settings.roost_settings import Scheduler, Settings
from roost.placement.write_plan import Plan
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import roost_api

# A thousand extra specs take longer than the search budget on a busy machine.
PATIENT = Settings(scheduler=Scheduler(search_budget_s=60.0))
TOO_MANY = {f"trait:CUSTOM_{number}": "required" for number in range(ENTRIES_MAX + 1)}
BAD_SPECS = [TOO_MANY, {"k" * 256: "1"}, {"": "1"}, {"key": "v" * 256}]
BAD_PROPERTIES = [TOO_MANY, {"k" * 256: "1"}, {"": "1"}, {"key": "v" * (PROPERTY_MAX + 1)}]


@pytest.fixture
def own():
    """The /v1 API over three hosts, with a large search budget."""
    with roost_api(fleet(3, vcpus=4), settings=PATIENT) as client:
        yield client


@pytest.mark.parametrize("extra_specs", BAD_SPECS, ids=["many", "long key", "empty key", "long value"])
def test_extra_specs_beyond_the_limits_are_refused(own, extra_specs):
    body = {"flavor": {"name": "f", "vcpus": 1, "extra_specs": extra_specs}}
    answers = [
        own.put("/flavors/f", body["flavor"]),
        own.post("/decisions", body),
        own.post("/capacity", {"request": body}),
    ]
    assert [(each.status, "$" in each.json["detail"]) for each in answers] == [(400, True)] * 3


@pytest.mark.parametrize("properties", BAD_PROPERTIES, ids=["many", "long key", "empty key", "long value"])
def test_image_properties_beyond_the_limits_are_refused(own, properties):
    body = {"flavor": {"name": "f", "vcpus": 1}, "image": {"properties": properties}}
    answers = [own.put("/images/i", body["image"]), own.post("/decisions", body)]
    assert [each.status for each in answers] == [400, 400]


def test_maximum_number_of_extra_specs_is_accepted(own):
    specs = {f"trait:CUSTOM_{number}": "forbidden" for number in range(ENTRIES_MAX)}
    assert own.put("/flavors/f", {"vcpus": 1, "extra_specs": specs}).status == 200
    assert own.post("/decisions", {"flavor": "f"}).status == 201


def test_flavors_and_images_stored_before_the_limits_still_work(own):
    specs = {f"scope:{number}": "1" for number in range(ENTRIES_MAX + 1)}
    bodies = {"flavor": Flavor(name="old", vcpus=1, extra_specs=specs), "image": Image(properties=specs)}
    for noun, value in bodies.items():

        def store(current, noun=noun, value=value):
            return Plan(answer=None, writes=plan_document(current.state, noun, "old", body=msgspec.json.encode(value)))

        own.serving.run(store)
    assert own.post("/decisions", {"flavor": "old", "image": "old"}).status == 201
    assert own.get("/images/old").json["properties"] == specs
