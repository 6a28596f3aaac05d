"""The reference for filters and weighers: nova of one version, run as it is, in an environment of its own."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Self

from tests.differential.scheduler.hosts import ATTRIBUTES
from tests.support.fleets.products import ROOT
from tests.support.servers.environments import create, python_with

ENVIRONMENT = ROOT / ".cache" / "reference-nova"
# With what Roost needs, since its rules also run as plug-ins beside Roost, and with a plug-in that others published.
REQUIREMENTS = ("nova==34.0.0", "blazar-nova==10.0.0", "--requirement", str(ROOT / "requirements.lock"))
VARIABLE = "ROOST_REFERENCE_NOVA"
HOW_TO_INSTALL = f"nova is not installed: run `make reference-nova`, or let {VARIABLE} name a Python that has it"

# What it has.
FILTERS = (
    "AggregateImagePropertiesIsolation",
    "AggregateInstanceExtraSpecsFilter",
    "AggregateIoOpsFilter",
    "AggregateMultiTenancyIsolation",
    "AggregateNumInstancesFilter",
    "AggregateTypeAffinityFilter",
    "AllHostsFilter",
    "ComputeCapabilitiesFilter",
    "ComputeFilter",
    "DifferentHostFilter",
    "ImagePropertiesFilter",
    "IoOpsFilter",
    "IsolatedHostsFilter",
    "JsonFilter",
    "MetricsFilter",
    "NUMATopologyFilter",
    "NumInstancesFilter",
    "PciPassthroughFilter",
    "SameHostFilter",
    "ServerGroupAffinityFilter",
    "ServerGroupAntiAffinityFilter",
    "SimpleCIDRAffinityFilter",
)
# Those which instances of one request change for each other, beside amounts and operations in flight.
EXACT = ("NUMATopologyFilter", "PciPassthroughFilter")
WEIGHERS = (
    "BuildFailureWeigher",
    "CPUWeigher",
    "CrossCellWeigher",
    "DiskWeigher",
    "HypervisorVersionWeigher",
    "ImagePropertiesWeigher",
    "IoOpsWeigher",
    "MetricsWeigher",
    "NumInstancesWeigher",
    "PCIWeigher",
    "RAMWeigher",
    "ServerGroupSoftAffinityWeigher",
    "ServerGroupSoftAntiAffinityWeigher",
)
# By which it refuses a flavor and an image of which it can make no memory nodes.
TOPOLOGY_ERRORS = frozenset(
    {
        "BadRequirementEmulatorThreadsPolicy",
        "CPUThreadPolicyConfigurationInvalid",
        "FlavorImageLockedMemoryConflict",
        "ImageCPUPinningForbidden",
        "ImageCPUThreadPolicyForbidden",
        "ImageNUMATopologyAsymmetric",
        "ImageNUMATopologyCPUDuplicates",
        "ImageNUMATopologyCPUOutOfRange",
        "ImageNUMATopologyCPUsUnassigned",
        "ImageNUMATopologyForbidden",
        "ImageNUMATopologyIncomplete",
        "ImageNUMATopologyMemoryOutOfRange",
        "InvalidCPUAllocationPolicy",
        "InvalidCPUThreadAllocationPolicy",
        "InvalidEmulatorThreadsPolicy",
        "InvalidMixedInstanceDedicatedMask",
        "InvalidNUMANodesNumber",
        "InvalidRequest",
        "LockMemoryForbidden",
        "MemoryPageSizeForbidden",
        "MemoryPageSizeInvalid",
        "RealtimeConfigurationInvalid",
        "RealtimeMaskNotFoundOrInvalid",
        "RequiredMixedInstancePolicy",
        "RequiredMixedOrRealtimeCPUMask",
    }
)

Json = dict[str, Any]


def python() -> Path | None:
    """Return the Python that has the reference; None where there is none."""
    return python_with("nova.version, msgspec, numpy", ENVIRONMENT, named=os.environ.get(VARIABLE))


class Nova:
    """A running reference; it ends with this object or this process."""

    def __init__(self) -> None:
        program = python()
        assert program is not None, HOW_TO_INSTALL
        self._process = subprocess.Popen(
            # Isolated, so that the modules beside the script do not stand in for libraries of the same name.
            [program, "-I", Path(__file__).with_name("serving_nova.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        has = self._read()
        # By name: whether it is asked once a request, and whether about rebuilds.
        self.filters: dict[str, list[bool]] = has["filters"]
        # By name: the least and the largest raw weight, where there are bounds.
        self.weighers: dict[str, list[float | None]] = has["weighers"]

    def ask(self, pair: Json, *, filters: list[str], weighers: list[str]) -> Json:
        """Return what the reference says of a whole pair.

        Args:
            filters: names of the filters to ask, each by itself; those of the pair's ``enabled`` among them in a row.
            weighers: names of the weighers to ask, each by itself and all together.
        """
        return self._ask(pair, filters=filters, weighers=weighers)

    def time_ms(self, pair: Json, *, weighers: list[str], repeats: int) -> list[float]:
        """Return how long the reference takes to filter by the pair's ``enabled`` and to weigh, time and again."""
        times: list[float] = self._ask(pair, filters=pair["enabled"], weighers=weighers, repeats=repeats)["times_ms"]
        return times

    def _ask(self, pair: Json, *, filters: list[str], weighers: list[str], **more: int) -> Json:
        hosts = [{**host, "attributes": ATTRIBUTES} for host in pair["hosts"]]
        enabled = [name for name in pair["enabled"] if name in filters]
        asked = {"pair": {**pair, "hosts": hosts}, "filters": filters, "weighers": weighers, "enabled": enabled, **more}
        asked["exact"] = [name for name in EXACT if name in filters]
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Json:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the reference ended; run tests/differential/scheduler/serving_nova.py by hand to see why"
        found: Json = json.loads(line)
        return found

    def stop(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def install() -> None:
    """Create the environment with the reference in it, unless it is there."""
    if python() is not None:
        print(f"{python()} has the reference")
        return
    create(ENVIRONMENT, REQUIREMENTS)
