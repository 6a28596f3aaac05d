import sqlite3
from contextlib import closing

import pytest

from bench.peers import worlds
from bench.peers.asking import difference
from bench.peers.rows import PARTS, Line
from roost.app import open_roost
from tests.support.fleets.products import ROOT


def answer(*providers):
    """Return an answer with one candidate for each provider."""
    return {"allocation_requests": [{"allocations": {each: {}}} for each in providers], "provider_summaries": {}}


def test_order_of_candidates_is_not_a_difference():
    assert difference(answer("a", "b"), answer("b", "a"), None) is None
    assert difference(answer("a"), answer("b"), None) == "the answers differ"


def test_limited_answers_may_hold_any_valid_candidates():
    everything = answer("a", "b", "c")
    assert difference(answer("a"), answer("b"), everything) is None
    assert difference(answer("a"), answer("b", "c"), everything) == "1 candidates, and 2"
    assert "'d'" in difference(answer("a"), answer("d"), everything)


def test_ratio_is_the_speedup_of_roost():
    assert Line(row="x", theirs_ms=30.0, ours_ms=2.0, wanted=10).ratio == 15.0


def test_both_databases_hold_the_same_providers(tmp_path):
    world = [*worlds.flat(3), *worlds.nested(2, children=2)]
    worlds.write_ours(world, tmp_path / "ours")
    theirs = tmp_path / "theirs.sqlite"
    with closing(sqlite3.connect(theirs)) as connection:
        connection.executescript(TABLES)
    worlds.write_theirs(world, theirs)
    with open_roost(None, tmp_path / "ours") as roost, closing(sqlite3.connect(theirs)) as connection:
        providers = roost.state.providers
        ours = {
            (providers.uuids[row], providers.names[row], providers.generation.each[row], providers.uuids[root])
            for row, root in enumerate(providers.root.view.tolist())
        }
        select = "select p.uuid, p.name, p.generation, r.uuid from resource_providers p"
        query = f"{select} join resource_providers r on r.id = p.root_provider_id"
        assert set(connection.execute(query)) == ours
        counts = [connection.execute(f"select count(*) from {table}").fetchone()[0] for table in COUNTED]
    assert counts == [5 * 3 + 4, 3, 3, 1]


# The tables of the reference that are written, with its column names.
COUNTED = ("inventories", "placement_aggregates", "resource_provider_aggregates", "resource_provider_traits")
TABLES = """
create table resource_providers (id, uuid, name, generation, root_provider_id, parent_provider_id, created_at);
create table inventories (
    resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio,
    created_at
);
create table placement_aggregates (id, uuid, created_at);
create table resource_provider_aggregates (resource_provider_id, aggregate_id, created_at);
create table resource_provider_traits (resource_provider_id, trait_id, created_at);
create table resource_classes (id, name);
create table traits (id, name);
insert into resource_classes values (0, 'VCPU'), (1, 'MEMORY_MB'), (2, 'DISK_GB'), (10, 'VGPU');
insert into traits values (1, 'HW_CPU_X86_AVX2');
"""


@pytest.mark.parametrize("name", PARTS)
def test_each_part_of_the_table_is_documented(name):
    assert f"`{name}`" in (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")
