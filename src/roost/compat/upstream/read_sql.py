"""Reads the database of OpenStack Placement in one read-only transaction, through SQLAlchemy."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, column, func, select, table
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.sql import Select, TableClause

from roost.compat.upstream.placement_world import Consumer, Progress, Provider, World, canonical_uuid, offer_of
from roost.compat.upstream.sql_drivers import (
    database_kind,
    describe_missing_driver,
    driver_url,
    sqlite_creator,
    sqlite_path,
)
from roost.errors import BadRequest, BadSettings, Unavailable, first_line
from roost.model.settings.placement_settings import NOBODY

_ROWS_AT_ONCE = 5000
_FIRST = itemgetter(0)


def _table(name: str, columns: str) -> TableClause:
    return table(name, *map(column, columns.split()))


_PROVIDERS = _table("resource_providers", "id uuid name generation parent_provider_id")
_CLASSES = _table("resource_classes", "id name")
_TRAITS = _table("traits", "id name")
_AGGREGATES = _table("placement_aggregates", "id uuid")
_INVENTORIES = _table(
    "inventories",
    "resource_provider_id resource_class_id total reserved min_unit max_unit step_size allocation_ratio",
)
_PROVIDER_TRAITS = _table("resource_provider_traits", "resource_provider_id trait_id")
_PROVIDER_AGGREGATES = _table("resource_provider_aggregates", "resource_provider_id aggregate_id")
_PROJECTS = _table("projects", "id external_id")
_USERS = _table("users", "id external_id")
_TYPES = _table("consumer_types", "id name")
_CONSUMERS = _table("consumers", "uuid project_id user_id generation consumer_type_id")
_ALLOCATIONS = _table("allocations", "consumer_id resource_provider_id resource_class_id used")
_REQUIRED = (_PROVIDERS, _INVENTORIES, _PROVIDER_TRAITS, _PROVIDER_AGGREGATES, _CONSUMERS, _ALLOCATIONS)


def read_sql(url: str, *, progress: Progress) -> World:
    """Read all data in the database of OpenStack Placement.

    Args:
        url: URL of a MySQL, MariaDB, PostgreSQL or SQLite database, as in ``placement.conf``.

    Raises:
        BadSettings: the driver of the database is not installed.
        BadRequest: the database does not belong to Placement, or has invalid data.
        Unavailable: the database does not answer.
    """
    with _connect(url) as connection:
        return _Reader(connection, progress).world()


@contextmanager
def _connect(url: str) -> Iterator[Connection]:
    """Open a connection in a read-only transaction with a consistent snapshot."""
    kind = database_kind(url)
    try:
        engine = _sqlite(url) if kind == "sqlite" else _server(url)
        with engine.connect() as connection:
            if kind == "sqlite":
                connection.exec_driver_sql("BEGIN")
            elif kind.startswith("postgres"):
                connection.exec_driver_sql("SET TRANSACTION READ ONLY")
            else:
                connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            yield connection
    except ModuleNotFoundError as error:
        raise BadSettings("--from", describe_missing_driver(url, error)) from None
    except NoSuchModuleError:
        raise BadRequest(f"a database of the kind {kind!r} cannot be read") from None
    except (DBAPIError, sqlite3.Error) as error:
        cause = getattr(error, "orig", None) or error
        raise Unavailable(f"the source cannot be read: {first_line(cause)}") from error
    except SQLAlchemyError as error:
        raise BadRequest(f"the URL of the source is invalid: {first_line(error)}") from error


def _server(url: str) -> sqlalchemy.Engine:
    try:
        place = sqlalchemy.make_url(driver_url(url))
    except ValueError:  # A port is not a number, as in a list of hosts with ports.
        raise BadRequest("the URL of the source is invalid: it must name one host, and a number as its port") from None
    if "," in (place.host or ""):
        raise BadRequest("the URL of the source names several hosts: name one, any node of a cluster")
    return sqlalchemy.create_engine(place, poolclass=sqlalchemy.pool.NullPool, isolation_level="REPEATABLE READ")


def _sqlite(url: str) -> sqlalchemy.Engine:
    path = sqlite_path(url)
    if not path.is_file():
        raise BadRequest(f"{path} is not a file")
    return sqlalchemy.create_engine("sqlite://", creator=sqlite_creator(path, "ro"), poolclass=sqlalchemy.pool.NullPool)


class _Reader:
    """Reads the tables one after the other."""

    def __init__(self, connection: Connection, progress: Progress) -> None:
        self._connection = connection
        self._progress = progress
        self._done = 0
        tables = set(sqlalchemy.inspect(connection).get_table_names())
        missing = [each.name for each in _REQUIRED if each.name not in tables]
        if missing:
            raise BadRequest(f"the source is not the database of a Placement: it has no table {missing[0]}")
        self._has_types = _TYPES.name in tables
        self._total = sum(connection.execute(select(func.count()).select_from(each)).scalar_one() for each in _REQUIRED)

    def world(self) -> World:
        classes, traits = self._names(_CLASSES), self._names(_TRAITS)
        uuids = self._uuids()
        return World(
            providers=self._providers(uuids, classes, traits),
            consumers={each.uuid: each for each in self._consumers(uuids, classes)},
            classes=sorted(classes.values()),
            traits=sorted(traits.values()),
        )

    def _rows(self, statement: Select[Any], *, counts: bool = True) -> Iterator[tuple[Any, ...]]:
        options = {"stream_results": True, "yield_per": _ROWS_AT_ONCE}
        for part in self._connection.execute(statement, execution_options=options).partitions():
            yield from map(tuple, part)
            if counts:
                self._done += len(part)
                self._progress(min(self._done, self._total), self._total)

    def _names(self, of: TableClause) -> dict[int, str]:
        first, second = of.c
        return dict(self._rows(select(first, second), counts=False))

    def _uuids(self) -> dict[int, str]:
        statement = select(_PROVIDERS.c.id, _PROVIDERS.c.uuid)
        return {number: canonical_uuid(text, "provider") for number, text in self._rows(statement, counts=False)}

    def _providers(self, uuids: dict[int, str], classes: dict[int, str], traits: dict[int, str]) -> dict[str, Provider]:
        provider = "resource_provider_id"
        offers = {
            number: {classes[row[1]]: offer_of(row[2:]) for row in rows}
            for number, rows in groupby(self._rows(select(*_INVENTORIES.c).order_by(_INVENTORIES.c[provider])), _FIRST)
        }
        traits_by_provider = self._labels(_PROVIDER_TRAITS, traits)
        aggregates = {number: canonical_uuid(text, "aggregate") for number, text in self._names(_AGGREGATES).items()}
        aggregates_by_provider = self._labels(_PROVIDER_AGGREGATES, aggregates)
        read_providers = (
            Provider(
                uuids[number],
                name or "",
                None if parent is None else uuids[parent],
                int(generation or 0),
                offers.get(number, {}),
                traits_by_provider.get(number, []),
                aggregates_by_provider.get(number, []),
            )
            for number, _, name, generation, parent in self._rows(select(*_PROVIDERS.c))
        )
        return {each.uuid: each for each in read_providers}

    def _labels(self, of: TableClause, names: dict[int, str]) -> dict[int, list[str]]:
        rows = self._rows(select(*of.c).order_by(of.c.resource_provider_id))
        return {
            number: sorted(names[row[1]] for row in provider_rows) for number, provider_rows in groupby(rows, _FIRST)
        }

    def _consumers(self, uuids: dict[int, str], classes: dict[int, str]) -> Iterator[Consumer]:
        projects, users = self._names(_PROJECTS), self._names(_USERS)
        types = self._names(_TYPES) if self._has_types else {}
        columns = [each for each in _CONSUMERS.c if self._has_types or each.name != "consumer_type_id"]
        owners = {row[0]: row[1:] for row in self._rows(select(*columns))}
        rows = self._rows(select(*_ALLOCATIONS.c).order_by(_ALLOCATIONS.c.consumer_id))
        for text, allocation_rows in groupby(rows, _FIRST):
            amounts: dict[str, dict[str, int]] = {}
            for _, provider, resource_class, used in allocation_rows:
                provider_amounts = amounts.setdefault(uuids[provider], {})
                provider_amounts[classes[resource_class]] = provider_amounts.get(classes[resource_class], 0) + int(used)
            project, user, generation, *kind = owners.get(text, (None, None, 0))
            yield Consumer(
                canonical_uuid(text, "consumer"),
                projects.get(project, NOBODY),
                users.get(user, NOBODY),
                types.get(kind[0]) if kind else None,
                int(generation),
                amounts,
            )
