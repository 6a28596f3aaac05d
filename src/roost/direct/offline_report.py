"""A report client on a database without a server, for commands that run while all services are stopped."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from roost.compute.report.report_client import ReportClient
from roost.direct.context import PlacementDirect
from roost.direct.direct_report import DirectHttp
from roost.machine import SystemClock
from roost.store.backends import require


@contextmanager
def open_report(url: str) -> Iterator[ReportClient]:
    """Open a report client on an existing database for a ``with`` block.

    Args:
        url: URL of PostgreSQL or MariaDB, or the path of a SQLite file.

    Raises:
        StoreBusy: a server still runs on this SQLite file.
        StoreMissing: the database does not exist.
        Unavailable: the database cannot be used; the message gives the reason.
    """
    require(url)
    with PlacementDirect(url) as client:
        yield ReportClient(DirectHttp(client), clock=SystemClock(), sleep=time.sleep, uniform=Random().uniform)
