"""Imports of Placement: the copy, later changes and refusals, from every kind of database."""

import contextlib
import sqlite3
import uuid
from random import Random

import msgspec
import pytest

from roost.app import import_placement, version_of
from roost.compat.upstream.import_run import run_import
from roost.compat.upstream.placement_world import Consumer, Offer, Provider, World, world_of
from roost.compat.upstream.read_sql import read_sql
from roost.errors import BadRequest, Conflict, Unavailable
from roost.model.writes import PutTraits
from roost.placement.current import Current
from roost.placement.placement_service import Placement
from roost.store.memory_store import MemoryStore
from tests.support.databases import mariadb
from tests.support.missing_programs import require_module, skip_test
from tests.support.servers import upstream_database as upstream

MIB = Offer(1024, 0, 1, 1024, 1, 1.5)
CORES = Offer(8, 1, 1, 8, 1, 16.0)


def uuid_of(*words):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, repr(words)))


def provider(name, *, generation=7, parent=None, inventories=None, traits=(), aggregates=()):
    above = None if parent is None else uuid_of(parent)
    offers = {"VCPU": CORES, "MEMORY_MB": MIB} if inventories is None else inventories
    return Provider(uuid_of(name), name, above, generation, offers, sorted(traits), sorted(aggregates))


def consumer(name, amounts, *, generation=3, kind="INSTANCE", project="p", user="u"):
    return Consumer(
        uuid_of(name), project, user, kind, generation, {uuid_of(on): resources for on, resources in amounts.items()}
    )


def world(*things):
    """Return a world of providers and consumers."""
    providers = {each.uuid: each for each in things if isinstance(each, Provider)}
    classes = {name for each in providers.values() for name in each.inventories} | {"CUSTOM_UNUSED"}
    traits = {name for each in providers.values() for name in each.traits} | {"CUSTOM_UNWORN"}
    return World(
        providers=providers,
        consumers={each.uuid: each for each in things if isinstance(each, Consumer)},
        classes=sorted(classes),
        traits=sorted(traits),
    )


def replace(one, **fields):
    return msgspec.structs.replace(one, **fields)


HOST = provider("host", traits=["HW_CPU_X86_AVX", "CUSTOM_RED"], aggregates=[uuid_of("a")])
GPU = provider("gpu", generation=2, parent="host", inventories={"CUSTOM_GPU": Offer(2, 0, 1, 1, 1, 1.0)})
ONE = consumer("one", {"host": {"VCPU": 4, "MEMORY_MB": 512}, "gpu": {"CUSTOM_GPU": 1}})
TWO = consumer("two", {"host": {"VCPU": 2}}, kind=None, generation=1)
START = world(HOST, GPU, ONE, TWO)


@pytest.fixture
def current():
    current = Current(MemoryStore())
    Placement(current)
    return current


def copy(current, remote, *, is_dry_run=False, source="there"):
    return run_import(current, remote, source=source, database="roost.db", is_dry_run=is_dry_run)


def counts(result):
    return [
        (each.created, each.changed, each.removed, each.same, each.ahead)
        for each in (result.providers, result.consumers)
    ]


def local_world(current):
    local = world_of(current.state)
    return local.providers, local.consumers


def position(current):
    return current.store.load().position


def test_import_copies_everything_with_its_generations(current):
    result = copy(current, START)
    assert result.verified.is_equal
    assert counts(result) == [(2, 0, 0, 0, 0)] * 2
    assert local_world(current) == (START.providers, START.consumers)
    assert {"CUSTOM_UNUSED"} <= set(current.state.class_ids)
    assert {"CUSTOM_UNWORN"} <= set(current.state.trait_ids)


def test_a_second_import_writes_nothing(current):
    copy(current, START)
    before = position(current)
    assert counts(copy(current, START)) == [(0, 0, 0, 2, 0)] * 2
    assert position(current) == before


def test_dry_run_writes_nothing_and_counts_the_changes(current):
    before = position(current)
    result = copy(current, START, is_dry_run=True)
    assert (counts(result), result.verified, position(current)) == ([(2, 0, 0, 0, 0)] * 2, None, before)


def test_later_changes_of_the_source_are_imported(current):
    copy(current, START)
    remote = world(
        replace(HOST, name="renamed", generation=11, traits=["CUSTOM_BLUE"], aggregates=[]),
        provider("new", generation=9),
        replace(GPU, parent_uuid=uuid_of("new")),
        replace(TWO, generation=2, amounts={uuid_of("host"): {"VCPU": 3}}, project_id="q"),
        consumer("three", {"host": {"VCPU": 1}}),
    )
    result = copy(current, remote)
    assert counts(result) == [(1, 2, 0, 0, 0), (1, 1, 1, 0, 0)]
    assert result.verified.is_equal
    assert local_world(current) == (remote.providers, remote.consumers)
    less = world(replace(HOST, generation=12))
    assert copy(current, less).verified.is_equal
    assert local_world(current) == (less.providers, {})


def test_allocations_beyond_the_inventory_are_copied_unchanged(current):
    tight = {"VCPU": Offer(2, 1, 2, 2, 2, 1.0), "MEMORY_MB": MIB}
    remote = world(provider("host", inventories=tight), replace(ONE, amounts={uuid_of("host"): {"VCPU": 5}}), TWO)
    assert copy(current, remote).verified.is_equal
    assert local_world(current) == (remote.providers, remote.consumers)


def with_two(generation, resources, *, host, inventories):
    """Return the world with other allocations of the second consumer, and other inventories of the host."""
    two = replace(TWO, generation=generation, amounts={uuid_of("host"): resources})
    return world(replace(HOST, generation=host, inventories=inventories), GPU, ONE, two)


def test_later_excess_is_imported_with_its_generation(current):
    copy(current, START)
    tight = {"VCPU": Offer(4, 0, 1, 4, 1, 1.0), "MEMORY_MB": MIB}
    for remote in (
        with_two(2, {"VCPU": 4}, host=9, inventories=tight),
        with_two(3, {"VCPU": 3}, host=10, inventories=tight),
    ):
        assert copy(current, remote).verified.is_equal
        assert local_world(current) == (remote.providers, remote.consumers)


def test_inventory_removed_with_its_allocations_is_removed(current):
    copy(current, START)
    one = replace(ONE, generation=4, amounts={uuid_of("host"): {"VCPU": 4}})
    remote = world(replace(HOST, generation=9, inventories={"VCPU": CORES}), GPU, one, TWO)
    assert copy(current, remote).verified.is_equal
    assert local_world(current) == (remote.providers, remote.consumers)


def test_provider_of_another_source_is_kept(current):
    copy(current, START)
    copy(current, world(provider("own")), source="elsewhere")
    result = copy(current, START)
    assert counts(result) == [(0, 0, 0, 2, 0)] * 2
    assert uuid_of("own") in local_world(current)[0]


def release(current, name):
    Placement(current).release([uuid_of(name)])
    assert current.flush() == [None]


def test_local_changes_are_kept(current):
    copy(current, START)
    release(current, "two")
    result = copy(current, START)
    assert counts(result)[1] == (0, 0, 0, 1, 1)
    assert result.verified.is_equal
    assert uuid_of("two") not in local_world(current)[1]


def refusal(current, remote):
    """Return the reason of a refused import, which must write nothing."""
    before = position(current)
    with pytest.raises(Conflict) as error:
        copy(current, remote)
    assert position(current) == before
    return str(error.value)


def test_change_on_both_sides_is_refused(current):
    copy(current, START)
    release(current, "two")
    reason = refusal(current, world(HOST, GPU, ONE, replace(TWO, generation=2)))
    assert reason == f"nothing was imported: consumer {uuid_of('two')} was deleted here, and changed in the source"
    row = current.state.providers.row_of_uuid[uuid_of("host")]
    current.write([PutTraits(current.state.providers.ids[row], 7, [])])
    reason = refusal(current, world(replace(HOST, generation=9), GPU, ONE, TWO))
    assert reason == f"nothing was imported: provider {uuid_of('host')} (host) changed on both sides"
    reason = refusal(current, world(GPU, ONE, TWO))
    assert f"provider {uuid_of('host')} (host) was deleted in the source, and changed here" in reason


def test_allocation_without_an_inventory_is_refused(current):
    remote = world(HOST, consumer("five", {"host": {"DISK_GB": 1}}), consumer("six", {"nowhere": {"VCPU": 1}}))
    reason = refusal(current, remote)
    assert f"consumer {uuid_of('five')} holds DISK_GB of provider {uuid_of('host')}, which offers none" in reason
    assert f"consumer {uuid_of('six')} holds VCPU of provider {uuid_of('nowhere')}, which offers none" in reason


def test_source_is_the_same_with_another_driver_account_and_parameters(current):
    names = ("mysql://placement@db/placement", "mysql+pymysql://reader@db:3306/placement")
    copy(current, world(provider("a"), provider("b")), source=names[0])
    result = copy(current, world(provider("a")), source=names[1])
    assert result.providers.removed == 1


def test_conflict_names_the_other_sources_of_earlier_imports(current):
    copy(current, world(provider("a")), source="mysql://db1/placement")
    changed = world(provider("a", generation=9))
    with pytest.raises(Conflict, match="earlier imports are from mysql://db1/placement: if mysql://db2/placement is"):
        copy(current, changed, source="mysql://db2/placement")


def test_existing_different_provider_is_refused(current):
    copy(current, world(replace(HOST, generation=5)), source="elsewhere")
    with pytest.raises(Conflict, match="exists here, and differs"):
        copy(current, START)


def test_existing_equal_provider_counts_as_copied(current):
    copy(current, START, source="elsewhere")
    assert counts(copy(current, START)) == [(0, 0, 0, 2, 0)] * 2
    assert copy(current, world(HOST, GPU, ONE)).consumers.removed == 1


def test_name_of_another_local_provider_is_refused(current):
    copy(current, world(replace(provider("other"), name="host")), source="elsewhere")
    with pytest.raises(Conflict, match="would both be called 'host'"):
        copy(current, START)


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def database(request, tmp_path):
    """Return the URL of a source database, for each supported kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'placement.sqlite'}"
    elif request.param == "postgresql":
        yield request.getfixturevalue("postgres_url")
    else:
        require_module("pymysql", extra="mysql")
        if mariadb.SERVE is None or mariadb.INSTALL is None:
            skip_test(mariadb.MISSING)
        with mariadb.server() as url:
            yield url


def random_world(draw):
    providers = []
    for number in range(60):
        parent = draw.choice([None, *(each.name for each in providers)]) if providers else None
        offers = {
            name: Offer(draw.randrange(50, 100), draw.randrange(50), 1, 100, 1, draw.choice((1.0, 1.5, 16.0)))
            for name in draw.sample(("VCPU", "MEMORY_MB", "CUSTOM_GPU"), draw.randrange(4))
        }
        providers.append(
            provider(
                f"h{number} ü🐦",
                generation=5 + draw.randrange(99),
                parent=parent,
                inventories=offers,
                traits=draw.sample(("CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_AVX"), draw.randrange(4)),
                aggregates=draw.sample((uuid_of("a"), uuid_of("b")), draw.randrange(3)),
            )
        )
    hosts = [each for each in providers if each.inventories]
    consumers = [
        consumer(
            f"c{number}",
            {on.name: dict.fromkeys(on.inventories, draw.randrange(1, 3)) for on in draw.sample(hosts, 2)},
            generation=draw.randrange(1, 9),
            kind=draw.choice((None, "INSTANCE", "MIGRATION")),
            project=f"p{draw.randrange(3)}",
            user=f"u{draw.randrange(3)}",
        )
        for number in range(200)
    ]
    return world(*providers, *consumers)


def test_every_kind_of_database_is_read_and_copied(database, tmp_path):
    remote = random_world(Random(1))
    upstream.fill(database, remote)
    seen = []
    assert read_sql(database, progress=lambda *result: seen.append(result)) == remote
    assert seen[-1][0] == seen[-1][1] > 200
    for _ in range(2):
        result = import_placement(
            database, str(tmp_path / "roost.db"), headers={}, is_dry_run=False, progress=lambda *_: None
        )
        assert result.verified.is_equal
    assert counts(result) == [(0, 0, 0, 60, 0), (0, 0, 0, 200, 0)]


def test_dry_run_accepts_an_empty_database_of_a_server(postgres_server, tmp_path):
    source = f"sqlite:///{tmp_path / 'placement.sqlite'}"
    upstream.fill(source, random_world(Random(2)))
    result = import_placement(source, postgres_server, headers={}, is_dry_run=True, progress=lambda *_: None)
    assert counts(result)[0] == (60, 0, 0, 0, 0)
    assert version_of(postgres_server) is None


def test_import_into_postgresql_is_verified(postgres_url, tmp_path):
    source = f"sqlite:///{tmp_path / 'placement.sqlite'}"
    upstream.fill(source, random_world(Random(2)))
    result = import_placement(source, postgres_url, headers={}, is_dry_run=False, progress=lambda *_: None)
    assert result.verified.is_equal


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("ftp://x/y", BadRequest),
        ("sqlite:////nowhere/placement.sqlite", BadRequest),
        ("postgresql://nobody@127.0.0.1:1/placement", Unavailable),
        ("http://127.0.0.1:1", Unavailable),
        ("mysql://placement:secret@db1:3306,db2:3306/placement", BadRequest),
        ("mysql://placement:secret@db1,db2/placement", BadRequest),
        ("x", BadRequest),
    ],
)
def test_unreadable_source_is_an_error(source, error, tmp_path):
    with pytest.raises(error):
        import_placement(source, str(tmp_path / "roost.db"), headers={}, is_dry_run=True, progress=lambda *_: None)


def test_database_of_another_program_is_refused(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE resource_providers (id INTEGER)")
    with pytest.raises(BadRequest, match="it has no table inventories"):
        read_sql(f"sqlite:///{tmp_path / 'x.db'}", progress=lambda *_: None)
