"""The record of the last audit and backup of a database, beside its servers."""

import time
from contextlib import suppress
from typing import Literal

from roost.errors import Unavailable
from roost.store.audit import Finding, audit
from roost.store.backends import database_at


def record_upkeep(url: str, name: Literal["audit", "backup"], *, findings: int = 0, size_bytes: int = 0) -> None:
    """Record an audit or a backup, for the metrics of servers.

    Raises:
        Unavailable: the database cannot be written.
    """
    database_at(url).put_upkeep((name, time.time(), findings, size_bytes))


def audit_and_record(url: str) -> list[Finding]:
    """Audit a database and record the audit, if the database can be written.

    Raises:
        StoreBroken, StoreOutdated, Unavailable: as for ``audit``.
    """
    findings = audit(url)
    with suppress(Unavailable):  # The audit is valid without its record, as on a full disk.
        record_upkeep(url, "audit", findings=len(findings))
    return findings
