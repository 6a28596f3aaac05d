"""The rows that a verdict needs: the databases read them before they judge a batch in Python."""

from collections.abc import Callable, Iterable, Sequence

from roost.model.work.work_rows import Put
from roost.model.writes import (
    CLASS_BITS,
    Claim,
    DropProvider,
    DropSymbol,
    Item,
    PutAggregate,
    PutDocument,
    PutGroup,
    PutHost,
    PutInventories,
    PutMembership,
    PutProvider,
    PutSymbol,
    PutTask,
    PutTraits,
    RaiseGeneration,
    Release,
    RenameSymbol,
    ReuseSymbol,
    Write,
)
from roost.store.rules.commit_rules import slot_of
from roost.store.rules.schema import WORK

Value = int | float | str | bytes | None
Values = tuple[Value, ...]


class Touched:
    """Keys of rows, by table and key columns."""

    def __init__(self) -> None:
        self.lookups: dict[tuple[str, tuple[str, ...]], set[Values]] = {}
        self.stock_ids: set[int] = set()  # single inventories, and generations
        self.place_keys: set[tuple[int, int]] = set()
        self.whole_providers: set[int] = set()  # providers whose inventories are all needed
        self.trees: set[int] = set()  # providers whose whole tree is needed
        self.offered: set[int] = set()  # classes whose inventories are all needed
        self.worn: set[int] = set()  # traits whose providers are all needed
        self.is_structural = False  # whether there is more than claims and releases

    def look(self, table: str, columns: str, *values: Value) -> None:
        """Add the row(s) of ``table`` with these values in these blank-separated columns."""
        self.lookups.setdefault((table, tuple(columns.split())), set()).add(values)


def find_touched(items: Iterable[Item]) -> Touched:
    """Return the rows that ``commit_rules.judge`` needs for these items."""
    touched = Touched()
    for item in items:
        for write in item.writes:
            _LOOKS[type(write)](touched, write)
        for row in item.evidence:
            touched.look("decision", "id", row.id)
        for put in item.work:
            _put_work(touched, put)
    return touched


def _put_work(touched: Touched, put: Put) -> None:
    table = WORK[type(put.row)]
    for columns in (table.key, *(table.uniques if put.expected is None else ())):
        values = tuple(getattr(put.row, column) for column in columns)
        touched.lookups.setdefault((table.name, columns), set()).add(values)


def committable(items: Sequence[Item]) -> bool:
    """Return whether all writes are of kinds that can be committed."""
    return all(type(write) in _LOOKS for item in items for write in item.writes)


def _claim(touched: Touched, claim: Claim) -> None:
    for consumer in claim.consumers:
        touched.look("consumer", "id", consumer.id)
        touched.look("consumer", "uuid", consumer.uuid)
    for consumer_id in {take[0] for take in claim.takes}:
        touched.look("consumer", "id", consumer_id)
        touched.look("allocation", "consumer_id", consumer_id)
    for _, inventory_id, _ in claim.takes:
        touched.stock_ids.add(inventory_id)
        touched.stock_ids.add(slot_of(inventory_id >> CLASS_BITS))
    for instance in claim.instances:
        touched.look("consumer", "id", instance.consumer_id)
        touched.look("instance", "consumer_id", instance.consumer_id)
    for place in claim.places:
        touched.place_keys.add((place.group_id, place.scope))


def _release(touched: Touched, release: Release) -> None:
    for consumer_id in release.consumer_ids:
        touched.look("consumer", "id", consumer_id)
        touched.look("allocation", "consumer_id", consumer_id)
        touched.look("instance", "consumer_id", consumer_id)
    touched.stock_ids.update(inventory_id for _, inventory_id, _ in release.frees)
    touched.stock_ids.update(map(slot_of, release.raised))
    for place in release.places:
        touched.place_keys.add((place.group_id, place.scope))


def _put_provider(touched: Touched, write: PutProvider) -> None:
    touched.is_structural = True
    touched.look("provider", "id", write.id)
    touched.look("provider", "uuid", write.uuid)
    touched.look("provider", "name", write.name)
    touched.trees.add(write.id)
    if write.parent_id is not None:
        touched.look("provider", "id", write.parent_id)
        touched.trees.add(write.parent_id)


def _drop_provider(touched: Touched, write: DropProvider) -> None:
    touched.is_structural = True
    touched.look("provider", "id", write.id)
    touched.trees.add(write.id)
    touched.whole_providers.add(write.id)
    touched.look("host", "provider_id", write.id)


def _put_inventories(touched: Touched, write: PutInventories) -> None:
    touched.is_structural = True
    touched.whole_providers.add(write.provider_id)
    for row in write.inventories:
        touched.look("symbol", "id", row.class_id)


def _put_traits(touched: Touched, write: PutTraits) -> None:
    touched.is_structural = True
    touched.stock_ids.add(slot_of(write.provider_id))
    for trait_id in write.trait_ids:
        touched.look("symbol", "id", trait_id)


def _put_membership(touched: Touched, write: PutMembership) -> None:
    touched.is_structural = True
    touched.stock_ids.add(slot_of(write.provider_id))


def _raise_generation(touched: Touched, write: RaiseGeneration) -> None:
    touched.is_structural = True
    touched.stock_ids.add(slot_of(write.provider_id))


def _put_aggregate(touched: Touched, write: PutAggregate) -> None:
    touched.is_structural = True
    touched.look("aggregate", "id", write.id)
    touched.look("aggregate", "uuid", write.uuid)


def _put_host(touched: Touched, write: PutHost) -> None:
    touched.is_structural = True
    touched.look("host", "id", write.id)
    touched.look("host", "provider_id", write.provider_id)
    touched.look("host", "host node", write.host, write.node)
    touched.stock_ids.add(slot_of(write.provider_id))


def _put_symbol(touched: Touched, write: PutSymbol | RenameSymbol | ReuseSymbol) -> None:
    touched.is_structural = True
    touched.look("symbol", "id", write.id)
    touched.look("symbol", "kind name", write.kind, write.name)


def _drop_symbol(touched: Touched, write: DropSymbol) -> None:
    touched.is_structural = True
    touched.look("symbol", "id", write.id)
    (touched.worn if write.kind == "trait" else touched.offered).add(write.id)


def _put_group(touched: Touched, write: PutGroup) -> None:
    touched.is_structural = True
    touched.look("server_group", "id", write.id)
    touched.look("server_group", "uuid", write.uuid)


def _put_document(touched: Touched, write: PutDocument) -> None:
    touched.is_structural = True
    touched.look("document", "id", write.id)
    touched.look("document", "kind fingerprint", write.kind, write.fingerprint)


_LOOKS: dict[type[Write], Callable[..., None]] = {
    PutSymbol: _put_symbol,
    DropSymbol: _drop_symbol,
    RenameSymbol: _put_symbol,
    ReuseSymbol: _put_symbol,
    PutProvider: _put_provider,
    DropProvider: _drop_provider,
    PutInventories: _put_inventories,
    PutTraits: _put_traits,
    PutMembership: _put_membership,
    RaiseGeneration: _raise_generation,
    PutAggregate: _put_aggregate,
    PutHost: _put_host,
    PutGroup: _put_group,
    PutDocument: _put_document,
    PutTask: lambda _touched, _write: None,
    Claim: _claim,
    Release: _release,
}
