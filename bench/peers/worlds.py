"""Worlds that both servers get: providers, written into the database of each before it is served."""

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from roost.app import open_roost
from roost.model.fleet import Fleet
from roost.model.host import Aggregate
from roost.model.names import AMOUNT_MAX
from roost.model.provider import Inventory, ProviderSpec

HOST = {"VCPU": Inventory(total=64), "MEMORY_MB": Inventory(total=262_144), "DISK_GB": Inventory(total=2_000)}
ONE = {"VGPU": Inventory(total=1)}
TRAIT = "HW_CPU_X86_AVX2"
AGGREGATES = 10
World = list[ProviderSpec]  # parents before their children


def uuid_of(name: str) -> str:
    """Return the uuid of a name: the same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"peers-{name}"))


def flat(hosts: int) -> World:
    """Hosts without children; half of them have a trait, and each is in one of ten aggregates."""
    return [
        ProviderSpec(
            uuid=uuid_of(f"host-{at}"),
            name=f"host-{at}",
            inventories=HOST,
            traits=frozenset({TRAIT}) if at % 2 else frozenset(),
            aggregates=frozenset({uuid_of(f"aggregate-{at % AGGREGATES}")}),
        )
        for at in range(hosts)
    ]


def nested(hosts: int, *, children: int) -> World:
    """Hosts with one-device children."""
    return [each for at in range(hosts) for each in _tree(at, children)]


def _tree(at: int, children: int) -> Iterator[ProviderSpec]:
    root = uuid_of(f"tree-{at}")
    yield ProviderSpec(uuid=root, name=f"tree-{at}", inventories=HOST)
    for child in range(children):
        name = f"tree-{at}-{child}"
        yield ProviderSpec(uuid=uuid_of(name), name=name, parent_uuid=root, inventories=ONE)


def write_ours(world: World, folder: Path) -> None:
    """Create the database that Roost serves: ``FOLDER/roost.db``."""
    uuids = sorted({aggregate for spec in world for aggregate in spec.aggregates})
    aggregates = [Aggregate(uuid=each, name=each) for each in uuids]
    with open_roost(None, folder) as roost:
        roost.install(Fleet(providers=world, aggregates=aggregates))


def write_theirs(world: World, database: Path) -> None:
    """Fill a database of the reference that has its tables and names, and nothing else."""
    with closing(sqlite3.connect(database)) as connection, connection:
        classes = dict(connection.execute("select name, id from resource_classes"))
        traits = dict(connection.execute("select name, id from traits"))
        ids: dict[str | None, int] = {spec.uuid: number for number, spec in enumerate(world, 1)}
        roots: dict[str, str] = {}
        for spec in world:
            roots[spec.uuid] = spec.uuid if spec.parent_uuid is None else roots[spec.parent_uuid]
        uuids = sorted({aggregate for spec in world for aggregate in spec.aggregates})
        aggregates = {each: number for number, each in enumerate(uuids, 1)}
        _insert(
            connection,
            "resource_providers",
            "id, uuid, name, generation, root_provider_id, parent_provider_id",
            rows=(
                (ids[each.uuid], each.uuid, each.name, _writes(each), ids[roots[each.uuid]], ids.get(each.parent_uuid))
                for each in world
            ),
        )
        _insert(
            connection,
            "inventories",
            "resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio",
            rows=(
                (ids[each.uuid], classes[name], stock.total, stock.reserved, 1, AMOUNT_MAX, 1, 1.0)
                for each in world
                for name, stock in each.inventories.items()
            ),
        )
        _insert(
            connection, "placement_aggregates", "id, uuid", rows=((number, each) for each, number in aggregates.items())
        )
        _insert(
            connection,
            "resource_provider_aggregates",
            "resource_provider_id, aggregate_id",
            rows=((ids[each.uuid], aggregates[aggregate]) for each in world for aggregate in each.aggregates),
        )
        _insert(
            connection,
            "resource_provider_traits",
            "resource_provider_id, trait_id",
            rows=((ids[each.uuid], traits[trait]) for each in world for trait in each.traits),
        )


def _writes(spec: ProviderSpec) -> int:
    """Return the generation of a provider that was given all it has."""
    return sum(map(bool, (spec.inventories, spec.traits, spec.aggregates)))


def _insert(connection: sqlite3.Connection, table: str, columns: str, *, rows: Iterator[tuple[object, ...]]) -> None:
    marks = ", ".join("?" for _ in columns.split(","))
    connection.executemany(
        f"insert into {table} ({columns}, created_at) values ({marks}, '2026-01-01 00:00:00')", list(rows)
    )
