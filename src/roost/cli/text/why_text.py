"""A decision and its explanation as text."""

from collections.abc import Iterator, Mapping

from roost.api.v1.schemas.decisions import RoomHint, ShownDecision, ShownPart, ShownReplay, ShownWhy
from roost.cli.text.plain_text import format_time, paragraph
from roost.cli.text.reason_words import reason_words, refusal_words
from roost.cli.text.tables import Table, align
from roost.model.evidence.explain import Explanation, Shortfall
from roost.model.evidence.predicates import singular_predicate
from roost.model.evidence.replay_result import HostStanding
from roost.model.evidence.summary import RefusedRequests, Summary
from roost.model.names import amount_text
from roost.model.request import Request

# Two multipliers count as equal if they differ by less.
_TIE_TOLERANCE = 1e-9
_REQUESTS_SHOWN = 3


def to_text(why: ShownWhy) -> str:
    """Return a stored decision with its request, answer and explanation."""
    lines = [*_heading(why.decision), *_request(why.request, why.decision), ""]
    zone = why.request.availability_zone
    lines += _answer(why.decision, zone=zone)
    if why.explanation is None:
        lines += ["", why.note]
    else:
        lines += explanation_lines(why.explanation, zone=zone)
    if why.plan is not None:
        lines += ["", _plan_text(why.plan, why.decision)]
    return paragraph(lines)


def _plan_text(plan: RoomHint, decision: ShownDecision) -> str:
    if not plan.moves:
        return f"by now, the request fits on {plan.host}: request it again"
    moves = "1 move" if plan.moves == 1 else f"{plan.moves:,} moves"
    return f"with {moves} of instances it fits on {plan.host}: `roost plan make-room {decision.uuid}`"


def _heading(decision: ShownDecision) -> Iterator[str]:
    yield f"decision {decision.uuid}: {decision.outcome} at {format_time(decision.decided_at_s)}"


def _request(request: Request, decision: ShownDecision) -> Iterator[str]:
    flavor = request.flavor
    disk_gb = flavor.root_gb + flavor.ephemeral_gb
    parts = [
        amount_text(name, amount)
        for name, amount in (("VCPU", flavor.vcpus), ("MEMORY_MB", flavor.memory_mb), ("DISK_GB", disk_gb))
        if amount
    ]
    parts += [f"{key}={value}" for key, value in sorted(flavor.extra_specs.items())]
    count = f"{decision.count:,} instances of " if decision.count > 1 else ""
    yield f"request   {count}flavor {flavor.name}: {', '.join(parts)}"
    if request.image is not None:
        properties = ", ".join(f"{key}={value}" for key, value in sorted(request.image.properties.items()))
        yield f"          image {request.image.id or ''} {properties}".rstrip()
    for label, value in (
        ("zone", request.availability_zone),
        ("server group", request.group),
        ("ignored hosts", ", ".join(request.ignore_hosts)),
        ("forced to hosts", ", ".join(request.force_hosts + request.force_nodes)),
        ("hints", ", ".join(f"{name}={hint}" for name, hint in sorted(request.hints.items()))),
        ("project", request.project_id),
    ):
        if value:
            yield f"          {label} {value}"
    for group in request.groups:
        amounts = ", ".join(amount_text(name, amount) for name, amount in sorted(group.resources.items()))
        yield f"          resource group {group.suffix or 'without suffix'}: {amounts}"


def _answer(decision: ShownDecision, *, zone: str | None = "") -> Iterator[str]:
    if decision.outcome == "refused":
        stages = ((each.rule, each.before - each.after, each.reason) for each in decision.stages)
        yield f"refused: {refusal_words(decision.reason, stages, zone=zone)}"
    elif len(decision.picks) == 1:
        yield f"granted: {decision.picks[0].node}"
    else:
        count = len({pick.node for pick in decision.picks})
        yield f"granted: {len(decision.picks):,} instances on {count:,} {'host' if count == 1 else 'hosts'}"
    if decision.part is not None:
        yield _part_text(decision.part, decision)
    for cell, picks in decision.alternates.items():
        yield f"alternates{f' in {cell}' if cell else ''}: {', '.join(pick.node for pick in picks)}"
    if decision.conflicts:
        yield f"lost to concurrent claims: {', '.join(decision.conflicts)}"
    for warning in decision.warnings:
        yield f"warning: {warning}"


def _part_text(part: ShownPart, decision: ShownDecision) -> str:
    place = f"the part of the deciding process, one of {part.processes:,} parts of the fleet"
    if part.is_within:
        return f"chosen within {place}"
    missing = "not all instances fit" if decision.count > 1 else "no host fits"
    return f"{missing} within {place}: {'none elsewhere' if decision.outcome == 'refused' else 'chosen elsewhere'}"


def explanation_lines(explanation: Explanation, *, zone: str | None = "") -> Iterator[str]:
    """Yield the lines of an explanation, with an empty line before each part."""
    yield ""
    table: Table = [("rule", "refuses", "alone would refuse", "only it refuses", "hosts that")]
    table += [
        (
            rule.rule,
            f"{rule.in_turn:,}",
            f"{rule.alone:,}",
            f"{rule.only:,}",
            reason_words(rule.reason, rule=rule.rule, zone=zone),
        )
        for rule in explanation.rules
    ]
    yield from align(table, indent=0, fits=("text", "keep", "keep", "keep", "prose"))
    yield from _refusal(explanation, zone=zone) if explanation.reason else _ranking(explanation)


def _refusal(explanation: Explanation, *, zone: str | None) -> Iterator[str]:
    words = {each.reason: reason_words(each.reason, rule=each.rule, zone=zone) for each in explanation.rules}
    if explanation.nearest:
        yield from ("", "nearest:")
        table: Table = [("host", "short of")]
        table += [
            (miss.host, "; ".join(_shortfall(each, words) for each in miss.shortfalls)) for miss in explanation.nearest
        ]
        yield from align(table, fits=("text", "prose"))
    if explanation.changes:
        yield from ("", "any one of these changes would fit:")
        changes: Table = [("change", "hosts it gains")]
        changes += [(change.text, f"{change.hosts:,}") for change in explanation.changes]
        yield from align(changes, fits=("prose", "keep"))
    else:
        yield from ("", "no single change of the request would fit")
    if explanation.never is not None:
        if explanation.never.could_fit:
            yield from ("", "the request fits on this fleet when it is empty")
        else:
            never = reason_words(explanation.never.reason)
            yield from ("", f"the request cannot fit on this fleet, even when it is empty: {never}")


def _shortfall(short: Shortfall, words: Mapping[str, str]) -> str:
    reason = singular_predicate(words.get(short.reason) or reason_words(short.reason))
    if short.has < short.wanted and short.resource_class:
        lacking = amount_text(short.resource_class, short.wanted - short.has)
        return f"{lacking} (has {short.has:,} of {short.wanted:,})"
    if short.has < short.wanted:
        return f"{short.wanted - short.has:,} of {short.wanted:,} groups ({reason})"
    return reason


def _ranking(explanation: Explanation) -> Iterator[str]:
    if not explanation.ranking:
        return
    weighers = list(explanation.ranking[0].shares)
    yield from ("", f"best of {explanation.left:,} hosts:")
    table: Table = [("host", "total", *weighers)]
    table += [
        (line.host, f"{line.total:.4f}", *(f"{line.shares[name]:.4f}" for name in weighers))
        for line in explanation.ranking
    ]
    yield from align(table)
    if explanation.preferences:
        yield ""
        yield from (f"{each.weigher}: {each.host} {each.text} than {each.other}" for each in explanation.preferences)
    if explanation.tips:
        yield from ("", "multipliers that would change the ranking:")
        tips: Table = [("multiplier of", "from", "to", "ties with")]
        tips += [
            (tip.weigher, f"{tip.multiplier:g}", _tipping_text(tip.multiplier, tip.tipping), tip.host)
            for tip in explanation.tips
        ]
        yield from align(tips)


def _tipping_text(multiplier: float, tipping: float) -> str:
    return "any other" if abs(tipping - multiplier) < _TIE_TOLERANCE else f"{tipping:.4g}"


def replay_text(replayed: ShownReplay, *, top: int) -> str:
    """Return the comparison of a stored decision with its replay."""
    lines = list(_heading(replayed.stored))
    if replayed.is_same:
        lines.append("the replay is identical, to the last bit")
        return paragraph(lines)
    lines.append(f"the replay differs in: {', '.join(replayed.fields)}")
    for label, decision in (("then", replayed.stored), ("now", replayed.again)):
        lines += [f"{label:5} {line}" for line in _answer(decision)]
    if replayed.differences:
        lines += ["", f"{len(replayed.differences):,} hosts differ:"]
        table: Table = [("host", "then", "now")]
        table += [
            (each.node, _standing(each.then, each.picks_then), _standing(each.now, each.picks_now))
            for each in replayed.differences[:top]
        ]
        lines += align(table, fits=("text", "prose", "prose"))
        if len(replayed.differences) > top:
            lines.append(f"  … and {len(replayed.differences) - top:,} more: --top")
    return paragraph(lines)


def _standing(standing: HostStanding, picks: int) -> str:
    chosen = f"chosen {picks:,} times, " if picks > 1 else "chosen, " if picks else ""
    if standing.refused_by:
        return f"{chosen}refused by {standing.refused_by}"
    return f"{chosen}scored {standing.total or 0.0:.4f}"


def summary_text(summary: Summary, *, top: int) -> str:
    """Return the refusals of a period by reason, most frequent first."""
    since = f" since {format_time(summary.since_s)}" if summary.since_s else ""
    count = "1 request was" if summary.refusals == 1 else f"{summary.refusals:,} requests were"
    lines = [f"{count} refused{since}"]
    if not summary.is_complete:
        lines.append("(only the newest are counted; use a later --since)")
    if summary.reasons:
        table: Table = [("refused", "instances", "projects", "last", "hosts", "most frequent requests")]
        table += [
            (
                f"{each.refusals:,}",
                f"{each.instances:,}",
                f"{each.projects:,}",
                format_time(each.last_at_s),
                reason_words(each.reason),
                _request_counts(each.requests),
            )
            for each in summary.reasons[:top]
        ]
        lines += ["", *align(table, fits=("keep", "keep", "keep", "keep", "prose", "prose"))]
        if len(summary.reasons) > top:
            lines.append(f"  … and {len(summary.reasons) - top:,} more reasons: --top")
        lines += ["", f"`roost why {summary.reasons[0].newest}` explains the newest refusal of the first row"]
    return paragraph(lines)


def _request_counts(requests: list[RefusedRequests]) -> str:
    parts = [
        f"{each.flavor or 'a flavor no longer stored'}{f' in {each.zone}' if each.zone else ''} ({each.refusals:,})"
        for each in requests[:_REQUESTS_SHOWN]
    ]
    more = len(requests) - _REQUESTS_SHOWN
    return ", ".join(parts) + (f" and {more:,} more" if more > 0 else "")
