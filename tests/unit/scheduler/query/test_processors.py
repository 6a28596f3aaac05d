"""Which processors are asked for; the values are what Nova asks for the same flavors and images."""

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


def asked(extra_specs, image=None, *, has_fallback=True):
    """Give what is asked of Placement for four processors."""
    flavor = Flavor(name="f", vcpus=4, memory_mb=512, extra_specs=extra_specs)
    request = Request(flavor=flavor, image=Image(properties=image or {}))
    return build_query(request, STATE, settings=SchedulerSettings(), has_fallback=has_fallback)


def processors(*args):
    """Give the processors alone: (VCPU, PCPU)."""
    resources = asked(*args).query.groups[0].resources
    return resources.get("VCPU", 0), resources.get("PCPU", 0)


@pytest.mark.parametrize(
    ("extra_specs", "image", "found"),
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
def test_the_policy_says_which_processors_are_asked(extra_specs, image, found):
    assert processors(extra_specs, image) == found


@pytest.mark.parametrize(
    ("extra_specs", "image", "problem"),
    [
        ({"hw:cpu_policy": "bogus"}, {}, "'bogus' is not a valid value of extra spec hw:cpu_policy"),
        ({"hw:cpu_policy": "shared"}, {"hw_cpu_policy": "dedicated"}, "contradicts"),
        (MIXED, {"hw_cpu_policy": "dedicated"}, "contradicts"),
        (DEDICATED | {"hw:emulator_threads_policy": "bogus"}, {}, "emulator_threads_policy"),
        (MIXED | {"hw:cpu_dedicated_mask": "9"}, {}, "an instance of 4 processors"),
        (MIXED | {"hw:cpu_dedicated_mask": "0-3"}, {}, "the mask 0-3"),
        (MIXED | {"hw:cpu_realtime": "yes"}, {}, "no mask"),
        (MIXED | {"hw:cpu_dedicated_mask": "x"}, {}, "'x' is neither a processor"),
        (MIXED | {"hw:cpu_dedicated_mask": "3-1"}, {}, "'3-1' is not a range"),
        (MIXED | {"hw:cpu_dedicated_mask": "0-1-2"}, {}, "'0-1-2' is neither a processor"),
        ({"hw:cpu_thread_policy": "isolate"}, {"hw_cpu_thread_policy": "prefer"}, "contradicts"),
    ],
)
def test_what_cannot_be_meant_is_refused(extra_specs, image, problem):
    with pytest.raises(BadRequest, match=problem):
        asked(extra_specs, image)


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
def test_the_thread_policy_is_a_trait(extra_specs, image, required, forbidden):
    group, threads = asked(extra_specs, image).query.groups[0], "HW_CPU_HYPERTHREADING"
    assert (frozenset({threads}) in group.required, threads in group.forbidden) == (required, forbidden)


def test_shared_processors_would_do_where_all_are_to_be_dedicated():
    found = asked(DEDICATED | {"hw:cpu_thread_policy": "isolate", "hw:emulator_threads_policy": "isolate"}).fallback
    assert found.groups[0].resources == {"VCPU": 4, "MEMORY_MB": 512}
    assert found.groups[0].forbidden == frozenset()
    assert asked(DEDICATED, has_fallback=False).fallback is None
    assert asked({}).fallback is None
    assert asked(MIXED | {"hw:cpu_dedicated_mask": "1"}).fallback is None
    assert asked(DEDICATED | {"resources:PCPU": "2"}).fallback.groups[0].resources == {"PCPU": 2, "MEMORY_MB": 512}
