"""One cloud after the other, and the comparison with the reference."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tests.bed import tables
from tests.bed.cloud import Report, cloud
from tests.bed.combinations import Combination
from tests.bed.compare import Difference, find_differences
from tests.bed.records import Record
from tests.bed.rounds import BOOTS, ROOM
from tests.bed.scenario import run_scenario
from tests.bed.sharing import run_sharing
from tests.bed.sharing_report import SharingReport


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All results of a run."""

    records: tuple[Record, ...] = ()  # the first one is the reference
    differences: dict[str, list[Difference]] = {}  # from the reference, by cloud
    sharing: SharingReport | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a run."""

    combinations: tuple[Combination, ...]  # the first one is the reference
    rounds: int = 0
    has_sharing: bool = False


def run(plan: Plan, *, report: Report = print) -> Results:
    """Run all clouds; their folders stay only after an error."""
    # Under /tmp, because the path of MariaDB's socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="roost-bed-", dir="/tmp"))
    report(f"logs: {folder}/CLOUD/log")
    records = []
    for combination in plan.combinations:
        report(f"{combination.name}: {combination.title}")
        with cloud(folder / combination.name, combination, report=report) as running:
            records.append(run_scenario(running, report=report, rounds=plan.rounds))
    sharing = run_sharing(folder / "sharing", report=report) if plan.has_sharing else None
    differences = {record.combination.name: find_differences(records[0], record) for record in records[1:]}
    results = Results(records=tuple(records), differences=differences, sharing=sharing)
    if problems_of(results):
        report(f"logs stay in {folder}")
    else:
        shutil.rmtree(folder)
    return results


def problems_of(results: Results) -> list[str]:
    """Return everything that fails the run, one sentence each."""
    problems = [
        f"{name}: {tables.describe_difference(each)}"
        for name, found in results.differences.items()
        for each in found
        if each.kind == "other"
    ]
    problems += [
        f"{record.combination.name}: {granted} of {BOOTS} boots were granted, and there is room for {ROOM}"
        for record in results.records
        if record.combination.placement == "roost"
        for granted in record.rounds
        if granted != ROOM
    ]
    return problems + ([] if results.sharing is None else [f"sharing: {each}" for each in results.sharing.problems])


def show(results: Results) -> str:
    """Return all tables of a run."""
    records = results.records
    parts = []
    if records:
        parts += [tables.durations(records), tables.cpu_seconds(records)]
    if any(record.rounds for record in records):
        parts.append(tables.rounds(records))
    if results.differences:
        count = sum(map(len, records[0].outcomes.values()))
        parts.append(tables.verdicts(results.differences, count))
        if any(each.kind == "host" for found in results.differences.values() for each in found):
            parts.append(tables.reasons(results.differences))
        parts += _list_meant(results.differences)
    if results.sharing is not None:
        parts.append(results.sharing.table())
    problems = problems_of(results)
    return "\n\n".join([*parts, *problems, f"{len(problems)} problems"])


def _list_meant(differences: Mapping[str, Sequence[Difference]]) -> list[str]:
    return [
        f"meant, in {name}: {tables.describe_difference(each)}"
        for name, found in differences.items()
        for each in found
        if each.kind == "meant"
    ]
