"""Text reports on seeds: tables of totals, and each broken invariant with its last events."""

from collections.abc import Iterator, Mapping

from roost.simulator.cluster.processes import ALLOWED
from roost.simulator.cluster.seed_runs import Total
from roost.simulator.cluster.simulation import SeedResult
from roost.simulator.cluster.unreached_transitions import group_by_reason

_COLUMNS = 4
_TITLES = {
    "accepted": "accepted operations",
    "outcomes": "ended operations",
    "faults": "faults",
    "kinds": "events",
    "excuses": "deviations at rest, excused",
}


def format_total(total: Total, *, elapsed_s: float) -> Iterator[str]:
    """Yield the tables of many seeds.

    Args:
        elapsed_s: duration of all runs.
    """
    for name, title in _TITLES.items():
        yield from _table(title, getattr(total, name))
    yield from _transitions(total)
    rate = total.events / elapsed_s if elapsed_s > 0 else 0.0
    yield (
        f"{total.seeds:,} seeds, {len(total.failures):,} broke an invariant; {total.events:,} events in "
        f"{total.virtual_s / 3600:,.1f} virtual hours; {elapsed_s:,.1f} s, {rate:,.0f} events/s"
    )


def format_failure(result: SeedResult, *, kinds: str = "") -> Iterator[str]:
    """Yield the report on a broken invariant, with the command that reproduces it.

    Args:
        kinds: of requested operations, separated by commas; empty: all.
    """
    yield f"seed {result.seed}: after {result.virtual_s:.3f} virtual s, at event {result.events:,}: {result.invariant}"
    yield f"  {result.problem}"
    yield "  the last events (virtual s, number, event):"
    yield from (f"    {line}" for line in result.last)
    yield f"  again: make sim SEED={result.seed}" + (f" KINDS={kinds}" if kinds else "")


def _transitions(total: Total) -> Iterator[str]:
    """Yield the number of transitions taken, and the names of the others: kind, step, event, next step."""
    groups = group_by_reason(each for each in ALLOWED if " ".join(each) not in total.transitions)
    missing = groups.pop("", [])
    excused = sum(map(len, groups.values()))
    yield f"transitions taken: {len(total.transitions):,} of {len(ALLOWED) - excused:,}, and {excused:,} out of reach"
    for reason, names in groups.items():
        yield f"  out of reach, because {reason}: {', '.join(names)}"
    yield from (f"  not taken: {name}" for name in missing)


def _table(title: str, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield counts in columns, highest first."""
    cells = [f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))]
    width = max(map(len, cells), default=0) + 2
    yield f"{title}:"
    for at in range(0, len(cells), _COLUMNS):
        yield ("  " + "".join(cell.ljust(width) for cell in cells[at : at + _COLUMNS])).rstrip()
