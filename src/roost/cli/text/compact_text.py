"""The report of ``roost lab compact`` as text."""

from itertools import groupby

from roost.cli.text.tables import Table, align
from roost.simulator.lab.compact_runs import Compaction, CompactResult


def to_text(compaction: Compaction) -> str:
    """Return the report, with a final newline."""
    hosts = ", ".join(f"{len(list(group))}x{kind}" for kind, group in groupby(compaction.hosts))
    lines = [
        f"Hosts for {compaction.workload}: {compaction.requests:,} requests",
        f"  hosts: {f'{hosts}, repeated' if hosts else 'the first ones of the trace'}",
        f"  at least {compaction.bound:,} if no request is refused: {_peak(compaction)}",
        *(f"  note: {note}" for note in compaction.notes),
        "  (least number of hosts, refused requests and hosts empty at the end, for each share that may be refused)",
        "",
    ]
    allow = [least.allow for least in compaction.policies[0].least]
    heads = ("policy", *(cell for share in allow for cell in (_head(share), "refused", "empty")), "trials")
    rows: Table = [heads, *(_row(result) for result in compaction.policies)]
    lines += align(rows, right=range(1, len(heads)))
    lines += ["", *(_advice(compaction, at, share) for at, share in enumerate(allow))]
    return "\n".join(lines) + "\n"


def _peak(compaction: Compaction) -> str:
    peak = compaction.peak
    return f"the largest sums are {peak.cpus:,.0f} processors and {peak.memory_mb:,.0f} of memory"


def _head(share: float) -> str:
    return f"hosts at {100 * share:.4g} %"


def _row(result: CompactResult) -> tuple[str, ...]:
    cells = [result.policy]
    for least in result.least:
        if least.host_count is None:
            cells += [f"> {result.limit:,}", "", ""]
        else:
            cells += [f"{least.host_count:,}", f"{least.refused:,}", f"{least.empty_hosts:,}"]
    return (*cells, f"{result.trials:,}")


def _advice(compaction: Compaction, at: int, share: float) -> str:
    """Return the sentence that says how many hosts to buy."""
    limit = "no request may be refused" if share == 0 else f"{100 * share:.4g} % of requests may be refused"
    found = sorted(
        (least.host_count, place, result.policy)
        for place, result in enumerate(compaction.policies)
        if (least := result.least[at]).host_count is not None
    )
    if not found:
        return f"If {limit}: no policy serves the trace with the hosts that were tried."
    count, _, policy = found[0]
    others = [
        f"as many as {name}" if other == count else f"{other - count:,} fewer than {name}"
        for other, _, name in found[1:]
    ]
    return f"If {limit}: {policy} needs {count:,} hosts{', ' if others else ''}{', '.join(others)}."
