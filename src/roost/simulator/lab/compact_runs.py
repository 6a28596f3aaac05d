"""Compactions under several policies in several processes, and the files of their results."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from roost import __version__
from roost.errors import BadRequest
from roost.model.fleet import Departure
from roost.model.request import Request
from roost.simulator.lab.compact_hosts import Amounts, build_hosts, find_peak, lower_bound
from roost.simulator.lab.compact_policies import POLICIES
from roost.simulator.lab.compact_search import Search
from roost.simulator.lab.compact_trial import Trial, run_trial
from roost.simulator.replay import Progress
from roost.simulator.runs import Source, load_workload, read_stored, write_atomically
from roost.simulator.workers import run_all
from roost.simulator.workload import Workload

# Incremented when the arithmetic or a result changes its meaning.
_RESULT_VERSION = 1
# Numbers of hosts up to this multiple of the lower bound are tried, and some more.
_LIMIT_TIMES, _LIMIT_MORE = 2, 64
_TRIALS_USUAL = 12  # for the progress


class CompactRun(msgspec.Struct, frozen=True, kw_only=True):
    """One policy on a trace."""

    source: Source
    pattern: tuple[str, ...]  # kinds of hosts, repeated; empty: the trace's own hosts
    policy: str
    allow: tuple[float, ...]  # shares of requests that may be refused
    results: str  # folder of results

    def __str__(self) -> str:
        return self.policy

    def fingerprint(self) -> str:
        """Return a digest of all inputs: runs with equal digests have equal results."""
        files = sorted((Path(path).name, digest) for path, digest in self.source.files.items())
        inputs = (
            __version__,
            _RESULT_VERSION,
            files,
            self.source.recipe,
            self.source.options,
            self.pattern,
            self.policy,
            self.allow,
        )
        return hashlib.blake2b(msgspec.json.encode(inputs), digest_size=16).hexdigest()

    @property
    def result_path(self) -> Path:
        """The file of the result; missing until the run ends."""
        return Path(self.results) / f"{self.fingerprint()}.json"


class LeastHosts(msgspec.Struct, frozen=True, kw_only=True):
    """The least number of hosts for one bound on refused requests."""

    allow: float  # share of requests that may be refused
    host_count: int | None  # None: more than the limit
    refused: int = 0
    empty_hosts: int = 0  # at the end


class CompactResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a policy."""

    policy: str
    trials: int
    limit: int  # the largest number of hosts to try
    least: list[LeastHosts]  # in the order of the bounds


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all policies on a trace."""

    workload: str
    notes: tuple[str, ...]
    hosts: tuple[str, ...]  # pattern of kinds; empty: the trace's own hosts
    requests: int
    peak: Amounts
    bound: int  # fewer hosts cannot serve all requests
    policies: list[CompactResult]


class _Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a result file."""

    kind: Literal["roost lab compact result"] = "roost lab compact result"
    fingerprint: str
    result: CompactResult


def compact(
    source: Source,
    *,
    pattern: tuple[str, ...],
    policies: Sequence[str],
    allow: tuple[float, ...],
    jobs: int,
    results: Path,
    progress: Progress | None = None,
) -> Compaction:
    """Find the least number of hosts for each policy; finished policies are not repeated.

    Args:
        source: the trace.
        pattern: kinds of hosts; empty: the trace's own hosts.
        policies: names of ``POLICIES``.
        allow: shares of requests that may be refused, 0 <= share < 1.
        jobs: parallel processes.
        results: folder of results.
        progress: called now and then.

    Raises:
        BadFile: a file cannot be read or written, or is invalid.
        BadRequest: the hosts do not suit the trace, or a policy is unknown or repeated.
    """
    unknown = [policy for policy in policies if policy not in POLICIES]
    if unknown or not policies or len(set(policies)) < len(policies):
        raise BadRequest(f"policies must be different ones of {', '.join(POLICIES)}, got {', '.join(policies)}")
    workload = load_workload(source, _seed(source))
    acts = _acts(workload)
    peak = find_peak(acts)
    runs = [
        CompactRun(source=source, pattern=pattern, policy=policy, allow=allow, results=str(results))
        for policy in policies
    ]
    missing = [run for run in runs if read_result(run) is None]
    if missing:
        run_all(missing, execute, jobs=jobs, progress=progress)
    found = [read_result(run) for run in runs]
    return Compaction(
        workload=workload.name,
        notes=workload.notes,
        hosts=pattern,
        requests=sum(isinstance(act, Request) for act in acts),
        peak=peak,
        bound=lower_bound(peak, workload.fleet, pattern),
        policies=[result for result in found if result is not None],
    )


def execute(run: CompactRun, progress: Progress | None = None) -> None:
    """Execute a run, and write its result.

    Raises:
        BadFile: an input has changed since the run was planned, or the result cannot be written.
    """
    workload = load_workload(run.source, _seed(run.source))
    acts = _acts(workload)
    requests = sum(isinstance(act, Request) for act in acts)
    bound = lower_bound(find_peak(acts), workload.fleet, run.pattern)
    limit = _LIMIT_TIMES * bound + _LIMIT_MORE if run.pattern else len(workload.fleet.hosts)
    refused_max = [int(share * requests) for share in run.allow]

    def try_hosts(count: int) -> Trial:
        done = len(search.trials) * len(acts)
        total = max(_TRIALS_USUAL, len(search.trials) + 1) * len(acts)
        return run_trial(
            build_hosts(workload.fleet, run.pattern, count),
            acts,
            run.policy,
            refused_max=max(refused_max),
            has_filters=not run.pattern,
            progress=None if progress is None else lambda at, _: progress(done + at, total),
        )

    search = Search(try_hosts, bound=bound, limit=limit)
    least = [
        LeastHosts(allow=share, host_count=None)
        if trial is None
        else LeastHosts(allow=share, host_count=trial.host_count, refused=trial.refused, empty_hosts=trial.empty_hosts)
        for share, trial in zip(run.allow, search.find_all(refused_max), strict=True)
    ]
    result = CompactResult(policy=run.policy, trials=len(search.trials), limit=limit, least=least)
    write_atomically(run.result_path, msgspec.json.encode(_Stored(fingerprint=run.fingerprint(), result=result)))


def read_result(run: CompactRun) -> CompactResult | None:
    """Return the result of a run; None: not finished.

    Raises:
        BadFile: the file cannot be read, or has other content.
    """
    stored = read_stored(run.result_path, _Stored, fingerprint=run.fingerprint(), name=str(run))
    return None if stored is None else stored.result


def _seed(source: Source) -> int | None:
    return None if source.recipe is None else source.recipe.seed


def _acts(workload: Workload) -> list[Request | Departure]:
    """Return the acts of a trace, without projects: no rule of a trial reads them, and each would be a shape."""
    return [
        msgspec.structs.replace(event.act, project_id="") if isinstance(event.act, Request) else event.act
        for event in workload.events
    ]
