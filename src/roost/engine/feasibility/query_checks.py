"""The checks of a query, each with its reason, and the hosts that they cannot decide.

``roost.engine.candidates.anchors`` judges the same trees for another purpose. Its mask may accept trees without a
candidate, needs no reasons and is recomputed from free amounts each time, so it can skip expensive conditions. Checks
are compiled once and judged often, name the reason of each refusal and, with the search, are exact. Both modules use
the label masks of ``anchors``.
"""

from collections.abc import Hashable, Mapping

import numpy as np

from roost.engine.candidates.anchors import label_mask
from roost.engine.candidates.query import CompiledQuery, UnknownNames
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask, Rows
from roost.engine.feasibility.feasibility import AmountCheck, Check, Feasibility, GroupCheck, StaticCheck
from roost.model.names import amount_text
from roost.model.placement.remote import RemoteHost
from roost.model.request import CandidateQuery, ResourceGroup

# Part of a query -> the rule that added it: ("root", trait), ("member_of", aggregates), ("avoid", aggregate).
Origins = Mapping[Hashable, str]

_NO_ORIGINS: Origins = {}
_NO_MEMBERS = "are not in the requested aggregates"
_FORBIDDEN_MEMBERS = "are in a forbidden aggregate"


def compile_feasibility(
    state: State, query: CandidateQuery, compiled: CompiledQuery, *, origins: Origins = _NO_ORIGINS
) -> Feasibility:
    """Compile a query against a state; all its names must be defined."""
    builder = _Builder(state, query, compiled, origins=origins)
    if not compiled.is_possible:
        no_hosts: Mask = np.zeros(len(state.hosts), dtype=np.bool_)
        builder.checks.append(
            StaticCheck(about="group", reason="cannot serve a resource group without resources", mask=no_hosts)
        )
    fit = Feasibility(
        state,
        checks=builder.checks,
        compiled=compiled,
        undecided=builder.undecided & state.hosts.alive.view,
        shares=builder.shares,
    )
    groups = [group for group in query.groups if group.resources or group.suffix]
    if not fit.shares and [group.suffix for group in groups] == [""]:
        fit.flat_amounts = [(check.class_id, check.amount) for check in fit.checks if isinstance(check, AmountCheck)]
        fit.flat_resources = dict(groups[0].resources)
    return fit


def refuse_unknown_names(state: State, unknown: UnknownNames, *, origins: Origins = _NO_ORIGINS) -> Feasibility:
    """Refuse all hosts for undefined classes and traits of a query."""
    no_hosts: Mask = np.zeros(len(state.hosts), dtype=np.bool_)
    checks: list[Check] = [
        StaticCheck(about="class", reason=f"offer no {name}", mask=no_hosts) for name in unknown.resource_classes
    ]
    checks.extend(
        StaticCheck(about="trait", reason=f"lack trait {name}", mask=no_hosts, rule=origins.get(("root", name), ""))
        for name in unknown.traits
    )
    return Feasibility(state, checks=checks)


def refuse_all(state: State, *, rule: str, reason: str) -> Feasibility:
    """Refuse all hosts, for a request that a rule refuses regardless of hosts."""
    no_hosts: Mask = np.zeros(len(state.hosts), dtype=np.bool_)
    fit = Feasibility(
        state, checks=[StaticCheck(about="refusal", reason=f"are not considered: {reason}", mask=no_hosts, rule=rule)]
    )
    fit.is_searched = not state.hosts.are_self_reported
    return fit


def accept_remote(state: State, found: Mapping[int, RemoteHost]) -> Feasibility:
    """Accept the hosts that a remote Placement returned.

    Args:
        found: the first candidate on each host, by host row.
    """
    able: Mask = np.zeros(len(state.hosts), dtype=np.bool_)
    able[list(found)] = True
    fit = Feasibility(state, checks=[StaticCheck(about="group", reason="are no candidates of Placement", mask=able)])
    fit.remote_hosts = found
    return fit


def check_aggregates(
    state: State, group: ResourceGroup, amounts: Mapping[str, int], *, origins: Origins = _NO_ORIGINS
) -> Feasibility:
    """Check only the aggregates of a group, for hosts without providers.

    Args:
        state: with self-reported hosts.
        group: source of ``member_of`` and ``forbidden_aggregates``.
        amounts: the unchecked take of an instance on its host, by resource class.
    """
    roots = state.hosts.provider_row.view
    checks: list[Check] = [
        StaticCheck(
            about="aggregate",
            reason=_NO_MEMBERS,
            mask=_member_mask(state, aggregates)[roots],
            rule=origins.get(("member_of", aggregates), ""),
        )
        for aggregates in group.member_of
    ]
    for rule, avoided in _find_avoided(group, origins):
        mask = ~_member_mask(state, avoided)[roots]
        checks.append(StaticCheck(about="aggregate", reason=_FORBIDDEN_MEMBERS, mask=mask, rule=rule))
    fit = Feasibility(state, checks=checks)
    fit.is_searched = False
    ids = {name: state.class_ids.id_of(name) for name in amounts}
    fit.flat_amounts = [(class_id, amounts[name]) for name, class_id in ids.items() if class_id is not None]
    return fit


def _member_mask(state: State, uuids: frozenset[str]) -> Mask:
    """Return the providers in at least one of the aggregates: bool, shape (providers,)."""
    ids = [number for uuid in sorted(uuids) if (number := state.aggregates.id_of(uuid)) is not None]
    return state.membership.mask_of_any(ids)


def _find_avoided(group: ResourceGroup, origins: Origins) -> list[tuple[str, frozenset[str]]]:
    """Find the forbidden aggregates of a group by the rule that added them, sorted; the request itself first."""
    found: dict[str, set[str]] = {}
    for uuid in group.forbidden_aggregates:
        found.setdefault(origins.get(("avoid", uuid), ""), set()).add(uuid)
    return [(rule, frozenset(found[rule])) for rule in sorted(found)]


class _Builder:
    """Builds the checks of a query, and finds the hosts that they cannot decide."""

    def __init__(self, state: State, query: CandidateQuery, compiled: CompiledQuery, *, origins: Origins) -> None:
        self.state = state
        self.origins = origins
        self.query = query
        self.compiled = compiled
        self.roots: Rows = state.hosts.provider_row.view
        self.host_of, self.nested = state.host_trees()
        self.checks: list[Check] = []
        self.undecided: Mask = np.zeros(len(state.hosts), dtype=np.bool_)
        self.shares = False
        self._add_root_traits()
        for group in query.groups:
            self._add_tree(group)
        plain = [group for group in query.groups if group.suffix == "" and group.resources]
        suffixed = [group for group in query.groups if group.suffix != ""]
        for group in plain:
            self._add_plain_group(group)
        if suffixed:
            self._add_suffixed_groups(suffixed, plain)

    def _trait_mask(self, names: frozenset[str]) -> Mask:
        ids = [trait for name in sorted(names) if (trait := self.state.trait_ids.id_of(name)) is not None]
        return self.state.traits.mask_of_any(ids)

    def _host_mask(self, providers: Mask) -> Mask:
        """Return the hosts with at least one of these providers in their tree: bool, shape (hosts,)."""
        found = np.zeros(len(self.state.hosts), dtype=np.bool_)
        hosts = self.host_of[providers]
        found[hosts[hosts >= 0]] = True
        return found

    def _add_root_traits(self) -> None:
        for name in sorted(self.query.root_required):
            has_trait = self._trait_mask(frozenset({name}))[self.roots]
            rule = self.origins.get(("root", name), "")
            self.checks.append(StaticCheck(about="trait", reason=f"lack trait {name}", mask=has_trait, rule=rule))
        for name in sorted(self.query.root_forbidden):
            has_trait = self._trait_mask(frozenset({name}))[self.roots]
            rule = self.origins.get(("root", name), "")
            self.checks.append(
                StaticCheck(about="trait", reason=f"have forbidden trait {name}", mask=~has_trait, rule=rule)
            )

    def _add_tree(self, group: ResourceGroup) -> None:
        if group.in_tree is None:
            return
        row = self.state.providers.row_of_uuid.get(group.in_tree)
        root = -1 if row is None else self.state.providers.root.each[row]
        if group.suffix and any(self.state.providers.root.each[each] == root for each in self.state.sharing_rows()):
            # A sharing provider of that tree may serve the group in other trees.
            self.undecided[:] = True
            return
        self.checks.append(StaticCheck(about="tree", reason="are not in the requested tree", mask=self.roots == root))

    def _find_lenders(self, class_id: int, group: ResourceGroup) -> tuple[tuple[int, Mask], ...]:
        if group.in_tree is not None:
            return ()
        found = []
        for row in self.state.sharing_rows():
            if row not in self.state.inventory(class_id).holders:
                continue
            reached = self.state.membership.mask_of_any(self.state.membership.labels_of(row))
            found.append((row, self._host_mask(reached)))
        return tuple(found)

    def _add_plain_group(self, group: ResourceGroup) -> None:
        """Add the checks of the unsuffixed group, which may span a tree.

        The labels of the root decide alone if the root is the whole tree, or if it must take part as the only
        provider of a class.
        """
        state = self.state
        takes_part = ~self.nested
        amounts = []
        borrows = np.zeros(len(state.hosts), dtype=np.bool_)
        for name, amount in sorted(group.resources.items()):
            class_id = state.class_ids.id_of(name)
            assert class_id is not None, name
            columns = state.inventory(class_id)
            offering = columns.total.view > 0
            hosts = self.host_of[offering]
            counts = np.bincount(hosts[hosts >= 0], minlength=len(state.hosts))
            lenders = self._find_lenders(class_id, group)
            self.shares |= bool(lenders)
            reached = np.zeros(len(state.hosts), dtype=np.bool_)
            for _, served in lenders:
                reached |= served
            borrows |= reached
            takes_part |= (counts == 1) & offering[self.roots] & ~reached
            units = None
            if not columns.plain_units:
                allowed = columns.unit_mask(amount)
                units = self._host_mask(offering & allowed)
                # If one provider allows the amount by its units, and another has it free, only a search can decide.
                self.undecided |= (counts > 1) & self._host_mask(offering & ~allowed)
            reason = f"lack {amount_text(name, amount)} or more"
            amounts.append(AmountCheck(reason=reason, class_id=class_id, amount=amount, units=units, lenders=lenders))
        alone = takes_part & ~borrows
        self._add_plain_labels(group, alone)
        self.checks.extend(amounts)

    def _add_plain_labels(self, group: ResourceGroup, root_decides: Mask) -> None:
        for aggregates in group.member_of:
            member = _member_mask(self.state, aggregates)
            on_root = member[self.roots]
            somewhere = self._host_mask(member) | self._borrower_mask(member)
            self.undecided |= somewhere & ~on_root | (on_root & self._borrower_mask(~member))
            rule = self.origins.get(("member_of", aggregates), "")
            self.checks.append(StaticCheck(about="aggregate", reason=_NO_MEMBERS, mask=somewhere | on_root, rule=rule))
        for rule, avoided in _find_avoided(group, self.origins):
            member = _member_mask(self.state, avoided)
            on_root = member[self.roots]
            self.undecided |= ~on_root & (self._host_mask(member) | self._borrower_mask(member))
            self.checks.append(StaticCheck(about="aggregate", reason=_FORBIDDEN_MEMBERS, mask=~on_root, rule=rule))
        for names in group.required:
            has_trait = self._trait_mask(names)
            on_root, somewhere = has_trait[self.roots], self._host_mask(has_trait) | self._borrower_mask(has_trait)
            self.undecided |= somewhere & ~(on_root & root_decides)
            self.checks.append(
                StaticCheck(about="trait", reason=f"lack trait {' or '.join(sorted(names))}", mask=somewhere)
            )
        for name in sorted(group.forbidden):
            has_trait = self._trait_mask(frozenset({name}))
            on_root, somewhere = has_trait[self.roots], self._host_mask(has_trait) | self._borrower_mask(has_trait)
            refused = on_root & root_decides
            self.undecided |= somewhere & ~refused
            self.checks.append(StaticCheck(about="trait", reason=f"have forbidden trait {name}", mask=~refused))

    def _borrower_mask(self, providers: Mask) -> Mask:
        """Return the hosts that can use one of these providers by sharing: bool, shape (hosts,)."""
        found = np.zeros(len(self.state.hosts), dtype=np.bool_)
        for row in self.state.sharing_rows():
            if providers[row]:
                found |= self._host_mask(self.state.membership.mask_of_any(self.state.membership.labels_of(row)))
        return found

    def _add_suffixed_groups(self, groups: list[ResourceGroup], plain: list[ResourceGroup]) -> None:
        state, isolate = self.state, self.query.group_policy == "isolate"
        families: dict[tuple[object, ...], list[ResourceGroup]] = {}
        for group in groups:
            families.setdefault(group.requirements, []).append(group)
        seen_providers: Mask = np.zeros(len(state.providers), dtype=np.bool_)
        sharing = state.sharing_rows()
        seen_classes = {name for group in plain for name in group.resources}
        counts_exactly = not self.query.same_subtree and all(group.resources for group in groups)
        for members in families.values():
            group = members[0]
            if not group.resources:
                continue
            providers = self._providers_for(group)
            overlaps = bool(seen_classes & set(group.resources)) or (
                isolate and bool((seen_providers & providers).any())
            )
            has_sharing_provider = bool(providers[sharing].any())
            several = len(group.resources) > 1 and len(members) > 1 and not isolate
            bounded = len(members) > 1 and not isolate and not self._has_plain_units(group)
            if overlaps or several or bounded or has_sharing_provider:
                counts_exactly = False
            self.shares |= has_sharing_provider
            seen_classes |= set(group.resources)
            seen_providers |= providers
            self.checks.append(self._build_group_check(members, providers, is_isolated=isolate or len(members) == 1))
        if self.shares and not counts_exactly:
            # A provider outside the tree may serve a group, so counting inside the tree refuses too much.
            self.checks = [check for check in self.checks if not isinstance(check, GroupCheck)]
        if not counts_exactly:
            self.undecided[:] = True

    def _has_plain_units(self, group: ResourceGroup) -> bool:
        ids = [self.state.class_ids.id_of(name) for name in group.resources]
        return all(self.state.inventory(class_id).plain_units for class_id in ids if class_id is not None)

    def _providers_for(self, group: ResourceGroup) -> Mask:
        """Return the providers whose labels, classes and units allow a group: bool, shape (providers,)."""
        needs = self.compiled.kinds[self.compiled.kind_of[group.suffix]]
        allowed = label_mask(self.state, needs)
        for class_id, amount in needs.resources:
            columns = self.state.inventory(class_id)
            allowed &= (columns.total.view > 0) & columns.unit_mask(amount)
        return allowed

    def _build_group_check(self, members: list[ResourceGroup], providers: Mask, *, is_isolated: bool) -> GroupCheck:
        state, group = self.state, members[0]
        rows = np.flatnonzero(providers & (self.host_of >= 0))
        order = np.argsort(self.host_of[rows], kind="stable")
        rows = rows[order]
        host_of = self.host_of[rows]
        hosts, starts = np.unique(host_of, return_index=True)
        amounts = []
        for name, amount in sorted(group.resources.items()):
            class_id = state.class_ids.id_of(name)
            assert class_id is not None, name
            amounts.append((class_id, amount))
        amounts_text = " and ".join(amount_text(name, amount) for name, amount in sorted(group.resources.items()))
        labels = "".join(f" with {' or '.join(sorted(names))}" for names in group.required)
        where = "one provider" if len(members) == 1 else f"{len(members)} providers"
        whole: Mask | None = None
        if len(amounts) == 1:
            has_rows: Mask = np.zeros(len(state.hosts), dtype=np.bool_)
            has_rows[hosts] = True
            offering = (state.inventory(amounts[0][0]).total.view > 0) & (self.host_of >= 0)
            if np.count_nonzero(has_rows[self.host_of[offering]]) == len(rows):
                whole = has_rows
        return GroupCheck(
            reason=f"lack {amounts_text} or more on {where}{labels}",
            suffixes=tuple(member.suffix for member in members),
            group_count=len(members),
            is_isolated=is_isolated,
            amounts=tuple(amounts),
            rows=rows,
            starts=starts,
            hosts=hosts,
            whole=whole,
        )
