"""Fills an empty state with the tables of a database, column by column."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from roost.engine.columns.apply import apply
from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, Mask, Rows
from roost.engine.fill.claim_fill import ClaimFill
from roost.engine.fill.host_totals import recount_all_hosts
from roost.engine.fill.table_columns import (
    ClaimColumns,
    HostColumns,
    InventoryColumns,
    LabelColumns,
    Part,
    ProviderColumns,
)
from roost.engine.fill.uuid_text import uuid_texts
from roost.model.host import HostFacts
from roost.model.writes import CLASS_BITS, CLASS_MASK, GENERATION_SLOT

_Value = TypeVar("_Value")
_facts = msgspec.msgpack.Decoder(HostFacts)


def fill(state: State, parts: Iterable[Part]) -> None:
    """Fill an empty state with a whole database; the result equals that of ``apply`` with the same rows as writes.

    Args:
        state: without providers and hosts.
        parts: in the order of the tables in ``store.dump``; all providers come before inventories and labels.

    Raises:
        KeyError: a row refers to a missing provider or host.
        ValueError: a value is malformed.
    """
    filling = StateFill(state)
    for part in parts:
        filling.add(part)
    filling.finish()


class StateFill:
    """One pass over the parts of a database."""

    def __init__(self, state: State) -> None:
        assert not len(state.providers), "only an empty state can be filled"
        assert not len(state.hosts), "only an empty state can be filled"
        self._state = state
        self._ids: Amounts = np.empty(0, dtype=np.int64)  # of all providers, rising
        self._facts: dict[bytes, HostFacts] = {}  # equal facts are one object
        self._generations: list[tuple[Rows, Amounts]] = []
        self._with_inventory: list[Rows] = []
        self._claims = ClaimFill(state, self._rows_of)

    def add(self, part: Part) -> None:
        """Add the next part."""
        match part:
            case ProviderColumns():
                self._add_providers(part)
            case InventoryColumns():
                self._add_inventories(part)
            case LabelColumns():
                self._add_labels(part)
            case HostColumns():
                self._add_hosts(part)
            case ClaimColumns():
                self._claims.add(part)
            case _:
                apply(self._state, part)

    def finish(self) -> None:
        """Compute what follows from all parts together."""
        state = self._state
        state.providers.trim()
        state.hosts.trim()
        has_inventory: Mask = np.zeros(len(state.providers), dtype=np.bool_)
        for rows in self._with_inventory:
            has_inventory[rows] = True
        state.providers.generation.data[: len(state.providers)] += has_inventory
        state.inventory_version += int(np.count_nonzero(has_inventory))
        for rows, generations in self._generations:
            state.providers.generation.data[rows] = generations
        recount_all_hosts(state)
        state.forget_derived()
        state.changes.touch_all()

    def _add_providers(self, part: ProviderColumns) -> None:
        state, providers = self._state, self._state.providers
        first = len(providers)
        providers.fill(
            part.ids,
            uuids=uuid_texts(part.uuids),
            names=part.names,
            parent_ids=part.parent_ids,
            versions=part.versions,
        )
        providers.touched_s.data[first : len(providers)] = state.now_s
        state.traits.grow(len(providers))
        state.membership.grow(len(providers))

    def _rows_of(self, provider_ids: Amounts) -> Rows:
        """Return the rows of providers."""
        if len(self._ids) != len(self._state.providers):
            self._ids = np.array(self._state.providers.ids, dtype=np.int64)
        rows: Rows = np.searchsorted(self._ids, provider_ids)
        is_present = rows < len(self._ids)
        is_present[is_present] = self._ids[rows[is_present]] == provider_ids[is_present]
        if not is_present.all():
            raise KeyError(int(provider_ids[~is_present][0]))
        return rows

    def _add_inventories(self, part: InventoryColumns) -> None:
        rows, class_ids = self._rows_of(part.ids >> CLASS_BITS), part.ids & CLASS_MASK
        is_generation: Mask = class_ids == GENERATION_SLOT
        self._generations.append((rows[is_generation], part.used[is_generation]))
        self._with_inventory.append(rows[~is_generation])
        found, firsts = np.unique(class_ids, return_index=True)
        for class_id in found[np.argsort(firsts)].tolist():  # New classes come in the order of their first inventory.
            if class_id != GENERATION_SLOT:
                chosen = class_ids == class_id
                self._state.inventory(class_id).fill(
                    rows[chosen],
                    total=part.total[chosen],
                    reserved=part.reserved[chosen],
                    units=(part.min_unit[chosen], part.max_unit[chosen], part.step_size[chosen]),
                    ratio=part.ratio[chosen],
                )

    def _add_labels(self, part: LabelColumns) -> None:
        state = self._state
        rows = self._rows_of(part.provider_ids)
        labels = state.traits if part.kind == "traits" else state.membership
        labelled = labels.fill(rows, part.label_ids)
        state.providers.generation.data[labelled] += 1

    def _add_hosts(self, part: HostColumns) -> None:
        row_of_id, decode, known = self._state.providers.row_of_id, _facts.decode, self._facts
        facts = []
        for body in part.facts:
            one = known.get(body)
            if one is None:
                one = known[body] = decode(body)
            facts.append(one)
        provider_rows = [row_of_id[number] for number in part.provider_ids]
        provider_ids, names = self._state.providers.ids, self._state.providers.names
        # Most nodes have the name of their provider, most hosts that of their node, and the hosts of a flat fleet the
        # numbers of their providers: let equal values be one object.
        nodes = _share(part.nodes, [names[row] for row in provider_rows])
        self._state.hosts.fill(
            _share(part.ids, [provider_ids[row] for row in provider_rows]),
            provider_rows=provider_rows,
            hosts=_share(part.hosts, nodes),
            nodes=nodes,
            facts=facts,
            versions=part.versions,
        )


def _share(values: Sequence[_Value], others: Sequence[_Value]) -> list[_Value]:
    """Return values, each replaced by the other one at its place if both are equal."""
    return [other if value == other else value for value, other in zip(values, others, strict=True)]
