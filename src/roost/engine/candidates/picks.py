"""Picks: the choices to make at one anchor, with the providers to choose from."""

from roost.engine.candidates.anchors import ServingMasks
from roost.engine.candidates.query import CompiledQuery, Demand, GroupNeeds
from roost.engine.candidates.sharing_providers import SharingProviders
from roost.engine.columns.state import State


class Pick:
    """One choice of a provider: for a group with a suffix, or for one class of the group without one."""

    __slots__ = ("demand", "needs", "options", "suffix")

    def __init__(self, *, suffix: str, demand: Demand, options: list[int], needs: GroupNeeds) -> None:
        self.suffix = suffix
        self.demand = demand
        # Provider rows: of the tree, then of the lenders, both ascending; or in the order of a preference.
        self.options = options
        self.needs = needs


def find_picks(
    state: State, compiled: CompiledQuery, root: int, *, sharing: SharingProviders, serving: ServingMasks | None = None
) -> list[Pick] | None:
    """Find all picks at an anchor; None if one of them has no option.

    Args:
        root: provider row; anything but a living root has no candidate.
        serving: masks of ``find_anchors``, if available; it must have accepted the root.
    """
    if serving is not None and not sharing:
        return _build_picks(state, compiled, root, serving=serving)
    providers = state.providers
    if not compiled.is_possible or not providers.alive.each[root] or providers.parent.each[root] >= 0:
        return None
    traits = state.traits.labels_of(root)
    if not traits >= compiled.root_required or not traits.isdisjoint(compiled.root_forbidden):
        return None
    own = providers.rows_of_tree(root)
    lenders = sharing.find_lenders(root) if sharing else []
    picks: list[Pick] = []
    plain = compiled.plain
    if plain is not None:
        permitted = _find_permitted(state, plain, root, own=own, lenders=lenders)
        for each in plain.resources:
            columns = state.inventory(each[0])
            options = [row for row in permitted if columns.can_take(row, each[1])]
            if not options:
                return None
            picks.append(Pick(suffix="", demand=(each,), options=options, needs=plain))
    if compiled.kinds:
        options_of = []
        for needs in compiled.kinds:
            options = [row for row in own if _can_serve(state, needs, row)]
            options += [row for row in lenders if _can_serve(state, needs, row)]
            if not options:
                return None
            options_of.append(options)
        for suffix, kind in compiled.kind_of.items():
            needs = compiled.kinds[kind]
            picks.append(Pick(suffix=suffix, demand=needs.resources, options=options_of[kind], needs=needs))
    return picks


def _build_picks(state: State, compiled: CompiledQuery, root: int, *, serving: ServingMasks) -> list[Pick] | None:
    """Build the picks from the masks of serving providers, where nothing is shared."""
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
            picks.append(Pick(suffix="", demand=(each,), options=options, needs=plain))
    if compiled.kinds:
        options_of = [[row for row in own if able[row]] for able in serving.kinds]
        if not all(options_of):
            return None
        for suffix, kind in compiled.kind_of.items():
            needs = compiled.kinds[kind]
            picks.append(Pick(suffix=suffix, demand=needs.resources, options=options_of[kind], needs=needs))
    return picks


def _find_permitted(state: State, needs: GroupNeeds, root: int, *, own: list[int], lenders: list[int]) -> list[int]:
    """Find the providers that may serve the group without a suffix at an anchor, by their labels.

    The membership of the root extends to its whole tree; a lender must be a member itself.
    """
    aggregates_of = state.membership.labels_of
    if not aggregates_of(root).isdisjoint(needs.forbidden_aggregates):
        return []
    if needs.in_tree is not None:
        lenders = []
        if state.providers.root.each[needs.in_tree] != root:
            return []
    if needs.member_of:
        if not _is_member(state, needs, root):
            own = [row for row in own if _is_member(state, needs, row)]
        lenders = [row for row in lenders if _is_member(state, needs, row)]
    rows = own + lenders
    if needs.forbidden_aggregates:
        rows = [row for row in rows if aggregates_of(row).isdisjoint(needs.forbidden_aggregates)]
    if needs.forbidden:
        rows = [row for row in rows if state.traits.labels_of(row).isdisjoint(needs.forbidden)]
    return rows


def _is_member(state: State, needs: GroupNeeds, row: int) -> bool:
    aggregates = state.membership.labels_of(row)
    return all(not aggregates.isdisjoint(each) for each in needs.member_of)


def _can_serve(state: State, needs: GroupNeeds, row: int) -> bool:
    """Return whether one provider alone satisfies a group with a suffix."""
    for class_id, amount in needs.resources:
        if not state.inventory(class_id).can_take(row, amount):
            return False
    if needs.required or needs.forbidden:
        traits = state.traits.labels_of(row)
        if not traits.isdisjoint(needs.forbidden) or any(traits.isdisjoint(each) for each in needs.required):
            return False
    if needs.in_tree is not None:
        root_of = state.providers.root.data
        if root_of.item(row) != root_of.item(needs.in_tree):
            return False
    if not state.membership.labels_of(row).isdisjoint(needs.forbidden_aggregates):
        return False
    return _is_member(state, needs, row)
