"""One run of a comparison: a policy, a seed, and the file of its result."""

import gc
import hashlib
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import msgspec

from roost import __version__
from roost.errors import BadFile, BadRequest, unreadable_file
from roost.model.fleet import Fleet
from roost.model.settings.roost_settings import Settings
from roost.scheduler.pipeline.budget import lift_search_limit
from roost.simulator.replay import Progress, replay
from roost.simulator.report import REPORT_VERSION, ReplayReport, translate_write_errors
from roost.simulator.seeded_random import SeededRandom
from roost.simulator.traces.formats import list_formats, open_workload
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options, Workload


class _HasFingerprint(Protocol):
    @property
    def fingerprint(self) -> str: ...


Stored = TypeVar("Stored", bound=_HasFingerprint)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The source of a workload: a recipe, or the files of a trace."""

    recipe: Recipe | None = None
    files: dict[str, str] = {}  # path -> digest of the content
    options: Options = Options()
    chunk: int = 64  # as in ``replay``


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Settings with a name."""

    name: str
    settings: Settings


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One replay of a comparison."""

    source: Source
    policy: Policy
    seed: int | None  # None: an unchanged trace
    results: str  # folder of results
    data: str | None = None  # folder of databases; None: in memory

    def __str__(self) -> str:
        return self.policy.name if self.seed is None else f"{self.policy.name}, seed {self.seed}"

    def fingerprint(self) -> str:
        """Return a digest of all inputs; runs with equal digests differ only in their durations."""
        source, settings = self.source, self.policy.settings
        recipe = None if source.recipe is None else msgspec.structs.replace(source.recipe, seed=self.seed)
        content = {
            "program": __version__,
            "report": REPORT_VERSION,
            "recipe": recipe,
            # Names count, because uuids are derived from them; folders and order do not.
            "files": sorted((Path(path).name, digest) for path, digest in source.files.items()),
            "options": source.options,
            "chunk": source.chunk,
            "seed": self.seed,
            "settings": msgspec.Raw(settings.body()),
            # Durations depend on the store, decisions do not.
            "store": None if self.data is None else msgspec.structs.replace(settings.store, url=""),
        }
        return hashlib.blake2b(msgspec.json.encode(content, order="sorted"), digest_size=16).hexdigest()

    @property
    def result_path(self) -> Path:
        """The file of the result; missing until the run ends."""
        return Path(self.results) / f"{self.fingerprint()}.json"


class _Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a result file."""

    kind: Literal["roost replay result"] = "roost replay result"
    fingerprint: str
    policy: str  # name of the first policy with this fingerprint
    seed: int | None
    report: ReplayReport


def trace_source(paths: Sequence[Path], *, options: Options, chunk: int) -> Source:
    """Return the source of a trace.

    Raises:
        BadFile: a file cannot be read.
        BadRequest: no file is named, or a file is named twice.
    """
    if not paths:
        raise BadRequest(f"name the files of a trace: {list_formats()}")
    files = {str(path): digest_file(str(path)) for path in paths}
    if len(files) < len(paths):
        raise BadRequest("a file of the trace is named twice")
    return Source(files=files, options=options, chunk=chunk)


def load_workload(source: Source, seed: int | None) -> Workload:
    """Return the workload of a seed.

    A recipe is generated with this seed. A trace keeps its events; the seed shuffles the order of its
    hosts, and so the choice among equal hosts.

    Raises:
        BadFile: a file of the trace is invalid, or has changed.
        BadRequest: the options do not suit the trace.
    """
    if source.recipe is not None:
        assert seed is not None, "a recipe without a seed"
        return generate(msgspec.structs.replace(source.recipe, seed=seed), source.options)
    for path, digest in source.files.items():
        if digest_file(path) != digest:
            raise BadFile(path, "has changed since the comparison began")
    workload = open_workload([Path(path) for path in source.files], source.options)
    if seed is None:
        return workload
    return msgspec.structs.replace(
        workload,
        fleet=_shuffle_hosts(workload.fleet, random.Random(f"{seed}/hosts")),
        notes=(*workload.notes, f"hosts are in an order drawn from seed {seed}"),
    )


def read_result(run: Run) -> ReplayReport | None:
    """Return the result of a run; None: not finished.

    Raises:
        BadFile: the file cannot be read, or has other content.
    """
    result = read_stored(run.result_path, _Result, fingerprint=run.fingerprint(), name=str(run))
    return None if result is None else result.report


def execute(run: Run, progress: Progress | None = None) -> None:
    """Execute a run, and write its result.

    Raises:
        BadFile: the trace is invalid, the result cannot be written, or the run's database exists already.
        RoostError: the replay failed.
    """
    # Imported here, because only workers need the whole program.
    from roost.app import open_scratch

    workload = load_workload(run.source, run.seed)
    rng = SeededRandom(1 if run.seed is None else run.seed)
    folder = None if run.data is None else _empty_folder(run)
    with open_scratch(run.policy.settings, folder, random=rng) as roost, lift_search_limit(roost.state):
        report = replay(workload, roost, chunk=run.source.chunk, progress=progress)
    if folder is not None:
        folder.replace(_data_folder(run))
    seed, name = run.seed, run.policy.name
    result = _Result(fingerprint=run.fingerprint(), policy=name, seed=seed, report=report)
    write_atomically(run.result_path, msgspec.json.encode(result))
    # Frozen objects of this run must not stay in memory during the next one in the same process.
    del roost, workload
    gc.unfreeze()


def read_stored(path: Path, kind: type[Stored], *, fingerprint: str, name: str) -> Stored | None:
    """Return the content of a result file; None: the file does not exist.

    Args:
        path: the file.
        kind: the type of its content.
        fingerprint: of the inputs that the result must have.
        name: of the run, for the error.

    Raises:
        BadFile: the file cannot be read, or has other content.
    """
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable_file(str(path), error) from None
    except (msgspec.DecodeError, UnicodeDecodeError):  # a ValidationError is a DecodeError
        stored = None
    if stored is None or stored.fingerprint != fingerprint:
        raise BadFile(str(path), f"is not the result of {name}: move it away, or name another folder")
    return stored


def write_atomically(path: Path, body: bytes) -> None:
    """Create or replace a file in one step, with its folder.

    Raises:
        BadFile: it cannot be written.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    with translate_write_errors(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(body)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def digest_file(path: str) -> str:
    """Return a digest of a file's content.

    Raises:
        BadFile: the file cannot be read.
    """
    try:
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
    except OSError as error:
        raise unreadable_file(path, error) from None


def _shuffle_hosts(fleet: Fleet, rng: random.Random) -> Fleet:
    """Return the fleet with its provider trees and hosts in random order."""
    roots: dict[str, str] = {}
    for provider in fleet.providers:  # Parents come before children.
        roots[provider.uuid] = provider.uuid if provider.parent_uuid is None else roots[provider.parent_uuid]
    places = {uuid: rng.random() for uuid in dict.fromkeys(roots.values())}
    return msgspec.structs.replace(
        fleet,
        providers=sorted(fleet.providers, key=lambda provider: places[roots[provider.uuid]]),
        hosts=sorted(fleet.hosts, key=lambda host: places[roots[host.provider_uuid]]),
    )


def _data_folder(run: Run) -> Path:
    assert run.data is not None
    return Path(run.data) / f"{run.policy.name}{'' if run.seed is None else f'-seed{run.seed}'}".replace("/", "-")


def _empty_folder(run: Run) -> Path:
    """Return an empty folder for the database of a run, without the remains of an unfinished run."""
    folder = _data_folder(run)
    if folder.exists():
        raise BadFile(str(folder), "already exists, with the database of another run: use another folder")
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    with translate_write_errors(str(unfinished)):
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
    return unfinished
