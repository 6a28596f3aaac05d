"""Small comparisons: two policies on a trace of a few VMs, or on a generated workload."""

import msgspec

from roost.model.settings.roost_settings import Settings
from roost.settings import read_settings
from roost.simulator.compare import Comparison, PolicyRuns
from roost.simulator.runs import Policy, Source
from roost.simulator.traces.generated_workload import Recipe
from tests.unit.simulator.reports import REPORT

SPREAD = "[filter_scheduler]\ncpu_weight_multiplier = 1.0\nram_weight_multiplier = 1.0\n"
PACK = "[filter_scheduler]\ncpu_weight_multiplier = -1.0\nram_weight_multiplier = -1.0\n"


def policies() -> list[Policy]:
    """Return the two policies."""
    return [Policy(name="spread", settings=read_settings(SPREAD)), Policy(name="pack", settings=read_settings(PACK))]


def generated_source(*, hosts: int = 5, requests: int = 40) -> Source:
    """Return a generated workload."""
    return Source(recipe=Recipe(hosts=hosts, requests=requests, mix="few"))


def broken_policy(module: str) -> Policy:
    """Return a policy whose filters come from a module."""
    section = msgspec.structs.replace(Settings().filter_scheduler, available_filters=(f"{module}.filters",))
    return Policy(name="broken", settings=msgspec.structs.replace(Settings(), filter_scheduler=section))


def policy_runs(*placed: int, name: str = "a", **changes: object) -> PolicyRuns:
    """Return a policy with one run for each count of placed requests; the other requests were refused."""
    reports = [
        msgspec.structs.replace(REPORT, placed=each, refused=REPORT.requests - each, **changes) for each in placed
    ]
    return PolicyRuns(name=name, settings="", reports=reports)


def without_durations(comparison: Comparison) -> object:
    """Return a comparison without its durations, for tests of equality."""
    plain = msgspec.to_builtins(comparison)
    plain["figures"] = [figure for figure in plain["figures"] if figure["unit"] in ("count", "share")]
    for policy in plain["policies"]:
        for report in policy["reports"]:
            for name in [name for name in report if name.startswith("decision") or name.endswith("_s")]:
                del report[name]
            del report["series"]["decision_us_p50"], report["series"]["decision_us_p99"]
    return {name: value for name, value in plain.items() if name not in ("jobs", "runs_found")}
