"""Formats of traces; files are recognised by their headers, in any order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roost.errors import BadFile, BadRequest
from roost.simulator.traces import cospot, huawei, openb
from roost.simulator.traces.table import Table, read_table
from roost.simulator.workload import Options, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of trace: its files with their required columns, and its reader."""

    name: str
    files: dict[str, tuple[str, ...]]  # role -> columns
    read: Callable[[dict[str, Table], Options], Workload]
    takes_hosts: bool = False


FORMATS = (
    Format(name="openb", files={"nodes": openb.NODES, "pods": openb.PODS}, read=openb.read),
    Format(name="cospot", files={"vms": cospot.VMS}, read=cospot.read, takes_hosts=True),
    Format(
        name="huawei",
        files={"hosts": huawei.HOSTS, "racks": huawei.RACKS, "vms": huawei.VMS},
        read=huawei.read,
    ),
)
# A file gets a role if its header has more than this share of the role's columns. So the error for a missing column
# names the column instead of an unknown format.
_HEADER_SHARE_MIN = 0.5


def open_workload(paths: Sequence[Path], options: Options) -> Workload:
    """Read a trace of any format.

    Raises:
        BadFile: a file cannot be read, has no known format, or has invalid content.
        BadRequest: files are missing or too many, or the options do not suit the trace.
    """
    if not paths:
        raise BadRequest(f"name the files of a trace: {list_formats()}; or generate a trace with --generate")
    tables: dict[str, Table] = {}
    chosen: Format | None = None
    for path in paths:
        table = read_table(path)
        trace, role = _recognise(table)
        if chosen is not None and trace is not chosen:
            raise BadRequest(f"{path} is a file of {trace.name}, the files before it are of {chosen.name}")
        if role in tables:
            raise BadRequest(f"{path} and {tables[role].path} are both {role} of {trace.name}")
        table.require_columns(trace.files[role])
        chosen, tables[role] = trace, table
    assert chosen is not None
    missing = [role for role in chosen.files if role not in tables]
    if missing:
        needs = "; ".join(f"{role} ({', '.join(chosen.files[role])})" for role in missing)
        raise BadRequest(f"a trace of {chosen.name} also needs a file of {needs}")
    if options.hosts and not chosen.takes_hosts:
        raise BadRequest(f"a trace of {chosen.name} has its own hosts: leave --hosts out")
    return chosen.read(tables, options)


def list_formats() -> str:
    """Return the formats with their files, in one line.

    >>> list_formats()
    'openb (nodes, pods), cospot (vms), huawei (hosts, racks, vms)'
    """
    return ", ".join(f"{trace.name} ({', '.join(trace.files)})" for trace in FORMATS)


def _recognise(table: Table) -> tuple[Format, str]:
    header = set(table.header)
    share, trace, role = max(
        (
            (len(header.intersection(columns)) / len(columns), trace, role)
            for trace in FORMATS
            for role, columns in trace.files.items()
        ),
        key=lambda entry: entry[0],
    )
    if share <= _HEADER_SHARE_MIN:
        raise BadFile(table.path, f"has an unknown format; known formats: {list_formats()}", line=1)
    return trace, role
