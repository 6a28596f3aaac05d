"""Roost as the nova-scheduler of an OpenStack: messages in, databases and claims behind, on MariaDB."""

import json
import uuid

import pytest
import sqlalchemy

from tests.nova.nova_clouds import NovaCloud, SceneOfTest, new_database, new_uuid
from tests.nova.rpc_callers import SECRET
from tests.support.databases import mariadb
from tests.support.fleets.products import roost
from tests.support.missing_programs import require_module, skip_test
from tests.support.nova_messages import cell_mapping, destination, instance_group, nova_object
from tests.support.wait import wait_until

PASSWORD = "s3cret-of-the-database"
TOO_FEW = "There are not enough hosts available."
ISOLATION = {"scheduler": {"enable_isolated_aggregate_filtering": "true"}}


@pytest.fixture(scope="module")
def new_url():
    """Return a function that creates a database on MariaDB, and returns its URLs: to write, and to read."""
    require_module("pymysql", extra="nova")
    if mariadb.SERVE is None or mariadb.INSTALL is None:
        skip_test(mariadb.MISSING)
    with mariadb.server() as server:
        engine = sqlalchemy.create_engine(server)
        with engine.begin() as connection:
            connection.exec_driver_sql(f"CREATE USER nova@localhost IDENTIFIED BY '{PASSWORD}'")

        def new_url():
            name = f"nova_{uuid.uuid4().hex}"
            with engine.begin() as connection:
                connection.exec_driver_sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
                connection.exec_driver_sql(f"GRANT SELECT ON {name}.* TO nova@localhost")
            url = server.replace("/placement?", f"/{name}?")
            return url, url.replace("//root@", f"//nova:{PASSWORD}@")

        yield new_url
        engine.dispose()


@pytest.fixture(scope="module")
def cloud(new_url, shared_broker, tmp_path_factory):
    """Yield a cloud with one cell, and Roost as its nova-scheduler. Its database user can only read."""
    api_url, read_url = new_url()
    cloud = NovaCloud(
        tmp_path_factory.mktemp("cloud"),
        shared_broker.add_virtual_host(f"nova-{uuid.uuid4().hex[:8]}"),
        new_database(api_url),
        api_url=read_url,
        options=ISOLATION,
    )
    cell_url, mapping_url = new_url()
    cloud.database.add_cell(cell_url, mapping_url=mapping_url)
    with cloud.served():
        yield cloud
    cloud.close()


@pytest.fixture
def scene(cloud):
    """Return three hosts of this test, and requests that accept no others."""
    (cell,) = list(cloud.database.cells)[:1]
    return SceneOfTest(cloud, cell, count=3)


def hosts_of(selections):
    return [[each["service_host"] for each in instance] for instance in selections]


def test_server_gets_a_host_with_its_claim_and_its_alternates(scene, cloud):
    number = new_uuid()
    ((first, *alternates),) = scene.select(number)
    assert sorted(each["service_host"] for each in (first, *alternates)) == scene.hosts
    claim = json.loads(first["allocation_request"])["allocations"]
    assert cloud.allocations(number) == {uuid: each["resources"] for uuid, each in claim.items()}
    assert set(claim) == {first["compute_node_uuid"]} == {scene.nodes[first["service_host"]]}
    assert first["cell_uuid"] == scene.cell


def test_three_servers_at_once_get_a_host_each(scene, cloud):
    numbers = [new_uuid() for _ in range(3)]
    selections = scene.select(*numbers, alternates=False)
    assert sorted(hosts_of(selections)) == [[host] for host in scene.hosts]
    assert all(cloud.allocations(number) for number in numbers)


def test_request_for_more_than_there_is_claims_nothing(scene, cloud):
    numbers = [new_uuid() for _ in range(4)]
    assert scene.refuse(*numbers, vcpus=8) == TOO_FEW
    assert [cloud.allocations(number) for number in numbers] == [{}] * 4
    assert scene.refuse(numbers[0], vcpus=9) == ""


def test_anti_affinity_holds_over_several_calls(scene):
    numbers = [new_uuid() for _ in range(4)]
    group = instance_group(new_uuid(), "anti-affinity", *numbers)
    chosen = [scene.host_of(number, instance_group=group) for number in numbers[:3]]
    assert sorted(chosen) == scene.hosts
    assert scene.refuse(numbers[3], instance_group=group) == TOO_FEW


def test_members_that_nova_placed_itself_count(scene, cloud):
    member, other = new_uuid(), new_uuid()
    host = scene.hosts[1]
    scene.claim(member, host)
    cloud.database.add_instance(scene.cell, host, uuid=member)
    scene.wait_for_instances(host)
    group = instance_group(new_uuid(), "affinity", member, other)
    assert scene.host_of(other, instance_group=group) == host


def test_resize_stays_in_its_cell_and_leaves_its_host(scene, cloud):
    number, migration = new_uuid(), new_uuid()
    source = scene.host_of(number)
    cloud.database.add_instance(scene.cell, source, uuid=number)
    scene.move_allocations(number, migration)
    target = destination(cell=cell_mapping(scene.cell, password=PASSWORD), allow_cross_cell_move=False)
    ((first, *alternates),) = scene.select(number, vcpus=2, requested_destination=target, ignore_hosts=[source])
    assert source not in {first["service_host"], *(each["service_host"] for each in alternates)}
    assert list(cloud.allocations(migration)) == [scene.nodes[source]]
    assert list(cloud.allocations(number)) == [first["compute_node_uuid"]]
    elsewhere = destination(cell=cell_mapping(new_uuid(), password=PASSWORD), allow_cross_cell_move=False)
    assert scene.refuse(new_uuid(), requested_destination=elsewhere) == TOO_FEW


def test_requested_and_forced_hosts_are_chosen(scene):
    for host in scene.hosts:
        assert scene.host_of(new_uuid(), requested_destination=destination(host=host, node=None)) == host
        assert scene.host_of(new_uuid(), requested_destination=destination(node=host)) == host
        assert scene.host_of(new_uuid(), force_hosts=[host]) == host
    reason = scene.refuse(new_uuid(), requested_destination=destination(host="nowhere", node=None))
    assert reason == "No such host - host: nowhere node: None "


def test_disabled_service_is_not_chosen(scene, cloud):
    kept = scene.hosts[0]
    for host in scene.hosts[1:]:
        cloud.database.set_service(scene.cell, host, disabled=True, disabled_reason="repair")
    scene.wait_for(lambda hosts: [host for host in scene.hosts if not hosts[host]["disabled"]] == [kept])
    assert {scene.host_of(new_uuid()) for _ in range(4)} == {kept}
    cloud.database.set_service(scene.cell, kept, forced_down=True)
    scene.wait_for(lambda hosts: hosts[kept]["forced_down"])
    assert scene.refuse(new_uuid()) == TOO_FEW


def test_dead_service_is_not_chosen_until_it_reports_again(scene, cloud):
    for host in scene.hosts:
        cloud.database.kill_service(scene.cell, host, since_s=2 * 3600)
        cloud.database.set_service(scene.cell, host)
    scene.wait_for(lambda hosts: not any(hosts[host]["up"] for host in scene.hosts))
    assert scene.refuse(new_uuid()) == TOO_FEW
    cloud.database.report(scene.cell, scene.hosts[2])
    scene.wait_for(lambda hosts: hosts[scene.hosts[2]]["up"])
    assert scene.host_of(new_uuid()) == scene.hosts[2]


def test_host_without_a_mapping_is_never_chosen(scene, cloud):
    late = scene.add_host("late", mapped=False, waits=False)
    for _ in range(4):
        assert scene.host_of(new_uuid(), ignore_hosts=[late]) != late
    unmapped = {"requested_destination": destination(host=late, node=None)}
    assert scene.refuse(new_uuid(), **unmapped) == f"No such host - host: {late} node: None "
    cloud.database.map_host(scene.cell, late)
    cloud.wait_for_hosts(late)
    assert scene.host_of(new_uuid(), **unmapped) == late
    cloud.database.unmap_host(late)
    scene.wait_for(lambda hosts: hosts[late]["disabled"])
    assert scene.refuse(new_uuid(), **unmapped) == TOO_FEW


def test_host_added_while_the_service_runs_is_chosen(scene):
    new = scene.add_host("new", totals={"VCPU": 64, "MEMORY_MB": 65536, "DISK_GB": 900})
    assert scene.host_of(new_uuid(), vcpus=32) == new


def test_isolated_aggregate_follows_its_metadata(scene, cloud):
    isolated = scene.hosts[0]
    trait = scene.add_trait()
    aggregate = cloud.database.add_aggregate(f"a-{trait}", hosts=[isolated])
    cloud.set_aggregates(scene.nodes[isolated], aggregate)
    others = {scene.host_of(new_uuid(), ignore_hosts=scene.hosts[1:])}
    assert others == {isolated}
    cloud.database.set_metadata(aggregate, {f"trait:{trait}": "required"})
    scene.cast_aggregate(aggregate)
    wait_until(lambda: cloud.metadata_of(aggregate))
    assert scene.refuse(new_uuid(), ignore_hosts=scene.hosts[1:]) == TOO_FEW
    cloud.database.delete_aggregate(aggregate)
    cloud.cast("delete_aggregate", "4.1", {"aggregate": nova_object("Aggregate", "1.3", uuid=aggregate)})
    wait_until(lambda: not cloud.metadata_of(aggregate))
    assert scene.host_of(new_uuid(), ignore_hosts=scene.hosts[1:]) == isolated


def test_rebuild_checks_its_host_and_claims_nothing(scene, cloud):
    number = new_uuid()
    host = scene.host_of(number)
    before = cloud.allocations(number)
    check = {"scheduler_hints": {"_nova_check_type": ["rebuild"]}, "force_hosts": [host], "force_nodes": [host]}
    ((first,),) = scene.select(number, alternates=False, **check)
    assert (first["service_host"], first["allocation_request"]) == (host, "null")
    assert cloud.allocations(number) == before


def test_evacuated_server_holds_both_hosts(scene, cloud):
    number = new_uuid()
    source = scene.host_of(number)
    cloud.database.add_instance(scene.cell, source, uuid=number)
    cloud.database.set_service(scene.cell, source, forced_down=True)
    scene.wait_for(lambda hosts: hosts[source]["forced_down"])
    target = scene.host_of(
        number,
        ignore_hosts=[source],
        alternates=False,
        requested_destination=destination(cell=cell_mapping(scene.cell, password=PASSWORD)),
    )
    assert target != source
    assert set(cloud.allocations(number)) == {scene.nodes[source], scene.nodes[target]}


def test_server_on_an_alternate_after_a_failed_build_counts_there(scene, cloud):
    number, other = new_uuid(), new_uuid()
    ((_, alternate, *_),) = scene.select(number)
    cloud.release(number)
    host = alternate["service_host"]
    scene.claim(number, host)  # The conductor of the cell claims the alternate itself.
    cloud.database.add_instance(scene.cell, host, uuid=number)
    scene.wait_for_instances(host)
    group = instance_group(new_uuid(), "affinity", number, other)
    assert scene.host_of(other, instance_group=group) == host


def test_cell_whose_database_is_away_stops_no_other_cell(scene, cloud, new_url):
    url, mapping_url = new_url()
    second = cloud.database.add_cell(url, name="cell2", mapping_url=mapping_url)
    far = scene.add_host("far", cell=second)
    assert scene.host_of(new_uuid(), requested_destination=destination(host=far)) == far
    away = mapping_url.replace("/nova_", "/gone_")
    cloud.database.set_cell(second, database_connection=away)
    wait_until(lambda: "cell_silent" in cloud.server.said)
    cloud.database.kill_service(scene.cell, scene.hosts[0], since_s=2 * 3600)
    cloud.database.set_service(scene.cell, scene.hosts[0])
    scene.wait_for(lambda hosts: not hosts[scene.hosts[0]]["up"])
    assert scene.host_of(new_uuid(), ignore_hosts=[far]) in scene.hosts[1:]
    cloud.database.set_cell(second, disabled=True)


def test_operator_sees_hosts_and_reasons(scene, cloud, tmp_path):
    granted, refused = new_uuid(), new_uuid()
    host = scene.host_of(granted)
    scene.refuse(refused, vcpus=8, ignore_hosts=scene.hosts)
    url = ("--url", cloud.server.address)
    assert host in roost("why", granted, *url, cwd=tmp_path).stdout
    explained = roost("why", refused, *url, cwd=tmp_path).stdout
    assert "refused: " in explained
    assert f"ignored hosts {', '.join(scene.hosts)}" in explained
    listed = roost("host", "list", *url, cwd=tmp_path).stdout
    assert all(each in listed for each in scene.hosts)


def test_no_secret_reaches_the_log_or_the_database(scene, cloud):
    target = destination(cell=cell_mapping(scene.cell, password="of-the-message"))
    scene.host_of(new_uuid(), requested_destination=target)
    files = [path for path in cloud.folder.iterdir() if path.name.startswith("roost.db")]
    assert files
    for content in (cloud.server.said.encode(), *(path.read_bytes() for path in files)):
        for secret in (SECRET, PASSWORD, "of-the-message", "guest:guest"):
            assert secret.encode() not in content
