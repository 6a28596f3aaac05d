"""The margins of a ranking: each weigher's share, and the multiplier that would change the winner."""

from collections.abc import Sequence

import numpy as np

from roost.engine.columns.types import Rows, Scores
from roost.model.evidence.explain import Preference, RankedHost, Tip
from roost.scheduler.explain.verdict_matrix import Matrix


def explain_ranking(matrix: Matrix, count: int) -> tuple[list[RankedHost], list[Preference], list[Tip]]:
    """Return the best hosts with each weigher's share, why they are best, and the multipliers for a tie."""
    rows = matrix.passing()
    names = [matrix.state.hosts.names[row] for row in rows.tolist()]
    if len(rows) == 1:
        return [RankedHost(host=names[0], total=0.0, shares={})], [], []
    shares = matrix.shape.shares(rows)
    totals = shares.totals
    order = np.argsort(-totals, kind="stable")
    ranking = [
        RankedHost(
            host=names[position],
            total=float(totals[position]) + 0.0,
            shares={name: float(part[position]) + 0.0 for name, part in shares.parts.items()},
        )
        for position in order[:count].tolist()
    ]
    winner = int(order[0])
    tips = [
        tip
        for name, multiplier in shares.multipliers.items()
        if (
            tip := _tip(
                name,
                multiplier,
                ahead=shares.normalised[name] - shares.normalised[name][winner],
                behind=totals[winner] - totals,
                names=names,
            )
        )
        is not None
    ]
    preferences = _find_preferences(matrix, rows[order[:count]])
    return ranking, preferences, sorted(tips, key=lambda tip: abs(tip.tipping - tip.multiplier))


def _find_preferences(matrix: Matrix, best: Rows) -> list[Preference]:
    """Compare the best host with the next one, or with the next different one, for each weigher.

    Args:
        best: intp, shape (hosts,): the best hosts, in order.
    """
    names, found = matrix.state.hosts.names, dict[str, Preference]()
    for row in best[1:]:
        for weigher, text in matrix.shape.compare(np.array([best[0], row])).items():
            preference = Preference(weigher=weigher, host=names[best[0]], text=text, other=names[row])
            found.setdefault(weigher, preference)
    return list(found.values())


def _tip(name: str, multiplier: float, *, ahead: Scores, behind: Scores, names: Sequence[str]) -> Tip | None:
    """Return the nearest multiplier of a weigher at which another host ties with the winner.

    Args:
        name, multiplier: the weigher's name and present multiplier.
        ahead: each host's lead over the winner on the weigher's scale.
        behind: each host's distance from the winner's score.
        names: names of the hosts.
    """
    differing = np.flatnonzero(ahead)
    if not len(differing):
        return None
    steps = behind[differing] / ahead[differing]
    at = int(np.argmin(np.abs(steps)))
    return Tip(weigher=name, host=names[differing[at]], multiplier=multiplier, tipping=multiplier + float(steps[at]))
