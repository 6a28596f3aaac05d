"""Feasibility of a request on each host: checks with reasons, judged in passes over columns or host by host.

The exact answer is a search of the host's tree (``roost.engine.candidates.search``). It is rarely necessary: counting
free amounts is exact, too, if every resource group has classes of its own. Only hosts that counting cannot decide are
searched. ``roost.engine.feasibility.query_checks`` builds the checks of a query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from roost.engine.candidates.query import CompiledQuery
from roost.engine.candidates.search import has_candidate
from roost.engine.columns.state import State
from roost.engine.columns.types import NO_INVENTORY, Amounts, Cells, Mask, Rows
from roost.model.placement.remote import RemoteHost


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StaticCheck:
    """A check with constant verdicts until labels, inventories or trees change."""

    about: Literal["trait", "aggregate", "tree", "group", "class", "refusal"]  # the part of the request
    reason: str
    mask: Mask  # bool, shape (hosts,)
    rule: str = ""  # origin of the check; empty: the request itself


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AmountCheck:
    """One class of the unsuffixed group: a provider of the tree, or a connected sharing provider, has the amount."""

    reason: str
    class_id: int
    amount: int
    units: Mask | None  # bool, shape (hosts,): unit bounds allow it; None: no bounds
    lenders: tuple[tuple[int, Mask], ...]  # sharing provider row, hosts it serves

    def judge_all(self, state: State, out: Mask) -> Mask:
        """Judge every host: bool, shape (hosts,), in ``out``."""
        np.greater_equal(state.best_free(self.class_id), self.amount, out=out)
        if self.units is not None:
            out &= self.units
        columns = state.classes[self.class_id] if self.lenders else None
        for row, served in self.lenders:
            if columns is not None and columns.can_take(row, self.amount):
                out |= served
        return out

    def judge_rows(self, state: State, hosts: Rows) -> Mask:
        """Judge the hosts of some rows: bool, shape (hosts,)."""
        passes: Mask = state.best_free(self.class_id)[hosts] >= self.amount
        if self.units is not None:
            passes &= self.units[hosts]
        columns = state.classes[self.class_id] if self.lenders else None
        for row, served in self.lenders:
            if columns is not None and columns.can_take(row, self.amount):
                passes |= served[hosts]
        return passes

    def judge_host(self, state: State, host: int) -> bool:
        """Judge one host."""
        if state.best_free(self.class_id).item(host) >= self.amount and (self.units is None or self.units[host]):
            return True
        columns = state.classes[self.class_id] if self.lenders else None
        return any(columns.can_take(row, self.amount) and served[host] for row, served in self.lenders if columns)

    def largest_free(self, state: State) -> Amounts:
        """Return the largest free amount on one provider for each host, including lenders.

        Returns:
            int64, shape (hosts,), in the unit of the class; ``NO_INVENTORY`` without a provider of it.
        """
        found = state.best_free(self.class_id).copy()
        for row, served in self.lenders:
            np.maximum(found, state.classes[self.class_id].free.each[row], out=found, where=served)
        return found

    def largest_unit(self, state: State) -> Amounts:
        """Return the largest permitted allocation on one provider for each host, including lenders.

        Returns:
            int64, shape (hosts,), in the unit of the class; ``NO_INVENTORY`` without a provider of it.
        """
        columns = state.inventory(self.class_id)
        host_of, _ = state.host_trees()
        offering = np.flatnonzero((host_of >= 0) & (columns.total.view > 0))
        found = np.full(len(state.hosts), NO_INVENTORY, dtype=np.int64)
        np.maximum.at(found, host_of[offering], columns.max_unit.view[offering])
        for row, served in self.lenders:
            np.maximum(found, columns.max_unit.each[row], out=found, where=served)
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupCheck:
    """Equal groups with a suffix: the tree has providers for all of them, one or several groups per provider."""

    reason: str
    suffixes: tuple[str, ...]  # of the groups
    group_count: int
    is_isolated: bool
    amounts: tuple[tuple[int, int], ...]  # class id, amount
    rows: Rows  # provider rows with permitted labels and units, by host
    starts: Rows  # position of each host's first row
    hosts: Rows  # host row of each start, ascending
    # bool, shape (hosts,): the hosts of ``hosts``, if the groups have one class and ``rows`` has all their providers
    # of it, so that the largest free amount decides about one group; else None.
    whole: Mask | None

    def judge_all(self, state: State, out: Mask) -> Mask:
        """Judge every host: bool, shape (hosts,), in ``out``."""
        if self.whole is not None and self.group_count == 1:
            ((class_id, amount),) = self.amounts
            np.greater_equal(state.best_free(class_id), amount, out=out)
            out &= self.whole
            return out
        out[:] = False
        if len(self.rows):
            out[self.hosts] = self.count_served(state) >= self.group_count
        return out

    def count_served(self, state: State) -> Amounts:
        """Count the groups that each of ``hosts`` can serve: int64, shape (len(hosts),); ``hosts`` is not empty."""
        count: Amounts | None = None
        for class_id, amount in self.amounts:
            free = state.classes[class_id].free.view.take(self.rows)
            here = (free >= amount).astype(np.int64) if self.is_isolated else np.maximum(free // amount, 0)
            count = here if count is None else np.minimum(count, here)
        assert count is not None
        served: Amounts = np.add.reduceat(count, self.starts)
        return served

    def find_rows(self, host: int) -> list[int]:
        """Find the provider rows of one host with permitted labels and units, in row order."""
        at = int(self.hosts.searchsorted(host))
        if at == len(self.hosts) or self.hosts.item(at) != host:
            return []
        end = self.starts.item(at + 1) if at + 1 < len(self.starts) else len(self.rows)
        found: list[int] = self.rows[self.starts.item(at) : end].tolist()
        return found

    def count_by_host(self, state: State) -> Amounts:
        """Count the groups that each host can serve: int64, shape (hosts,)."""
        found: Amounts = np.zeros(len(state.hosts), dtype=np.int64)
        if len(self.rows):
            found[self.hosts] = self.count_served(state)
        return found

    def judge_rows(self, state: State, hosts: Rows) -> Mask:
        """Judge the hosts of some rows: bool, shape (hosts,)."""
        if self.whole is not None and self.group_count == 1:
            ((class_id, amount),) = self.amounts
            passes: Mask = state.best_free(class_id)[hosts] >= amount
            return passes & self.whole[hosts]
        return np.array([self.judge_host(state, host) for host in hosts.tolist()], dtype=np.bool_)

    def judge_host(self, state: State, host: int) -> bool:
        """Judge one host."""
        missing, classes = self.group_count, state.classes
        if self.whole is not None:
            ((class_id, amount),) = self.amounts
            if not self.whole.item(host) or state.best_free_cells(class_id)[host] < amount:
                return False
            if missing == 1:
                return True
        if len(self.amounts) == 1 and (self.is_isolated or missing == 1):
            ((class_id, amount),) = self.amounts
            free = classes[class_id].free.each
            for row in self.find_rows(host):
                if free[row] >= amount:
                    missing -= 1
                    if not missing:
                        return True
            return False
        for row in self.find_rows(host):
            # The free amount is below 0 where a capacity shrank under its use.
            fits = max(min(classes[class_id].free.each[row] // amount for class_id, amount in self.amounts), 0)
            missing -= min(fits, 1) if self.is_isolated else fits
            if missing <= 0:
                return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EitherCheck:
    """Two ways to serve a request: all checks of one way must pass."""

    reason: str
    first: tuple[StaticCheck | AmountCheck | GroupCheck, ...]
    second: tuple[StaticCheck | AmountCheck | GroupCheck, ...]

    def judge_all(self, state: State, out: Mask) -> Mask:
        """Judge every host: bool, shape (hosts,), in ``out``."""
        np.logical_or(self._judge_way(state, self.first), self._judge_way(state, self.second), out=out)
        return out

    @staticmethod
    def _judge_way(state: State, checks: tuple[StaticCheck | AmountCheck | GroupCheck, ...]) -> Mask:
        found: Mask = np.ones(len(state.hosts), dtype=np.bool_)
        for check in checks:
            found &= check.mask if isinstance(check, StaticCheck) else check.judge_all(state, np.empty_like(found))
        return found

    def judge_host(self, state: State, host: int) -> bool:
        """Judge one host."""
        return any(all(_passes(check, state, host) for check in checks) for checks in (self.first, self.second))


Check = StaticCheck | AmountCheck | GroupCheck | EitherCheck


def _passes(check: Check, state: State, host: int) -> bool:
    return check.mask.item(host) if isinstance(check, StaticCheck) else check.judge_host(state, host)


class Feasibility:
    """A query compiled against a state, valid until the state's ``changes.epoch`` moves.

    ``checks`` are judged in order; each has a reason. If counting cannot decide some hosts, the search follows as
    the last check.
    """

    __slots__ = (
        "checks",
        "compiled",
        "flat_amounts",
        "flat_resources",
        "is_exact",
        "is_searched",
        "lender_hosts",
        "reasons",
        "remote_hosts",
        "rules",
        "shares",
        "undecided",
        "ways",
    )

    def __init__(
        self,
        state: State,
        *,
        checks: Sequence[Check],
        compiled: CompiledQuery | None = None,
        undecided: Mask | None = None,
        shares: bool = False,
    ) -> None:
        self.checks = list(checks)
        self.compiled = compiled
        self.undecided: Mask = np.zeros(len(state.hosts), dtype=np.bool_) if undecided is None else undecided
        self.is_exact = undecided is None or not undecided.any()
        self.reasons = [check.reason for check in checks]
        self.rules = [check.rule if isinstance(check, StaticCheck) else "" for check in checks]  # by check; empty: none
        if not self.is_exact:
            self.reasons.append("cannot serve all resource groups together")
            self.rules.append("")
        self.shares = shares  # whether a verdict may depend on providers outside the host's tree
        # Hosts with a sharing provider in their tree: a change of such a host may change the verdict on any host.
        self.lender_hosts = frozenset(_hosts_of(state, state.sharing_rows()) if shares else ())
        # The amounts of one instance on a tree of one provider, first by class id, then by class name.
        self.flat_amounts: list[tuple[int, int]] | None = None
        self.flat_resources: dict[str, int] = {}
        # Alternative ways to serve the request; each host uses the first that passes.
        self.ways: tuple[Feasibility, ...] = (self,)
        # The first candidates of a remote Placement, by host row.
        self.remote_hosts: Mapping[int, RemoteHost] | None = None
        self.is_searched = True  # False: the hosts have no providers, so only aggregates are checked

    def __len__(self) -> int:
        return len(self.reasons)

    def judge_all(self, state: State, out: list[Mask], searched: dict[int, bool]) -> list[Mask]:
        """Judge every host.

        Args:
            out: one bool array of shape (hosts,) per check, for the verdicts.
            searched: cache of search verdicts by host row.

        Returns:
            One verdict per check, in order. The verdict of the search is valid only where all others passed.
        """
        found: list[Mask] = []
        for check, mask in zip(self.checks, out, strict=False):
            found.append(check.mask if isinstance(check, StaticCheck) else check.judge_all(state, mask))
        if self.is_exact:
            return found
        to_search = self.undecided.copy()
        for mask in found:
            to_search &= mask
        verdict = out[len(found)]
        verdict[:] = True
        for host in np.flatnonzero(to_search).tolist():
            verdict[host] = self._search(state, host, searched)
        found.append(verdict)
        return found

    def _search(self, state: State, host: int, searched: dict[int, bool]) -> bool:
        found = searched.get(host)
        if found is None:
            root = state.hosts.provider_row.each[host]
            compiled = [way.compiled for way in self.ways if way.compiled is not None]
            assert compiled
            found = searched[host] = any(has_candidate(state, each, root) for each in compiled)
        return found

    def static_masks(self) -> list[Mask]:
        """Return the constant verdicts."""
        return [check.mask for check in self.checks if isinstance(check, StaticCheck)]

    def find_limits(self, state: State) -> list[tuple[int, Cells, int]] | None:
        """Find the checks with changing verdicts: number of the check, free amount by host row, requested amount.

        Returns:
            None if other verdicts can change, too: of several groups, sharing providers or a search.
        """
        found = []
        for at, check in enumerate(self.checks):
            if isinstance(check, EitherCheck) or not self.is_exact:
                return None
            if isinstance(check, GroupCheck):
                if check.whole is None or check.group_count > 1:
                    return None
                ((class_id, amount),) = check.amounts
                found.append((at, state.best_free_cells(class_id), amount))
            if isinstance(check, AmountCheck):
                if check.lenders:
                    return None
                found.append((at, state.best_free_cells(check.class_id), check.amount))
        return found

    def judge_rows(self, state: State, hosts: Rows) -> Amounts:
        """Return the first refusing check of each host, or ``len(self)``: int64, shape (hosts,)."""
        found = np.zeros(len(hosts), dtype=np.int64)
        for at, check in enumerate(self.checks):
            if isinstance(check, StaticCheck):
                passes = check.mask[hosts]
            elif isinstance(check, (AmountCheck, GroupCheck)):
                passes = check.judge_rows(state, hosts)
            else:
                passes = np.array([check.judge_host(state, host) for host in hosts.tolist()], dtype=np.bool_)
            found[(found == at) & passes] = at + 1
        if not self.is_exact:
            for at in np.flatnonzero(found == len(self.checks)).tolist():
                found[at] = self.judge_host(state, int(hosts[at]))
        return found

    def judge_host(self, state: State, host: int) -> int:
        """Return the first check that refuses a host, or ``len(self)``."""
        for at, check in enumerate(self.checks):
            if not _passes(check, state, host):
                return at
        if self.is_exact or not self.undecided[host]:
            return len(self.reasons)
        return len(self.reasons) if self._search(state, host, {}) else len(self.reasons) - 1


def combine_either(state: State, first: Feasibility, second: Feasibility, *, reason: str) -> Feasibility:
    """Combine the feasibility of two queries: a host needs candidates of only one query.

    Args:
        first, second: the feasibility of each query; a host with candidates of both uses one of the first query.
        reason: for hosts refused by checks that the queries do not share.
    """
    common = [check for check in first.checks if any(_are_alike(check, other) for other in second.checks)]
    rests = [
        tuple(
            check
            for check in way.checks
            if not isinstance(check, EitherCheck) and not any(_are_alike(check, other) for other in common)
        )
        for way in (first, second)
    ]
    checks = [*common, EitherCheck(reason=reason, first=rests[0], second=rests[1])] if all(rests) else common
    fit = Feasibility(
        state,
        checks=checks,
        compiled=first.compiled,
        undecided=first.undecided | second.undecided,
        shares=first.shares or second.shares,
    )
    fit.ways = (first, second)
    return fit


def _are_alike(check: Check, other: Check) -> bool:
    """Return whether two checks always judge alike, regardless of free amounts."""
    if isinstance(check, StaticCheck) and isinstance(other, StaticCheck):
        return check.reason == other.reason and bool(np.array_equal(check.mask, other.mask))
    if isinstance(check, AmountCheck) and isinstance(other, AmountCheck):
        return (check.class_id, check.amount, len(check.lenders)) == (other.class_id, other.amount, len(other.lenders))
    if isinstance(check, GroupCheck) and isinstance(other, GroupCheck):
        return check.suffixes == other.suffixes and bool(np.array_equal(check.rows, other.rows))
    return False


def _hosts_of(state: State, rows: list[int]) -> list[int]:
    roots = [state.providers.root.each[row] for row in rows]
    return [state.hosts.row_of_root[root] for root in roots if root in state.hosts.row_of_root]
