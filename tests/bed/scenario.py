"""Run the operations one after the other, and record what each of them shows."""

import time
from collections.abc import Iterable

from tests.bed.cloud import Cloud, Report
from tests.bed.cloud_api import Refusal
from tests.bed.operations import OPERATIONS
from tests.bed.records import Outcome, Record
from tests.bed.rounds import run_rounds
from tests.bed.session import Session

# The processes that take part in decisions.
DECIDERS = ("placement", "nova-scheduler", "roost", "roost-2")
_ERRORS = (Refusal, OSError, AssertionError, LookupError, TypeError, ValueError, RuntimeError)


def run_scenario(cloud: Cloud, *, report: Report = print, rounds: int = 0) -> Record:
    """Run all operations; return their observations.

    Args:
        rounds: of more boots than there is room for, after all operations.
    """
    session = Session(cloud)
    before = cloud.processes.cpu_s()
    outcomes: dict[str, dict[str, Outcome]] = {}
    durations_s: dict[str, float] = {}
    for name, operation in OPERATIONS.items():
        start_s = time.monotonic()
        try:
            outcomes[name] = operation(session)
        except _ERRORS as error:  # The next operations still show something, and the comparison shows this error.
            outcomes[name] = {"operation": Outcome(status=f"{type(error).__name__}: {session.plain(str(error))}")}
        durations_s[name] = round(time.monotonic() - start_s, 2)
        report(f"  {durations_s[name]:6.1f} s  {name}: {describe(outcomes[name].values())}")
    after = cloud.processes.cpu_s()
    granted = run_rounds(session, rounds, report=report)
    return Record(
        combination=cloud.combination,
        outcomes=outcomes,
        durations_s=durations_s,
        start_s=round(sum(cloud.description.durations_s.values()), 1),
        cpu_s={name: round(after[name] - before.get(name, 0.0), 2) for name in DECIDERS if name in after},
        rounds=granted,
    )


def describe(outcomes: Iterable[Outcome]) -> str:
    """Return observations in one line."""
    parts = []
    for outcome in outcomes:
        words = [outcome.status, outcome.host]
        shown = "holdings" if outcome.facts is None else str(outcome.facts)[:40]
        parts.append(" ".join(word for word in words if word) or shown)
    text = ", ".join(parts)
    return text if len(text) <= 160 else f"{text[:159]}…"
