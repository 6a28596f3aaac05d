"""Candidates that differ in one provider alone, as one value."""

import msgspec

from roost.engine.candidates.picks import Pick
from roost.engine.candidates.query import CompiledQuery, Demand
from roost.engine.candidates.walk import Mapping, Take


class Fan(msgspec.Struct, frozen=True, gc=False):
    """As many candidates as it has rows, in their order."""

    takes: tuple[Take, ...]  # what all of them have in common, ascending
    mappings: tuple[Mapping, ...]  # the same of groups
    suffix: str  # of the group whose provider differs
    demand: Demand  # what that group takes of it, not empty
    rows: tuple[int, ...]  # those providers; none of them gives anything else


def build_fan(compiled: CompiledQuery, picks: list[Pick]) -> Fan | None:
    """Return the candidates of an anchor as a fan; None where they are none.

    Args:
        picks: those of the anchor; any provider of one goes with any of another.
    """
    wide = [pick for pick in picks if len(pick.options) > 1]
    if len(wide) > 1:
        return None
    # Where nothing differs, the last pick is as good as any.
    chosen = wide[0] if wide else picks[-1]
    fixed = [pick for pick in picks if pick is not chosen]
    rows = {pick.options[0] for pick in fixed}
    is_apart = rows.isdisjoint(chosen.options) and all(pick.suffix != chosen.suffix for pick in fixed)
    if not is_apart or not chosen.demand:
        return None
    takes = sorted((pick.options[0], class_id, amount) for pick in fixed for class_id, amount in pick.demand)
    members: dict[str, set[int]] = {suffix: set() for suffix in compiled.suffixes if suffix != chosen.suffix}
    for pick in fixed:
        members[pick.suffix].add(pick.options[0])
    mappings = tuple([(suffix, tuple(sorted(served))) for suffix, served in members.items()])
    return Fan(tuple(takes), mappings, chosen.suffix, chosen.demand, tuple(chosen.options))
