"""A fan: candidates that differ in only one provider, as one value."""

import msgspec

from roost.engine.candidates.picks import Pick
from roost.engine.candidates.query import CompiledQuery, Demand
from roost.engine.candidates.walk import Mapping, Take


class Fan(msgspec.Struct, frozen=True, gc=False):
    """One candidate per row, in the order of rows."""

    takes: tuple[Take, ...]  # common to all candidates, ascending
    mappings: tuple[Mapping, ...]  # common to all candidates
    suffix: str  # of the group with the varying provider
    demand: Demand  # of that group, not empty
    rows: tuple[int, ...]  # the varying providers; ``takes`` has none of them


def build_fan(compiled: CompiledQuery, picks: list[Pick]) -> Fan | None:
    """Build the fan of an anchor's candidates; None if they form no fan.

    Args:
        picks: of the anchor; their options combine freely.
    """
    wide = [pick for pick in picks if len(pick.options) > 1]
    if len(wide) > 1:
        return None
    # If nothing varies, any pick will do.
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
