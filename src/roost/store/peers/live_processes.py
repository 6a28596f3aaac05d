"""The live processes of a database, and the oldest of their programs."""

import os
import socket
from collections.abc import Sequence

from roost import __version__
from roost.ports import LiveWriter
from roost.store.rules.schema import SCHEMA_VERSION

# Interval of the heartbeats of a process, and the age from which a process does not count as live. A process may miss
# two heartbeats, such as during a failover.
BEAT_S = 10.0
LIVE_S = 3 * BEAT_S
# A process without a decision for this long takes no part in the division of the fleet.
DECIDING_S = 600.0
# Age from which the row of a process that crashed is deleted.
KEPT_S = 3600.0


def describe_process(process: int) -> tuple[int, str, str, str]:
    """Return the first columns of the heartbeats of this process: number, version, schema and machine."""
    return process, __version__, SCHEMA_VERSION, f"{socket.gethostname()}:{os.getpid()}"


def lowest_schema(writers: Sequence[LiveWriter]) -> str:
    """Return the lowest schema of some programs; empty: of a program without heartbeats, or there are none.

    >>> live = LiveWriter(process=1, version="2.0.0", schema="0012", machine="db1:7", started_at_s=0.0, age_s=1.0)
    >>> lowest_schema([live, live._replace(process=2, schema="0011")])
    '0011'
    """
    return min((writer.schema for writer in writers), default="")
