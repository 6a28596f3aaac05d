"""The reference for filters and weighers: one version of nova, unchanged, in a separate environment."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Self

from tests.differential.scheduler.hosts import ATTRIBUTES
from tests.support.fleets.products import ROOT
from tests.support.servers.environments import create, python_with

ENVIRONMENT = ROOT / ".cache" / "reference-nova"
# Also a third-party plug-in, and Roost's dependencies, because nova's rules also run as plug-ins of Roost.
REQUIREMENTS = ("nova==34.0.0", "blazar-nova==10.0.0", "--requirement", str(ROOT / "requirements.lock"))
VARIABLE = "ROOST_REFERENCE_NOVA"
# An older release. It is the client in tests of an unfinished upgrade.
OLDER_ENVIRONMENT = ROOT / ".cache" / "older-nova"
OLDER_REQUIREMENTS = ("nova==31.0.0",)
OLDER_VARIABLE = "ROOST_OLDER_NOVA"
HOW_TO_INSTALL = f"nova is not installed: run `make reference-nova`, or let {VARIABLE} name a Python that has it"

# The filters of the reference.
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
# Filters that must know more about the earlier instances of a request than their amounts and I/O operations.
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
# Nova's errors for a flavor and image with an invalid NUMA topology.
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
    """Return the Python with the reference, or None."""
    return python_with("nova.version, msgspec, numpy", ENVIRONMENT, named=os.environ.get(VARIABLE))


def older_python() -> Path | None:
    """Return the Python with the older release of nova, or None."""
    return python_with("nova.version", OLDER_ENVIRONMENT, named=os.environ.get(OLDER_VARIABLE))


class Nova:
    """A running reference; it stops with this object or this process."""

    def __init__(self) -> None:
        program = python()
        assert program is not None, HOW_TO_INSTALL
        self._process = subprocess.Popen(
            # Isolated, so that modules in the script's folder do not shadow libraries of the same name.
            [program, "-I", Path(__file__).with_name("serve_nova.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        properties = self._read()
        # By name: whether it runs once per request, and whether it runs on rebuilds.
        self.filters: dict[str, list[bool]] = properties["filters"]
        # By name: the minimum and maximum raw weight, or None.
        self.weighers: dict[str, list[float | None]] = properties["weighers"]

    def ask(self, pair: Json, *, filters: list[str], weighers: list[str]) -> Json:
        """Return the reference's results for a whole pair.

        Args:
            filters: names of the filters to run separately; those in the pair's ``enabled`` also run together.
            weighers: names of the weighers to run separately and together.
        """
        return self._ask(pair, filters=filters, weighers=weighers)

    def time_ms(self, pair: Json, *, weighers: list[str], repeats: int) -> list[float]:
        """Run the pair's ``enabled`` filters and the weighers repeatedly; return the durations."""
        times: list[float] = self._ask(pair, filters=pair["enabled"], weighers=weighers, repeats=repeats)["times_ms"]
        return times

    def _ask(self, pair: Json, *, filters: list[str], weighers: list[str], **more: int) -> Json:
        hosts = [{**host, "attributes": ATTRIBUTES} for host in pair["hosts"]]
        enabled = [name for name in pair["enabled"] if name in filters]
        question = {
            "pair": {**pair, "hosts": hosts},
            "filters": filters,
            "weighers": weighers,
            "enabled": enabled,
            **more,
        }
        question["exact"] = [name for name in EXACT if name in filters]
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Json:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the reference ended; run tests/differential/scheduler/serve_nova.py by hand to see why"
        found: Json = json.loads(line)
        return found

    def stop(self) -> None:
        """Stop the reference."""
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
    """Create the environments with the reference and with an older release, unless they exist."""
    for found, environment, requirements in (
        (python(), ENVIRONMENT, REQUIREMENTS),
        (older_python(), OLDER_ENVIRONMENT, OLDER_REQUIREMENTS),
    ):
        if found is None:
            create(environment, requirements)
        else:
            print(f"{found} has {requirements[0]}")
