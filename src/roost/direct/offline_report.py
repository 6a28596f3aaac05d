"""A report client on a database that nobody serves, for commands that run while all services are stopped."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from roost.app import exists
from roost.compute.report.report_client import ReportClient
from roost.direct.context import PlacementDirect
from roost.direct.direct_report import DirectHttp
from roost.errors import StoreBroken
from roost.machine import SystemClock


@contextmanager
def open_report(url: str) -> Iterator[ReportClient]:
    """Give a report client on a database for the length of a ``with`` block; it is not created.

    Args:
        url: of PostgreSQL, or the path of a SQLite file.

    Raises:
        StoreBusy: a server still runs on this SQLite file.
        StoreBroken: there is no database.
        Unavailable: it cannot be used; the message says why.
    """
    if not exists(url):
        raise StoreBroken(f"there is no database {url}")
    with PlacementDirect(url) as client:
        yield ReportClient(DirectHttp(client), clock=SystemClock(), sleep=time.sleep, uniform=Random().uniform)
