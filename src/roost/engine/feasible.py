"""Which hosts can hold a request at all: one verdict a host, made in passes over columns.

The exact answer is a search of the host's tree (``roost.engine.search``). Most requests on most trees do
not need it: where every resource group has classes of its own, counting is exact. A host that counting
cannot decide is searched.
"""

from dataclasses import dataclass

import numpy as np

from roost.engine.capacity import ClassColumns
from roost.engine.query import Compiled
from roost.engine.search import has_candidate
from roost.engine.state import State
from roost.engine.types import Amounts, Cells, Mask, Rows
from roost.model.names import amount_text
from roost.model.request import CandidateQuery, ResourceGroup


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Label:
    """A verdict that holds until labels, inventories or trees change."""

    reason: str
    mask: Mask  # bool, shape (hosts,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Amount:
    """One class of the unsuffixed group: some provider of the tree, or one that shares with it, has it."""

    reason: str
    class_id: int
    amount: int
    units: Mask | None  # bool, shape (hosts,): unit bounds allow it; None: they allow anything
    lenders: tuple[tuple[int, Mask], ...]  # sharing provider row, hosts it serves

    def all(self, state: State, out: Mask) -> Mask:
        """Judge every host: bool, shape (hosts,), in ``out``."""
        np.greater_equal(state.best_free(self.class_id), self.amount, out=out)
        if self.units is not None:
            out &= self.units
        columns = state.classes[self.class_id] if self.lenders else None
        for row, served in self.lenders:
            if columns is not None and columns.can_take(row, self.amount):
                out |= served
        return out

    def some(self, state: State, hosts: Rows) -> Mask:
        """Judge some hosts: bool, shape (hosts,)."""
        passes: Mask = state.best_free(self.class_id)[hosts] >= self.amount
        if self.units is not None:
            passes &= self.units[hosts]
        columns = state.classes[self.class_id] if self.lenders else None
        for row, served in self.lenders:
            if columns is not None and columns.can_take(row, self.amount):
                passes |= served[hosts]
        return passes

    def one(self, state: State, host: int) -> bool:
        """Judge one host."""
        if state.best_free(self.class_id).item(host) >= self.amount and (self.units is None or self.units[host]):
            return True
        columns = state.classes[self.class_id] if self.lenders else None
        return any(columns.can_take(row, self.amount) and served[host] for row, served in self.lenders if columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """Equal groups with a suffix: enough providers of the tree can serve one each, or several."""

    reason: str
    wanted: int
    is_isolated: bool
    class_ids: tuple[int, ...]
    amounts: tuple[tuple[ClassColumns, int], ...]  # one a class
    rows: Rows  # provider rows whose labels and units allow it, by host
    starts: Rows  # where each host's rows begin
    hosts: Rows  # host row of each start, ascending

    def all(self, out: Mask) -> Mask:
        """Judge every host: bool, shape (hosts,), in ``out``."""
        out[:] = False
        if len(self.rows) == 0:
            return out
        count: Amounts | None = None
        for columns, amount in self.amounts:
            free = columns.free.view.take(self.rows)
            here = (free >= amount).astype(np.int64) if self.is_isolated else np.maximum(free // amount, 0)
            count = here if count is None else np.minimum(count, here)
        assert count is not None
        out[self.hosts] = np.add.reduceat(count, self.starts) >= self.wanted
        return out

    def rows_on(self, host: int) -> list[int]:
        """Return the provider rows of one host that labels and units allow, in row order."""
        at = int(self.hosts.searchsorted(host))
        if at == len(self.hosts) or self.hosts.item(at) != host:
            return []
        end = self.starts.item(at + 1) if at + 1 < len(self.starts) else len(self.rows)
        found: list[int] = self.rows[self.starts.item(at) : end].tolist()
        return found

    def one(self, host: int) -> bool:
        """Judge one host."""
        wanted = self.wanted
        for row in self.rows_on(host):
            # What is free lies below 0 where a capacity shrank under its use.
            fits = max(min(columns.free.each[row] // amount for columns, amount in self.amounts), 0)
            wanted -= min(fits, 1) if self.is_isolated else fits
            if wanted <= 0:
                return True
        return False


class Feasibility:
    """A query compiled against a state, good until the state's ``changes.epoch`` moves.

    ``checks`` are judged in order and each owns a reason. Behind them comes one check more if there is any
    host that counting cannot decide: the search.
    """

    __slots__ = (
        "checks", "compiled", "flat_amounts", "flat_resources", "is_exact", "lender_hosts", "reasons", "shares",
        "undecided",
    )  # fmt: skip

    def __init__(
        self, state: State, *, checks: "list[Label | Amount | Family]", compiled: Compiled | None = None,
        undecided: Mask | None = None, shares: bool = False,
    ) -> None:  # fmt: skip
        self.checks = checks
        self.compiled = compiled
        self.undecided: Mask = np.zeros(len(state.hosts), dtype=np.bool_) if undecided is None else undecided
        self.is_exact = not self.undecided.any()
        self.reasons = [check.reason for check in checks]
        if not self.is_exact:
            self.reasons.append("cannot serve all resource groups together")
        self.shares = shares  # whether use outside a host's tree matters
        # Hosts whose trees share with others: when one of them is touched, any verdict may be another.
        self.lender_hosts = frozenset(_hosts_of(state, state.sharing_rows()) if shares else ())
        # Where a tree is its root alone, the root holds everything: class id and amount, and the same by name.
        self.flat_amounts: list[tuple[int, int]] | None = None
        self.flat_resources: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.reasons)

    def all(self, state: State, out: list[Mask], searched: dict[int, bool]) -> list[Mask]:
        """Judge every host.

        Args:
            out: one bool array of shape (hosts,) a check, to write verdicts to.
            searched: verdicts of the search by host row, filled and used.

        Returns:
            One verdict a check, in order. That of the search is only right where all others passed.
        """
        found: list[Mask] = []
        for check, mask in zip(self.checks, out, strict=False):
            if isinstance(check, Label):
                found.append(check.mask)
            elif isinstance(check, Amount):
                found.append(check.all(state, mask))
            else:
                found.append(check.all(mask))
        if self.is_exact:
            return found
        asked = self.undecided.copy()
        for mask in found:
            asked &= mask
        verdict = out[len(found)]
        verdict[:] = True
        for host in np.flatnonzero(asked).tolist():
            verdict[host] = self._search(state, host, searched)
        found.append(verdict)
        return found

    def _search(self, state: State, host: int, searched: dict[int, bool]) -> bool:
        found = searched.get(host)
        if found is None:
            assert self.compiled is not None
            root = state.hosts.provider_row.each[host]
            found = searched[host] = has_candidate(state, self.compiled, root)
        return found

    def lasting(self) -> list[Mask]:
        """Return the verdicts that hold as long as this does."""
        return [check.mask for check in self.checks if isinstance(check, Label)]

    def amounts(self, state: State) -> list[tuple[int, Cells, int]] | None:
        """Return what alone can refuse a host later that passes now: check, free amount by host row, amount asked.

        Returns:
            None where that is not all: where groups, sharing providers or a search have a say.
        """
        found = []
        for at, check in enumerate(self.checks):
            if isinstance(check, Family) or not self.is_exact:
                return None
            if isinstance(check, Amount):
                if check.lenders:
                    return None
                found.append((at, state.best_free_each(check.class_id), check.amount))
        return found

    def some(self, state: State, hosts: Rows) -> Amounts:
        """Return, for some hosts, the first check that refuses each, or ``len(self)``: int64, shape (hosts,)."""
        found = np.zeros(len(hosts), dtype=np.int64)
        for at, check in enumerate(self.checks):
            if isinstance(check, Label):
                passes = check.mask[hosts]
            elif isinstance(check, Amount):
                passes = check.some(state, hosts)
            else:
                passes = np.array([check.one(host) for host in hosts.tolist()], dtype=np.bool_)
            found[(found == at) & passes] = at + 1
        if not self.is_exact:
            for at in np.flatnonzero(found == len(self.checks)).tolist():
                found[at] = self.one(state, int(hosts[at]))
        return found

    def one(self, state: State, host: int) -> int:
        """Return the first check that refuses a host, or ``len(self)`` if none does."""
        for at, check in enumerate(self.checks):
            if isinstance(check, Label):
                passes = check.mask.item(host)
            elif isinstance(check, Amount):
                passes = check.one(state, host)
            else:
                passes = check.one(host)
            if not passes:
                return at
        if self.is_exact or not self.undecided[host]:
            return len(self.reasons)
        return len(self.reasons) if self._search(state, host, {}) else len(self.reasons) - 1


def feasibility(state: State, query: CandidateQuery, compiled: Compiled) -> Feasibility:
    """Compile a query, whose names are all known, against a state."""
    builder = _Builder(state, query)
    if not compiled.is_possible:
        nobody: Mask = np.zeros(len(state.hosts), dtype=np.bool_)
        builder.checks.append(Label(reason="cannot serve a resource group that asks no resources", mask=nobody))
    fit = Feasibility(
        state, checks=builder.checks, compiled=compiled, undecided=builder.undecided & state.hosts.alive.view,
        shares=builder.shares,
    )  # fmt: skip
    asking = [group for group in query.groups if group.resources or group.suffix]
    if not fit.shares and [group.suffix for group in asking] == [""]:
        fit.flat_amounts = [(check.class_id, check.amount) for check in fit.checks if isinstance(check, Amount)]
        fit.flat_resources = dict(asking[0].resources)
    return fit


def hopeless(state: State, reasons: list[str]) -> Feasibility:
    """Return what is left of a query that names what no provider ever had: every host lacks it."""
    nobody: Mask = np.zeros(len(state.hosts), dtype=np.bool_)
    return Feasibility(state, checks=[Label(reason=reason, mask=nobody) for reason in reasons])


def _hosts_of(state: State, rows: list[int]) -> list[int]:
    roots = [state.providers.root.each[row] for row in rows]
    return [state.hosts.row_of_root[root] for root in roots if root in state.hosts.row_of_root]


class _Builder:
    """Turns a query into checks, and says which hosts they cannot decide."""

    def __init__(self, state: State, query: CandidateQuery) -> None:
        self.state = state
        self.query = query
        self.roots: Rows = state.hosts.provider_row.view
        self.host_of, self.nested = state.host_trees()
        self.checks: list[Label | Amount | Family] = []
        self.undecided: Mask = np.zeros(len(state.hosts), dtype=np.bool_)
        self.shares = False
        self._root_labels()
        for group in query.groups:
            self._tree(group)
        plain = [group for group in query.groups if group.suffix == "" and group.resources]
        suffixed = [group for group in query.groups if group.suffix != ""]
        for group in plain:
            self._unsuffixed(group)
        if suffixed:
            self._suffixed(suffixed, plain)

    def _trait_masks(self, names: frozenset[str]) -> Mask:
        known = [trait for name in sorted(names) if (trait := self.state.trait_ids.id_of(name)) is not None]
        return self.state.traits.wearing_any(known)

    def _aggregate_masks(self, uuids: frozenset[str]) -> Mask:
        known = [each for name in sorted(uuids) if (each := self.state.aggregates.id_of(name)) is not None]
        return self.state.membership.wearing_any(known)

    def _any_in_tree(self, providers: Mask) -> Mask:
        """Return the hosts with at least one of these providers in their tree: bool, shape (hosts,)."""
        found = np.zeros(len(self.state.hosts), dtype=np.bool_)
        hosts = self.host_of[providers]
        found[hosts[hosts >= 0]] = True
        return found

    def _root_labels(self) -> None:
        for name in sorted(self.query.root_required):
            self.checks.append(
                Label(reason=f"lack trait {name}", mask=self._trait_masks(frozenset({name}))[self.roots])
            )
        for name in sorted(self.query.root_forbidden):
            worn = self._trait_masks(frozenset({name}))[self.roots]
            self.checks.append(Label(reason=f"have forbidden trait {name}", mask=~worn))

    def _tree(self, group: ResourceGroup) -> None:
        if group.in_tree is None:
            return
        row = self.state.providers.row_of_uuid.get(group.in_tree)
        root = -1 if row is None else self.state.providers.root.each[row]
        if group.suffix and any(self.state.providers.root.each[each] == root for each in self.state.sharing_rows()):
            # A provider of that tree may serve the group in other trees, with which it shares.
            self.undecided[:] = True
            return
        self.checks.append(Label(reason="are not in the tree asked for", mask=self.roots == root))

    def _lenders(self, class_id: int, group: ResourceGroup) -> tuple[tuple[int, Mask], ...]:
        if group.in_tree is not None:
            return ()
        found = []
        for row in self.state.sharing_rows():
            if row not in self.state.inventory(class_id).holders:
                continue
            reached = self.state.membership.wearing_any(self.state.membership.labels_of(row))
            found.append((row, self._any_in_tree(reached)))
        return tuple(found)

    def _unsuffixed(self, group: ResourceGroup) -> None:
        """Add the checks of the group that may be spread over a tree.

        Labels that sit on the root decide alone where the tree is the root alone, and also where the root
        must take part because it alone offers one of the classes.
        """
        state = self.state
        takes_part = ~self.nested
        amounts = []
        lent = np.zeros(len(state.hosts), dtype=np.bool_)
        for name, amount in sorted(group.resources.items()):
            class_id = state.class_ids.id_of(name)
            assert class_id is not None, name
            columns = state.inventory(class_id)
            offering = columns.total.view > 0
            hosts = self.host_of[offering]
            counts = np.bincount(hosts[hosts >= 0], minlength=len(state.hosts))
            lenders = self._lenders(class_id, group)
            self.shares |= bool(lenders)
            reached = np.zeros(len(state.hosts), dtype=np.bool_)
            for _, served in lenders:
                reached |= served
            lent |= reached
            takes_part |= (counts == 1) & offering[self.roots] & ~reached
            units = None
            if not columns.plain_units:
                allowed = columns.units(amount)
                units = self._any_in_tree(offering & allowed)
                # Where one provider allows the amount and another has it free, only a search can tell.
                self.undecided |= (counts > 1) & self._any_in_tree(offering & ~allowed)
            reason = f"lack {amount_text(name, amount)} or more"
            amounts.append(Amount(reason=reason, class_id=class_id, amount=amount, units=units, lenders=lenders))
        alone = takes_part & ~lent
        self._labels_of_unsuffixed(group, alone)
        self.checks.extend(amounts)

    def _labels_of_unsuffixed(self, group: ResourceGroup, root_decides: Mask) -> None:
        for wanted in group.member_of:
            member = self._aggregate_masks(wanted)
            on_root = member[self.roots]
            somewhere = self._any_in_tree(member) | self._lent_by(member)
            self.undecided |= somewhere & ~on_root | (on_root & self._lent_by(~member))
            self.checks.append(Label(reason="are not in the aggregates asked for", mask=somewhere | on_root))
        if group.forbidden_aggregates:
            member = self._aggregate_masks(group.forbidden_aggregates)
            on_root = member[self.roots]
            self.undecided |= ~on_root & (self._any_in_tree(member) | self._lent_by(member))
            self.checks.append(Label(reason="are in a forbidden aggregate", mask=~on_root))
        for names in group.required:
            worn = self._trait_masks(names)
            on_root, somewhere = worn[self.roots], self._any_in_tree(worn) | self._lent_by(worn)
            self.undecided |= somewhere & ~(on_root & root_decides)
            self.checks.append(Label(reason=f"lack trait {' or '.join(sorted(names))}", mask=somewhere))
        for name in sorted(group.forbidden):
            worn = self._trait_masks(frozenset({name}))
            on_root, somewhere = worn[self.roots], self._any_in_tree(worn) | self._lent_by(worn)
            refused = on_root & root_decides
            self.undecided |= somewhere & ~refused
            self.checks.append(Label(reason=f"have forbidden trait {name}", mask=~refused))

    def _lent_by(self, providers: Mask) -> Mask:
        """Return the hosts that one of these providers shares with: bool, shape (hosts,)."""
        found = np.zeros(len(self.state.hosts), dtype=np.bool_)
        for row in self.state.sharing_rows():
            if providers[row]:
                found |= self._any_in_tree(self.state.membership.wearing_any(self.state.membership.labels_of(row)))
        return found

    def _suffixed(self, groups: list[ResourceGroup], plain: list[ResourceGroup]) -> None:
        state, isolate = self.state, self.query.group_policy == "isolate"
        families: dict[tuple[object, ...], list[ResourceGroup]] = {}
        for group in groups:
            key = (
                tuple(sorted(group.resources.items())), group.required, group.forbidden, group.member_of,
                group.forbidden_aggregates, group.in_tree,
            )  # fmt: skip
            families.setdefault(key, []).append(group)
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
            is_lent = bool(providers[sharing].any())
            several = len(group.resources) > 1 and len(members) > 1 and not isolate
            bounded = len(members) > 1 and not isolate and not self._plain(group)
            if overlaps or several or bounded or is_lent:
                counts_exactly = False
            self.shares |= is_lent
            seen_classes |= set(group.resources)
            seen_providers |= providers
            self.checks.append(self._family(members, providers, is_isolated=isolate or len(members) == 1))
        if self.shares and not counts_exactly:
            # A provider outside the tree may serve a group: counting inside the tree refuses too much.
            self.checks = [check for check in self.checks if not isinstance(check, Family)]
        if not counts_exactly:
            self.undecided[:] = True

    def _plain(self, group: ResourceGroup) -> bool:
        ids = [self.state.class_ids.id_of(name) for name in group.resources]
        return all(self.state.inventory(class_id).plain_units for class_id in ids if class_id is not None)

    def _providers_for(self, group: ResourceGroup) -> Mask:
        """Return the providers whose labels, classes and units allow a group: bool, shape (providers,)."""
        state = self.state
        allowed: Mask = state.providers.alive.view.copy()
        for name, amount in group.resources.items():
            class_id = state.class_ids.id_of(name)
            assert class_id is not None, name
            columns = state.inventory(class_id)
            allowed &= (columns.total.view > 0) & columns.units(amount)
        for names in group.required:
            allowed &= self._trait_masks(names)
        if group.forbidden:
            allowed &= ~self._trait_masks(group.forbidden)
        for uuids in group.member_of:
            allowed &= self._aggregate_masks(uuids)
        if group.forbidden_aggregates:
            allowed &= ~self._aggregate_masks(group.forbidden_aggregates)
        return allowed

    def _family(self, members: list[ResourceGroup], providers: Mask, *, is_isolated: bool) -> Family:
        state, group = self.state, members[0]
        rows = np.flatnonzero(providers & (self.host_of >= 0))
        order = np.argsort(self.host_of[rows], kind="stable")
        rows = rows[order]
        host_of = self.host_of[rows]
        hosts, starts = np.unique(host_of, return_index=True)
        class_ids, amounts = [], []
        for name, amount in sorted(group.resources.items()):
            class_id = state.class_ids.id_of(name)
            assert class_id is not None, name
            class_ids.append(class_id)
            amounts.append((state.inventory(class_id), amount))
        asked = " and ".join(amount_text(name, amount) for name, amount in sorted(group.resources.items()))
        labels = "".join(f" with {' or '.join(sorted(names))}" for names in group.required)
        where = "one provider" if len(members) == 1 else f"{len(members)} providers"
        return Family(
            reason=f"lack {asked} or more on {where}{labels}",
            wanted=len(members), is_isolated=is_isolated,
            class_ids=tuple(class_ids), amounts=tuple(amounts),
            rows=rows, starts=starts, hosts=hosts,
        )  # fmt: skip
