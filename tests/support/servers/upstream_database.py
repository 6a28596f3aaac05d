"""The tables of an upstream Placement in any database, filled with a world, for tests of the import."""

from sqlalchemy import Column, DateTime, Float, Integer, MetaData, String, Table, create_engine

from roost.compat.upstream.placement_world import World
from roost.compat.upstream.sql_drivers import driver_url

METADATA = MetaData()


def _table(name, *columns):
    return Table(name, METADATA, Column("created_at", DateTime), Column("updated_at", DateTime), *columns)


def _id():
    return Column("id", Integer, primary_key=True)


def _number(name, **more):
    return Column(name, Integer, **more)


PROVIDERS = _table(
    "resource_providers",
    _id(),
    Column("uuid", String(36)),
    Column("name", String(200)),
    _number("generation"),
    _number("root_provider_id"),
    _number("parent_provider_id"),
)
CLASSES = _table("resource_classes", _id(), Column("name", String(255)))
TRAITS = _table("traits", _id(), Column("name", String(255)))
AGGREGATES = _table("placement_aggregates", _id(), Column("uuid", String(36)))
INVENTORIES = _table(
    "inventories",
    _id(),
    _number("resource_provider_id"),
    _number("resource_class_id"),
    _number("total"),
    _number("reserved"),
    _number("min_unit"),
    _number("max_unit"),
    _number("step_size"),
    Column("allocation_ratio", Float),
)
PROVIDER_TRAITS = _table(
    "resource_provider_traits", _number("trait_id", primary_key=True), _number("resource_provider_id", primary_key=True)
)
PROVIDER_AGGREGATES = _table(
    "resource_provider_aggregates",
    _number("resource_provider_id", primary_key=True),
    _number("aggregate_id", primary_key=True),
)
PROJECTS = _table("projects", _id(), Column("external_id", String(255)))
USERS = _table("users", _id(), Column("external_id", String(255)))
TYPES = _table("consumer_types", _id(), Column("name", String(255)))
CONSUMERS = _table(
    "consumers",
    _id(),
    Column("uuid", String(36)),
    _number("project_id"),
    _number("user_id"),
    _number("generation"),
    _number("consumer_type_id"),
)
ALLOCATIONS = _table(
    "allocations",
    _id(),
    _number("resource_provider_id"),
    Column("consumer_id", String(36)),
    _number("resource_class_id"),
    _number("used"),
)


def fill(url, world: World):
    """Replace the content of the database by a world."""
    engine = create_engine(driver_url(url))
    METADATA.drop_all(engine)
    METADATA.create_all(engine)
    consumers = list(world.consumers.values())
    ids = {
        "classes": _ids_by_name(world.classes),
        "traits": _ids_by_name(world.traits),
        "providers": _ids_by_name(world.providers),
        "aggregates": _ids_by_name(sorted({one for each in world.providers.values() for one in each.aggregates})),
        "projects": _ids_by_name(sorted({each.project_id for each in consumers})),
        "users": _ids_by_name(sorted({each.user_id for each in consumers})),
        "types": _ids_by_name(sorted({each.consumer_type for each in consumers if each.consumer_type})),
    }
    with engine.begin() as connection:
        for table, column, kind in (
            (CLASSES, "name", "classes"),
            (TRAITS, "name", "traits"),
            (AGGREGATES, "uuid", "aggregates"),
            (PROJECTS, "external_id", "projects"),
            (USERS, "external_id", "users"),
            (TYPES, "name", "types"),
        ):
            _insert(connection, table, [{"id": number, column: name} for name, number in ids[kind].items()])
        _fill_providers(connection, world, ids)
        _insert(
            connection,
            CONSUMERS,
            [
                {
                    "uuid": each.uuid,
                    "project_id": ids["projects"][each.project_id],
                    "user_id": ids["users"][each.user_id],
                    "generation": each.generation,
                    "consumer_type_id": ids["types"].get(each.consumer_type),
                }
                for each in consumers
            ],
        )
        _insert(
            connection,
            ALLOCATIONS,
            [
                {
                    "consumer_id": each.uuid,
                    "resource_provider_id": ids["providers"][provider],
                    "resource_class_id": ids["classes"][name],
                    "used": amount,
                }
                for each in consumers
                for provider, amounts in each.amounts.items()
                for name, amount in amounts.items()
            ],
        )
    engine.dispose()


def _fill_providers(connection, world, ids):
    providers = ids["providers"]
    _insert(
        connection,
        PROVIDERS,
        [
            {
                "id": providers[each.uuid],
                "uuid": each.uuid,
                "name": each.name,
                "generation": each.generation,
                "parent_provider_id": providers.get(each.parent_uuid),
            }
            for each in world.providers.values()
        ],
    )
    _insert(
        connection,
        INVENTORIES,
        [
            {
                "resource_provider_id": providers[each.uuid],
                "resource_class_id": ids["classes"][name],
                **{field: getattr(offer, field) for field in type(offer).__struct_fields__},
            }
            for each in world.providers.values()
            for name, offer in each.inventories.items()
        ],
    )
    for table, column, kind in (
        (PROVIDER_TRAITS, "trait_id", "traits"),
        (PROVIDER_AGGREGATES, "aggregate_id", "aggregates"),
    ):
        _insert(
            connection,
            table,
            [
                {"resource_provider_id": providers[each.uuid], column: ids[kind][label]}
                for each in world.providers.values()
                for label in getattr(each, kind)
            ],
        )


def _ids_by_name(names):
    return {name: number for number, name in enumerate(names, start=1)}


def _insert(connection, table, rows):
    if rows:
        connection.execute(table.insert(), rows)
