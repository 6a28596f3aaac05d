"""What has to be chosen at one anchor, and from which providers."""

from roost.engine.candidates.anchors import Serving
from roost.engine.candidates.query import Compiled, Demand, Wanted
from roost.engine.candidates.sharing_providers import Sharing
from roost.engine.columns.state import State


class Pick:
    """One choice of a provider: for a group with a suffix, or for one class of the group without."""

    __slots__ = ("demand", "options", "suffix", "wanted")

    def __init__(self, *, suffix: str, demand: Demand, options: list[int], wanted: Wanted) -> None:
        self.suffix = suffix
        self.demand = demand
        self.options = options  # provider rows, ascending within the tree, then among the lenders
        self.wanted = wanted


def picks_at(
    state: State, compiled: Compiled, root: int, *, sharing: Sharing, serving: Serving | None = None
) -> list[Pick] | None:
    """Return every choice to be made at an anchor, or nothing if one of them has no option.

    Args:
        root: provider row; anything but a living root has no candidate.
        serving: who serves what, if that is at hand; then the root has passed the mask that came with it.
    """
    if serving is not None and not sharing:
        return _surveyed(state, compiled, root, serving=serving)
    providers = state.providers
    if not compiled.is_possible or not providers.alive.each[root] or providers.parent.each[root] >= 0:
        return None
    traits = state.traits.labels_of(root)
    if not traits >= compiled.root_required or not traits.isdisjoint(compiled.root_forbidden):
        return None
    own = providers.rows_of_tree(root)
    lenders = sharing.lenders(root) if sharing else []
    picks: list[Pick] = []
    plain = compiled.plain
    if plain is not None:
        permitted = _permitted(state, plain, root, own=own, lenders=lenders)
        for each in plain.resources:
            columns = state.inventory(each[0])
            options = [row for row in permitted if columns.can_take(row, each[1])]
            if not options:
                return None
            picks.append(Pick(suffix="", demand=(each,), options=options, wanted=plain))
    if compiled.kinds:
        options_of = []
        for wanted in compiled.kinds:
            options = [row for row in own if _serves(state, wanted, row)]
            options += [row for row in lenders if _serves(state, wanted, row)]
            if not options:
                return None
            options_of.append(options)
        for suffix, kind in compiled.kind_of.items():
            wanted = compiled.kinds[kind]
            picks.append(Pick(suffix=suffix, demand=wanted.resources, options=options_of[kind], wanted=wanted))
    return picks


def _surveyed(state: State, compiled: Compiled, root: int, *, serving: Serving) -> list[Pick] | None:
    """Return the same where it was judged already who serves what, and nothing is shared."""
    own = state.providers.rows_of_tree(root)
    if len(own) > 1:
        own = sorted(own)
    picks = []
    plain = compiled.plain
    if plain is not None:
        for each, able in zip(plain.resources, serving.plain, strict=True):
            options = [row for row in own if able[row]]
            if not options:
                return None
            picks.append(Pick(suffix="", demand=(each,), options=options, wanted=plain))
    if compiled.kinds:
        options_of = [[row for row in own if able[row]] for able in serving.kinds]
        if not all(options_of):
            return None
        for suffix, kind in compiled.kind_of.items():
            wanted = compiled.kinds[kind]
            picks.append(Pick(suffix=suffix, demand=wanted.resources, options=options_of[kind], wanted=wanted))
    return picks


def _permitted(state: State, wanted: Wanted, root: int, *, own: list[int], lenders: list[int]) -> list[int]:
    """Return the providers whose labels let them serve the group without a suffix at an anchor.

    Membership of the root spans its tree; a lender has to be a member itself.
    """
    aggregates_of = state.membership.labels_of
    if not aggregates_of(root).isdisjoint(wanted.forbidden_aggregates):
        return []
    if wanted.in_tree is not None:
        lenders = []
        if state.providers.root.each[wanted.in_tree] != root:
            return []
    if wanted.member_of:
        if not _is_member(state, wanted, root):
            own = [row for row in own if _is_member(state, wanted, row)]
        lenders = [row for row in lenders if _is_member(state, wanted, row)]
    rows = own + lenders
    if wanted.forbidden_aggregates:
        rows = [row for row in rows if aggregates_of(row).isdisjoint(wanted.forbidden_aggregates)]
    if wanted.forbidden:
        rows = [row for row in rows if state.traits.labels_of(row).isdisjoint(wanted.forbidden)]
    return rows


def _is_member(state: State, wanted: Wanted, row: int) -> bool:
    aggregates = state.membership.labels_of(row)
    return all(not aggregates.isdisjoint(each) for each in wanted.member_of)


def _serves(state: State, wanted: Wanted, row: int) -> bool:
    """Say whether one provider by itself has everything that a group with a suffix asks."""
    for class_id, amount in wanted.resources:
        if not state.inventory(class_id).can_take(row, amount):
            return False
    if wanted.required or wanted.forbidden:
        traits = state.traits.labels_of(row)
        if not traits.isdisjoint(wanted.forbidden) or any(traits.isdisjoint(each) for each in wanted.required):
            return False
    if wanted.in_tree is not None:
        root_of = state.providers.root.data
        if root_of.item(row) != root_of.item(wanted.in_tree):
            return False
    if not state.membership.labels_of(row).isdisjoint(wanted.forbidden_aggregates):
        return False
    return _is_member(state, wanted, row)
