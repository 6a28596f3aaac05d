"""Twice as many boots at once as there is room for: how many are granted."""

from tests.bed.cloud import Report
from tests.bed.operations.crowds import boot_at_once, delete
from tests.bed.session import Session, statuses

HOST = "cmp3"
ROOM = 40  # its virtual CPUs, with the allocation ratio
BOOTS = 80


def run_rounds(session: Session, count: int, *, report: Report = print) -> tuple[int, ...]:
    """Run rounds on an empty host; return the number of granted boots of each."""
    granted = []
    for number in range(count):
        names = [f"round-{number}-{each}" for each in range(BOOTS)]
        seen = statuses(boot_at_once(session, names, host=HOST))
        left = delete(session, *names)
        granted.append(seen.get("ACTIVE", 0))
        report(f"          round {number + 1}: {BOOTS} boots for {ROOM} at once: {seen}, left: {left or 'none'}")
    return tuple(granted)
