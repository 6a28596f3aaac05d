"""The answer of ``roost decide`` as text."""

from collections import Counter
from collections.abc import Iterable

from roost.cli.text.reason_words import reason_words, refusal_words
from roost.cli.text.tables import Table, align
from roost.model.documents.answer import Answer, AnswerPick, AnswerStage, RankedHost, RefusedHost
from roost.model.evidence.decision import Stage
from roost.model.evidence.predicates import count_hosts

# Hosts per list, to fit a screen; JSON has all of them.
_ROWS = 10


def to_text(answer: Answer) -> str:
    """Return an answer as text, with a final newline."""
    parts = [*_outcome(answer), "", answer.scope]
    parts += [f"warning: {warning}" for warning in answer.warnings]
    parts += ["", "stages", *(stage_lines(answer.stages) or ["  none: no rule refuses a host"])]
    for stage in answer.stages:
        parts += _refusal_lines(stage)
    if answer.ranking:
        parts += ["", *_ranking(answer)]
    parts += ["", f"seed {answer.seed}, now {answer.now:.15g}, roost {answer.roost}"]
    return "\n".join(line.rstrip() for line in parts) + "\n"


def _outcome(answer: Answer) -> list[str]:
    if answer.outcome == "refused":
        stages = ((each.rule, each.before - each.after, each.reason) for each in answer.stages)
        return [f"refused: {refusal_words(answer.reason, stages)}"]
    if len(answer.picks) == 1:
        lines = [f"granted: {_host_name(answer.picks[0])}"]
    else:
        counts = Counter(_host_name(pick) for pick in answer.picks)
        lines = [
            f"granted: {len(answer.picks):,} instances on {len(counts):,} {'host' if len(counts) == 1 else 'hosts'}"
        ]
        lines += _truncate([f"  {count:>6,}  {name}" for name, count in counts.items()], "hosts")
    for pick in answer.picks[:1]:
        lines += [
            f"  takes {', '.join(f'{amount:,} {name}' for name, amount in share.resources.items())} of {share.provider}"
            for share in pick.allocations
        ]
        if pick.limits:
            lines.append(f"  limits: {', '.join(_limit(name, limit) for name, limit in pick.limits.items())}")
    for cell, picks in answer.alternates.items():
        cell_text = f" in cell {cell}" if cell else ""
        lines.append(f"  alternates{cell_text}: {', '.join(_host_name(pick) for pick in picks)}")
    return lines


def _limit(name: str, limit: object) -> str:
    if isinstance(limit, dict):
        return f"{name} ({', '.join(_limit(*part) for part in limit.items())})"
    if isinstance(limit, list | bool):
        return f"{name} {' '.join(limit) if isinstance(limit, list) else str(limit).lower()}"
    return f"{name} {limit:,.12g}"


def stage_lines(stages: Iterable[AnswerStage] | Iterable[Stage]) -> list[str]:
    """Return one line per stage."""
    return [
        f"  {stage.rule:30} {stage.before:>9,} -> {stage.after:>7,}  "
        f"{count_hosts(stage.before - stage.after, reason_words(stage.reason, rule=stage.rule))}"
        for stage in stages
    ]


def _refusal_lines(stage: AnswerStage) -> list[str]:
    """Return the refused hosts of a stage with a reason of their own; the stage line has the common reason."""
    own = [host for host in stage.refused if host.reason != stage.reason]
    if not own:
        return []
    hosts = [f"  {_host_name(host):30} {reason_words(host.reason, rule=stage.rule)}" for host in own]
    return [
        "",
        f"refused by {stage.rule}, since they {reason_words(stage.reason, rule=stage.rule)}",
        *_truncate(hosts, "hosts"),
    ]


def _host_name(host: AnswerPick | RefusedHost | RankedHost) -> str:
    return host.host if host.nodename == host.host else f"{host.host} ({host.nodename})"


def _ranking(answer: Answer) -> list[str]:
    """Return the best hosts, one line each, with a column for each weigher that differs between hosts."""
    weighers = [
        cell.weigher
        for at, cell in enumerate(answer.ranking[0].weights)
        if any(host.weights[at].contribution for host in answer.ranking)
    ]
    rows: Table = [("host", "total", *weighers)]
    for host in answer.ranking[:_ROWS]:
        cells = {cell.weigher: cell for cell in host.weights}
        shares = [f"{cells[name].contribution:.4f} ({cells[name].raw:,.12g})" for name in weighers]
        rows.append((_host_name(host), f"{host.total:.4f}", *shares))
    if not answer.ranking[0].weights:
        return [f"ranking: only {rows[1][0]} is left, so nothing is weighed"]
    right = range(1, len(rows[0]))
    lines = ["ranking: share of each weigher, and its raw weight", *align(rows, right=right)]
    hidden = len(answer.ranking) - _ROWS
    if hidden > 0:
        lines.append(f"  … and {hidden:,} more hosts; -o json has all")
    return lines


def _truncate(lines: list[str], of: str) -> list[str]:
    hidden = len(lines) - _ROWS
    return lines if hidden <= 0 else [*lines[:_ROWS], f"  … and {hidden:,} more {of}; -o json has all"]
