"""What is copied, what is brought later, and what is refused; from the tables of every kind of database."""

import contextlib
import sqlite3
import uuid
from random import Random

import msgspec
import pytest

from roost.app import import_placement
from roost.compat.upstream.import_run import run_import
from roost.compat.upstream.placement_world import Consumer, Offer, Provider, World, world_of
from roost.compat.upstream.read_sql import read_sql
from roost.errors import BadRequest, Conflict, Unavailable
from roost.model.writes import PutTraits
from roost.placement.current import Current
from roost.placement.placement_service import Placement
from roost.store.memory_store import MemoryStore
from tests.support.databases import mariadb
from tests.support.servers import upstream_database as upstream

MIB = Offer(1024, 0, 1, 1024, 1, 1.5)
CORES = Offer(8, 1, 1, 8, 1, 16.0)


def named(*words):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, repr(words)))


def provider(name, *, generation=7, parent=None, inventories=None, traits=(), aggregates=()):
    above = None if parent is None else named(parent)
    offers = {"VCPU": CORES, "MEMORY_MB": MIB} if inventories is None else inventories
    return Provider(named(name), name, above, generation, offers, sorted(traits), sorted(aggregates))


def consumer(name, amounts, *, generation=3, kind="INSTANCE", project="p", user="u"):
    return Consumer(named(name), project, user, kind, generation, {named(on): held for on, held in amounts.items()})


def world(*things):
    """Give a world of providers and consumers."""
    providers = {each.uuid: each for each in things if isinstance(each, Provider)}
    classes = {name for each in providers.values() for name in each.inventories} | {"CUSTOM_UNUSED"}
    traits = {name for each in providers.values() for name in each.traits} | {"CUSTOM_UNWORN"}
    return World(
        providers=providers,
        consumers={each.uuid: each for each in things if isinstance(each, Consumer)},
        classes=sorted(classes),
        traits=sorted(traits),
    )


def changed(one, **fields):
    return msgspec.structs.replace(one, **fields)


HOST = provider("host", traits=["HW_CPU_X86_AVX", "CUSTOM_RED"], aggregates=[named("a")])
GPU = provider("gpu", generation=2, parent="host", inventories={"CUSTOM_GPU": Offer(2, 0, 1, 1, 1, 1.0)})
ONE = consumer("one", {"host": {"VCPU": 4, "MEMORY_MB": 512}, "gpu": {"CUSTOM_GPU": 1}})
TWO = consumer("two", {"host": {"VCPU": 2}}, kind=None, generation=1)
START = world(HOST, GPU, ONE, TWO)


@pytest.fixture
def current():
    made = Current(MemoryStore())
    Placement(made)
    return made


def copy(current, there, *, is_dry_run=False, source="there"):
    return run_import(current, there, source=source, is_dry_run=is_dry_run)


def counts(done):
    return [
        (each.created, each.changed, each.removed, each.same, each.ahead) for each in (done.providers, done.consumers)
    ]


def here(current):
    found = world_of(current.state)
    return found.providers, found.consumers


def position(current):
    return current.store.load().position


def test_everything_is_copied_with_its_generations(current):
    done = copy(current, START)
    assert done.verified.is_equal
    assert counts(done) == [(2, 0, 0, 0, 0)] * 2
    assert here(current) == (START.providers, START.consumers)
    assert {"CUSTOM_UNUSED"} <= set(current.state.class_ids)
    assert {"CUSTOM_UNWORN"} <= set(current.state.trait_ids)


def test_a_second_import_writes_nothing(current):
    copy(current, START)
    before = position(current)
    assert counts(copy(current, START)) == [(0, 0, 0, 2, 0)] * 2
    assert position(current) == before


def test_a_dry_run_writes_nothing_and_says_what_it_would(current):
    before = position(current)
    done = copy(current, START, is_dry_run=True)
    assert (counts(done), done.verified, position(current)) == ([(2, 0, 0, 0, 0)] * 2, None, before)


def test_what_changed_there_is_brought(current):
    copy(current, START)
    there = world(
        changed(HOST, name="renamed", generation=11, traits=["CUSTOM_BLUE"], aggregates=[]),
        provider("new", generation=9),
        changed(GPU, parent_uuid=named("new")),
        changed(TWO, generation=2, amounts={named("host"): {"VCPU": 3}}, project_id="q"),
        consumer("three", {"host": {"VCPU": 1}}),
    )
    done = copy(current, there)
    assert counts(done) == [(1, 2, 0, 0, 0), (1, 1, 1, 0, 0)]
    assert done.verified.is_equal
    assert here(current) == (there.providers, there.consumers)
    less = world(changed(HOST, generation=12))
    assert copy(current, less).verified.is_equal
    assert here(current) == (less.providers, {})


def test_what_holds_too_much_or_in_odd_portions_is_copied_as_it_is(current):
    tight = {"VCPU": Offer(2, 1, 2, 2, 2, 1.0), "MEMORY_MB": MIB}
    there = world(provider("host", inventories=tight), changed(ONE, amounts={named("host"): {"VCPU": 5}}), TWO)
    assert copy(current, there).verified.is_equal
    assert here(current) == (there.providers, there.consumers)


def with_two(generation, held, *, host, inventories):
    """Give the world where the second consumer holds something else, and its host offers something else."""
    two = changed(TWO, generation=generation, amounts={named("host"): held})
    return world(changed(HOST, generation=host, inventories=inventories), GPU, ONE, two)


def test_an_excess_that_comes_or_shrinks_later_is_brought_with_its_generation(current):
    copy(current, START)
    tight = {"VCPU": Offer(4, 0, 1, 4, 1, 1.0), "MEMORY_MB": MIB}
    for there in (
        with_two(2, {"VCPU": 4}, host=9, inventories=tight),
        with_two(3, {"VCPU": 3}, host=10, inventories=tight),
    ):
        assert copy(current, there).verified.is_equal
        assert here(current) == (there.providers, there.consumers)


def test_a_class_that_goes_with_those_who_held_it_goes(current):
    copy(current, START)
    one = changed(ONE, generation=4, amounts={named("host"): {"VCPU": 4}})
    there = world(changed(HOST, generation=9, inventories={"VCPU": CORES}), GPU, one, TWO)
    assert copy(current, there).verified.is_equal
    assert here(current) == (there.providers, there.consumers)


def test_what_is_only_here_stays(current):
    copy(current, START)
    copy(current, world(provider("own")), source="elsewhere")
    done = copy(current, START)
    assert counts(done) == [(0, 0, 0, 2, 0)] * 2
    assert named("own") in here(current)[0]


def release(current, name):
    Placement(current).release([named(name)])
    assert current.flush() == [None]


def test_what_changed_only_here_is_left_alone(current):
    copy(current, START)
    release(current, "two")
    done = copy(current, START)
    assert counts(done)[1] == (0, 0, 0, 1, 1)
    assert done.verified.is_equal
    assert named("two") not in here(current)[1]


def refused(current, there):
    """Say why an import is refused, which must write nothing."""
    before = position(current)
    with pytest.raises(Conflict) as error:
        copy(current, there)
    assert position(current) == before
    return str(error.value)


def test_what_changed_here_and_there_is_refused(current):
    copy(current, START)
    release(current, "two")
    told = refused(current, world(HOST, GPU, ONE, changed(TWO, generation=2)))
    assert told == f"nothing was imported: consumer {named('two')} was removed here, and has changed there"
    row = current.state.providers.row_of_uuid[named("host")]
    current.write([PutTraits(current.state.providers.ids[row], 7, [])])
    told = refused(current, world(changed(HOST, generation=9), GPU, ONE, TWO))
    assert told == f"nothing was imported: provider {named('host')} (host) has changed there and here"
    told = refused(current, world(GPU, ONE, TWO))
    assert f"provider {named('host')} (host) has gone there, and changed here" in told


def test_what_is_held_of_nothing_is_refused(current):
    there = world(HOST, consumer("five", {"host": {"DISK_GB": 1}}), consumer("six", {"nowhere": {"VCPU": 1}}))
    told = refused(current, there)
    assert f"consumer {named('five')} holds DISK_GB of provider {named('host')}, which offers none" in told
    assert f"consumer {named('six')} holds VCPU of provider {named('nowhere')}, which offers none" in told


def test_what_is_here_already_and_differs_is_refused(current):
    copy(current, world(changed(HOST, generation=5)), source="elsewhere")
    with pytest.raises(Conflict, match="is here already, and differs"):
        copy(current, START)


def test_what_is_here_already_and_is_the_same_counts_as_copied(current):
    copy(current, START, source="elsewhere")
    assert counts(copy(current, START)) == [(0, 0, 0, 2, 0)] * 2
    assert copy(current, world(HOST, GPU, ONE)).consumers.removed == 1


def test_a_name_that_is_another_providers_here_is_refused(current):
    copy(current, world(changed(provider("other"), name="host")), source="elsewhere")
    with pytest.raises(Conflict, match="would both be called 'host'"):
        copy(current, START)


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def database(request, tmp_path):
    """Give the URL of a database of each kind that can be imported from."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'placement.sqlite'}"
    elif request.param == "postgresql":
        yield request.getfixturevalue("postgres_url")
    else:
        pytest.importorskip("pymysql", reason="the extra mysql is not installed")
        if mariadb.SERVE is None or mariadb.INSTALL is None:
            pytest.skip(mariadb.MISSING)
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
                aggregates=draw.sample((named("a"), named("b")), draw.randrange(3)),
            )
        )
    offering = [each for each in providers if each.inventories]
    consumers = [
        consumer(
            f"c{number}",
            {on.name: dict.fromkeys(on.inventories, draw.randrange(1, 3)) for on in draw.sample(offering, 2)},
            generation=draw.randrange(1, 9),
            kind=draw.choice((None, "INSTANCE", "MIGRATION")),
            project=f"p{draw.randrange(3)}",
            user=f"u{draw.randrange(3)}",
        )
        for number in range(200)
    ]
    return world(*providers, *consumers)


def test_the_tables_of_every_kind_of_database_are_read_and_copied(database, tmp_path):
    there = random_world(Random(1))
    upstream.fill(database, there)
    seen = []
    assert read_sql(database, progress=lambda *done: seen.append(done)) == there
    assert seen[-1][0] == seen[-1][1] > 200
    for _ in range(2):
        done = import_placement(
            database, str(tmp_path / "roost.db"), headers={}, is_dry_run=False, progress=lambda *_: None
        )
        assert done.verified.is_equal
    assert counts(done) == [(0, 0, 0, 60, 0), (0, 0, 0, 200, 0)]


def test_a_copy_is_made_in_postgresql(postgres_url, tmp_path):
    source = f"sqlite:///{tmp_path / 'placement.sqlite'}"
    upstream.fill(source, random_world(Random(2)))
    done = import_placement(source, postgres_url, headers={}, is_dry_run=False, progress=lambda *_: None)
    assert done.verified.is_equal


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("ftp://x/y", BadRequest),
        ("sqlite:////nowhere/placement.sqlite", BadRequest),
        ("postgresql://nobody@127.0.0.1:1/placement", Unavailable),
        ("http://127.0.0.1:1", Unavailable),
        ("x", BadRequest),
    ],
)
def test_a_source_that_cannot_be_read_is_told(source, error, tmp_path):
    with pytest.raises(error):
        import_placement(source, str(tmp_path / "roost.db"), headers={}, is_dry_run=True, progress=lambda *_: None)


def test_a_database_of_something_else_is_refused(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE resource_providers (id INTEGER)")
    with pytest.raises(BadRequest, match="it has no table inventories"):
        read_sql(f"sqlite:///{tmp_path / 'x.db'}", progress=lambda *_: None)
