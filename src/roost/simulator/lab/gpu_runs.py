"""Runs of the experiment in several processes; the results of finished runs are kept in files."""

import hashlib
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from roost import __version__
from roost.errors import BadFile, BadRequest
from roost.simulator.lab.gpu_experiment import Conditions, RunResult, run_policy
from roost.simulator.lab.gpu_pods import Workload, read_durations, read_nodes, read_pods
from roost.simulator.lab.gpu_policies import POLICIES
from roost.simulator.replay import Progress
from roost.simulator.runs import digest_file, read_stored, write_atomically
from roost.simulator.workers import run_all

RANDOM = "random"  # the only policy with several placements of one order of arrivals
# Incremented when the arithmetic or a result changes its meaning.
_RESULT_VERSION = 3


class GpuRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run: a policy on one order of arrivals."""

    nodes: str  # path of the list of nodes
    pods: str
    digests: tuple[str, str]  # of both files
    policy: str
    seed: int
    placement: int = 0  # number of the random placement
    later: tuple[str, str] | None = None  # path and digest of the list of pods from half of the load on
    has_departures: bool = False
    has_restart: bool = False
    results: str  # folder of results

    def __str__(self) -> str:
        return f"{self.policy} on {self.workload}, seed {self.seed}"

    @property
    def workload(self) -> str:
        """The name of the workload."""
        return workload_name(Path(self.pods))

    def fingerprint(self) -> str:
        """Return a digest of all inputs: runs with equal digests have equal results."""
        inputs: tuple[object, ...] = (
            __version__,
            _RESULT_VERSION,
            self.digests,
            self.policy,
            self.seed,
            self.placement,
        )
        if not self.is_published:
            inputs += (None if self.later is None else self.later[1], self.has_departures, self.has_restart)
        return hashlib.blake2b(msgspec.json.encode(inputs), digest_size=16).hexdigest()

    @property
    def is_published(self) -> bool:
        """Whether this is the published experiment."""
        return self.later is None and not self.has_departures and not self.has_restart

    @property
    def result_path(self) -> Path:
        """The file of the result; missing until the run ends."""
        return Path(self.results) / f"{self.fingerprint()}.json"


class _Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a result file."""

    kind: Literal["roost lab fgd result"] = "roost lab fgd result"
    fingerprint: str
    workload: str
    policy: str
    seed: int
    placement: int
    result: RunResult


def workload_name(pods: Path) -> str:
    """Return the name of a workload: the file's name after "_list_", if it has that part.

    >>> workload_name(Path("openb_pod_list_cpu050.csv")), workload_name(Path("mine.csv"))
    ('cpu050', 'mine')
    """
    return pods.stem.rpartition("_list_")[2]


def plan_runs(
    nodes: Path,
    pods: Sequence[Path],
    *,
    policies: Sequence[str],
    seeds: Sequence[int],
    placements: int,
    results: Path,
    later: Path | None = None,
    has_departures: bool = False,
    has_restart: bool = False,
) -> list[GpuRun]:
    """Return the runs of every workload, policy and seed; read every file once, to find errors before hours of work.

    Args:
        placements: runs of the random policy for each seed, >= 1.
        later: list of the pods from half of the load on; None: the same.
        has_departures: whether pods leave after their durations.
        has_restart: whether the engine is closed half way, and opened again.

    Raises:
        BadFile: a file is not a list of nodes or pods.
        BadRequest: two workloads would have the same name, or a policy is unknown or repeated.
    """
    unknown = [policy for policy in policies if policy not in POLICIES]
    if unknown or not policies or len(set(policies)) < len(policies):
        raise BadRequest(f"policies must be different ones of {', '.join(POLICIES)}, got {', '.join(policies)}")
    names = [workload_name(path) for path in pods]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise BadRequest(f"two workloads would both be called {repeated[0]}: rename one of the files")
    for path in pods if later is None else (*pods, later):
        _read_workload(nodes, path, has_departures=has_departures)
    nodes_digest = digest_file(str(nodes))
    return [
        GpuRun(
            nodes=str(nodes),
            pods=str(path),
            digests=(nodes_digest, digest_file(str(path))),
            policy=policy,
            seed=seed,
            placement=placement,
            later=None if later is None else (str(later), digest_file(str(later))),
            has_departures=has_departures,
            has_restart=has_restart,
            results=str(results),
        )
        for path, policy, seed in itertools.product(pods, policies, seeds)
        for placement in range(placements if policy == RANDOM else 1)
    ]


def run_missing(runs: Sequence[GpuRun], *, jobs: int, progress: Progress | None = None) -> tuple[list[RunResult], int]:
    """Execute the runs without a result; return the results of all runs, and how many were finished before.

    Raises:
        BadFile: a file of results cannot be read or written, or an input has changed.
        RoostError: a run failed; finished runs keep their results.
    """
    found = [read_result(run) for run in runs]
    missing = [run for run, result in zip(runs, found, strict=True) if result is None]
    if missing:
        run_all(missing, execute, jobs=jobs, progress=progress)
    results: list[RunResult] = []
    for run, earlier in zip(runs, found, strict=True):
        result = earlier or read_result(run)
        assert result is not None, "a run without a result"
        results.append(result)
    return results, len(runs) - len(missing)


def execute(run: GpuRun, progress: Progress | None = None) -> None:
    """Execute a run, and write its result.

    Raises:
        BadFile: an input has changed since the runs were planned, or the result cannot be written.
    """
    inputs = [*zip((run.nodes, run.pods), run.digests, strict=True), *([] if run.later is None else [run.later])]
    for path, digest in inputs:
        if digest_file(path) != digest:
            raise BadFile(path, "has changed since the runs began")
    workload, *others = (
        _read_workload(Path(run.nodes), Path(path), has_departures=run.has_departures) for path, _ in inputs[1:]
    )
    conditions = Conditions(
        later=others[0] if others else None, has_departures=run.has_departures, has_restart=run.has_restart
    )
    result = run_policy(
        workload, run.policy, run.seed, placement=run.placement, conditions=conditions, progress=progress
    )
    stored = _Stored(
        fingerprint=run.fingerprint(),
        workload=run.workload,
        policy=run.policy,
        seed=run.seed,
        placement=run.placement,
        result=result,
    )
    write_atomically(run.result_path, msgspec.json.encode(stored))


def _read_workload(nodes: Path, pods: Path, *, has_departures: bool) -> Workload:
    return Workload(
        name=workload_name(pods),
        nodes=read_nodes(nodes),
        pods=read_pods(pods),
        durations_s=read_durations(pods) if has_departures else [],
    )


def read_result(run: GpuRun) -> RunResult | None:
    """Return the result of a run; None: not finished.

    Raises:
        BadFile: the file cannot be read, or has other content.
    """
    stored = read_stored(run.result_path, _Stored, fingerprint=run.fingerprint(), name=str(run))
    return None if stored is None else stored.result
