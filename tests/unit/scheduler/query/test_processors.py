"""Processors in the query. The expected values are those of Nova for the same flavors and images."""

import pytest

from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.image import Image
from roost.model.request import Request
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.scheduler.query.build import build_query
from tests.support.fleets.fleets import fleet

STATE = fleet(HostFacts())
DEDICATED, MIXED = {"hw:cpu_policy": "dedicated"}, {"hw:cpu_policy": "mixed"}


def build(extra_specs, image=None, *, has_fallback=True):
    """Return the query result of a flavor with four processors."""
    flavor = Flavor(name="f", vcpus=4, memory_mb=512, extra_specs=extra_specs)
    request = Request(flavor=flavor, image=Image(properties=image or {}))
    return build_query(request, STATE, settings=SchedulerSettings(), has_fallback=has_fallback)


def processors(*args):
    """Return the VCPU and PCPU amounts of the query."""
    resources = build(*args).query.groups[0].resources
    return resources.get("VCPU", 0), resources.get("PCPU", 0)


@pytest.mark.parametrize(
    ("extra_specs", "image", "expected"),
    [
        ({}, {}, (4, 0)),
        (DEDICATED, {}, (0, 4)),
        ({}, {"hw_cpu_policy": "dedicated"}, (0, 4)),
        (DEDICATED, {"hw_cpu_policy": "shared"}, (0, 4)),
        (DEDICATED | {"resources:PCPU": "2"}, {}, (0, 4)),
        (DEDICATED | {"resources:VCPU": "2"}, {}, (2, 4)),
        (DEDICATED | {"hw:emulator_threads_policy": "isolate"}, {}, (0, 5)),
        ({"hw:emulator_threads_policy": "isolate"}, {}, (4, 0)),
        (MIXED | {"hw:cpu_dedicated_mask": "2-3"}, {}, (2, 2)),
        (MIXED | {"hw:cpu_dedicated_mask": "2-3"}, {"hw_cpu_policy": "shared"}, (2, 2)),
        (MIXED | {"hw:cpu_dedicated_mask": "^0"}, {}, (1, 3)),
        (MIXED | {"hw:cpu_dedicated_mask": "1,2-3,^2"}, {}, (2, 2)),
        (MIXED | {"hw:cpu_dedicated_mask": "^1,0"}, {}, (1, 3)),
        (MIXED | {"hw:cpu_dedicated_mask": "1", "resources:VCPU": "7"}, {}, (3, 1)),
        (MIXED | {"hw:cpu_dedicated_mask": "2-3", "hw:emulator_threads_policy": "isolate"}, {}, (2, 3)),
        (MIXED | {"hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "^0"}, {}, (1, 3)),
        (MIXED, {}, (4, 0)),
        (MIXED | {"hw:cpu_dedicated_mask": ""}, {}, (4, 0)),
        (MIXED | {"hw:emulator_threads_policy": "isolate", "resources:PCPU": "3"}, {}, (4, 1)),
        (MIXED | {"hw:emulator_threads_policy": "isolate", "hw:cpu_realtime": "yes"}, {}, (0, 5)),
        (MIXED | {"hw:cpu_realtime": "yes"}, {"hw_cpu_realtime_mask": "^0"}, (1, 3)),
    ],
)
def test_cpu_policy_selects_shared_or_dedicated_processors(extra_specs, image, expected):
    assert processors(extra_specs, image) == expected


@pytest.mark.parametrize(
    ("extra_specs", "image", "problem"),
    [
        ({"hw:cpu_policy": "bogus"}, {}, "'bogus' is not a valid value of extra spec hw:cpu_policy"),
        ({"hw:cpu_policy": "shared"}, {"hw_cpu_policy": "dedicated"}, "contradicts"),
        (MIXED, {"hw_cpu_policy": "dedicated"}, "contradicts"),
        (DEDICATED | {"hw:emulator_threads_policy": "bogus"}, {}, "emulator_threads_policy"),
        (MIXED | {"hw:cpu_dedicated_mask": "9"}, {}, "an instance of 4 processors"),
        (MIXED | {"hw:cpu_dedicated_mask": "0-3"}, {}, "with the mask 0-3"),
        (MIXED | {"hw:cpu_realtime": "yes"}, {}, "without a mask"),
        (MIXED | {"hw:cpu_dedicated_mask": "x"}, {}, "'x' is neither a processor"),
        (MIXED | {"hw:cpu_dedicated_mask": "3-1"}, {}, "'3-1' is not a range"),
        (MIXED | {"hw:cpu_dedicated_mask": "0-1-2"}, {}, "'0-1-2' is neither a processor"),
        ({"hw:cpu_thread_policy": "isolate"}, {"hw_cpu_thread_policy": "prefer"}, "contradicts"),
    ],
)
def test_invalid_or_contradictory_cpu_settings_are_refused(extra_specs, image, problem):
    with pytest.raises(BadRequest, match=problem):
        build(extra_specs, image)


@pytest.mark.parametrize(
    ("extra_specs", "image", "required", "forbidden"),
    [
        ({"hw:cpu_thread_policy": "require"}, {}, True, False),
        ({"hw:cpu_thread_policy": "isolate"}, {}, False, True),
        ({}, {"hw_cpu_thread_policy": "isolate"}, False, True),
        ({"hw:cpu_thread_policy": "prefer"}, {}, False, False),
        ({"hw:cpu_thread_policy": "prefer"}, {"hw_cpu_thread_policy": "isolate"}, False, False),
    ],
)
def test_thread_policy_becomes_a_trait(extra_specs, image, required, forbidden):
    group, threads = build(extra_specs, image).query.groups[0], "HW_CPU_HYPERTHREADING"
    assert (frozenset({threads}) in group.required, threads in group.forbidden) == (required, forbidden)


def test_fallback_of_dedicated_processors_uses_shared_ones():
    fallback = build(DEDICATED | {"hw:cpu_thread_policy": "isolate", "hw:emulator_threads_policy": "isolate"}).fallback
    assert fallback.groups[0].resources == {"VCPU": 4, "MEMORY_MB": 512}
    assert fallback.groups[0].forbidden == frozenset()
    assert build(DEDICATED, has_fallback=False).fallback is None
    assert build({}).fallback is None
    assert build(MIXED | {"hw:cpu_dedicated_mask": "1"}).fallback is None
    assert build(DEDICATED | {"resources:PCPU": "2"}).fallback.groups[0].resources == {"PCPU": 2, "MEMORY_MB": 512}
