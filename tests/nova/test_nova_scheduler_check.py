"""``roost nova-scheduler --check`` with a real broker, databases of a Nova, and a Placement."""

import json
from contextlib import closing

import pytest

from roost.machine import SystemClock
from roost.model.settings.roost_settings import Store
from roost.store.backends import open_store
from tests.support.servers.in_process_api import placement_api
from tests.support.servers.keystones import SERVICE_PASSWORD, keystone
from tests.support.servers.neutrons import neutron
from tests.support.servers.nova_database import NovaDatabase
from tests.support.servers.servers import serve

pytestmark = pytest.mark.long
PASSWORD = "s3cret"
HOST = "checks"
HOSTS = ("cmp1", "cmp2")


@pytest.fixture(scope="module")
def transport_url(shared_broker):
    """Return the URL of a virtual host that nova-scheduler has used, with a user of its own."""
    host = shared_broker.add_virtual_host(HOST)
    shared_broker.control("add_user", "nova", PASSWORD)
    shared_broker.control("set_permissions", "-p", HOST, "nova", ".*", ".*", ".*")
    with closing(host.connect()) as connection:
        channel = connection.channel()
        channel.exchange_declare("nova", "topic", auto_delete=False)
        channel.queue_declare("scheduler", auto_delete=False)
    return f"rabbit://nova:{PASSWORD}@127.0.0.1:{shared_broker.port}/{HOST}"


@pytest.fixture
def nova(tmp_path):
    """Yield a Nova with two hosts in an aggregate."""
    database = NovaDatabase(f"sqlite:///{tmp_path / 'api'}", clock=SystemClock())
    database.cell_uuid = database.add_cell(f"sqlite:///{tmp_path / 'cell'}")
    database.uuids = {host: database.add_host(database.cell_uuid, host) for host in HOSTS}
    database.fast = database.add_aggregate("fast", hosts=["cmp1"])
    yield database
    database.close()


@pytest.fixture
def conf(nova, tmp_path, transport_url):
    """Return the path of a nova.conf; a test may add lines."""
    path = tmp_path / "nova.conf"
    path.write_text(f"[api_database]\nconnection = {nova.api_url}\n[DEFAULT]\ntransport_url = {transport_url}\n")
    return path


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def check(run, conf, data, monkeypatch, tmp_path):
    """Return a function that runs the check and returns exit code and findings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROOST_CONFIG", raising=False)

    def check(*words, data=data):
        code, output, error = run("nova-scheduler", "--check", "--nova-conf", conf, "--data", data, "--json", *words)
        assert PASSWORD not in output + error
        return code, json.loads(output)

    return check


def fill(api, nova):
    """Create the providers of the hosts as nova-compute does."""
    for host, uuid in nova.uuids.items():
        path = f"/resource_providers/{uuid}"
        assert api.post("/resource_providers", {"name": host, "uuid": uuid}).status == 200
        body = {"traits": ["OWNER_NOVA"], "resource_provider_generation": 0}
        assert api.put(f"{path}/traits", body).status == 200
        members = [nova.fast] if host == "cmp1" else []
        assert api.put(f"{path}/aggregates", {"aggregates": members, "resource_provider_generation": 1}).status == 200


@pytest.fixture
def imported(data, nova):
    """Put the providers into the database of Roost."""
    with closing(open_store(str(data / "roost.db"), settings=Store())) as store, placement_api(store) as api:
        fill(api, nova)


def bad(findings):
    return [(each["level"], each["part"], each["found"]) for each in findings if each["level"] != "ok"]


@pytest.mark.usefixtures("imported")
def test_good_deployment_gives_only_ok(check):
    code, findings = check()
    assert (code, bad(findings)) == (0, [])
    found = [each["found"] for each in findings]
    assert "queue scheduler exists, with the flags of the options: 0 consumers, 0 messages" in found
    assert "cell cell1: 2 compute nodes: 2 up, 0 down, 0 disabled" in found
    assert "Roost's own Placement is readable: 2 of 2 compute nodes have their provider" in found
    assert "1 aggregate with the same members in Nova and Placement" in found


def test_other_placement_is_compared(check, nova, tmp_path):
    folder = tmp_path / "remote"
    folder.mkdir()
    with closing(open_store(str(folder / "roost.db"), settings=Store())) as store, placement_api(store) as api:
        fill(api, nova)
        api.put(
            f"/resource_providers/{nova.uuids['cmp2']}/aggregates",
            {"aggregates": [nova.fast], "resource_provider_generation": 2},
        )
        assert api.post("/resource_providers", {"name": "old"}).status == 200
    with serve(folder=folder, settings='auth_strategy = "noauth2"') as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROOST_PLACEMENT_TOKEN", "admin")
        code, findings = check("--placement", server.address)
    assert code == 0
    assert bad(findings) == [
        ("warning", "placement", "1 root provider without a compute node: old"),
        ("warning", "placement", "aggregate fast: Placement has also cmp2"),
    ]


def test_check_logs_in_at_another_placement_by_nova_conf(check, conf, nova, tmp_path):
    folder = tmp_path / "remote"
    folder.mkdir()
    with closing(open_store(str(folder / "roost.db"), settings=Store())) as store, placement_api(store) as api:
        fill(api, nova)
    with keystone() as (auth_url, identity):
        login = f"auth_type = password\nauth_url = {auth_url}\nusername = nova\npassword = {SERVICE_PASSWORD}\n"
        login += "project_name = service\nuser_domain_name = Default\nproject_domain_name = Default\n"
        own = folder / "placement.conf"
        own.write_text(f"[api]\nauth_strategy = keystone\n[keystone_authtoken]\n{login}")
        with conf.open("a") as file:
            file.write(f"[placement]\n{login}")
        with serve("--conf", own, folder=folder) as server:
            identity.placement = server.address
            code, findings = check("--placement", "catalog")
    assert (code, bad(findings)) == (0, [])
    assert identity.logins == 2  # of the server, and of the check


def test_unreachable_placement_is_an_error(check):
    code, findings = check("--placement", "http://127.0.0.1:1")
    assert code == 8
    ((level, part, found),) = bad(findings)
    assert (level, part) == ("error", "placement")
    assert "Connection refused" in found


def test_empty_placement_is_an_error_and_no_database_is_created(check, data):
    code, findings = check()
    assert (code, bad(findings)) == (8, [("error", "placement", "Roost's own Placement is empty")])
    assert list(data.iterdir()) == []


@pytest.mark.usefixtures("imported")
def test_all_wrong_settings_are_reported_at_once(check, conf, tmp_path):
    with conf.open("a") as file:
        file.write("service_down_time = 0\n[scheduler]\nmax_attempts = many\ndiscover_hosts_in_cells_interval = 60\n")
    (tmp_path / "roost.toml").write_text("[nova]\ncalls_max = 0\n")
    code, findings = check()
    assert code == 8
    found = bad(findings)
    assert found.pop() == ("warning", "placement", "not checked: the settings have errors")
    assert {part for _, part, _ in found} == {"settings"}
    text = "\n".join(found for _, _, found in found)
    assert "max_attempts: must be a whole number, got 'many'" in text
    assert "nova.calls_max: must be 1..10000, got 0" in text
    assert text.count("service_down_time") == 1, text
    assert "nova-scheduler maps new hosts to cells every 60 s, Roost does not" in text
    assert [each["part"] for each in findings].count("broker") == 3  # The other parts are checked all the same.


@pytest.mark.usefixtures("imported")
def test_unknown_filter_is_an_error(check, conf):
    with conf.open("a") as file:
        file.write("[filter_scheduler]\nenabled_filters = ComputeFilter, my_site.NoSuchFilter\n")
    code, findings = check()
    assert code == 8
    level, part, found = bad(findings)[0]
    assert (level, part) == ("error", "settings")
    assert "NoSuchFilter" in found


@pytest.mark.usefixtures("imported")
def test_routed_networks_need_a_neutron(check, conf):
    text = conf.read_text() + "[scheduler]\nquery_placement_for_routed_network_aggregates = yes\n"
    conf.write_text(text)
    code, findings = check()
    assert code == 8
    ((level, part, found),) = bad(findings)
    assert (level, part) == ("error", "neutron")
    assert "[neutron] auth_type: is missing: [scheduler] query_placement_for_routed_network_aggregates needs" in found
    with neutron() as network:
        conf.write_text(f"{text}[neutron]\nauth_type = none\nendpoint_override = {network.url}\n")
        code, findings = check()
        assert (code, bad(findings)) == (0, [])
        assert findings[-1]["found"] == f"Neutron at {network.url} answers; login works"


@pytest.mark.usefixtures("imported")
def test_wrong_password_of_the_broker(check, conf):
    conf.write_text(conf.read_text().replace(PASSWORD, f"{PASSWORD}2"))
    code, findings = check()
    assert code == 8
    assert [(level, part) for level, part, _ in bad(findings)] == [("error", "broker")]


@pytest.mark.usefixtures("imported")
def test_brokers_of_notifications_are_checked_too(check, conf, transport_url):
    section = "[oslo_messaging_notifications]\ndriver = messagingv2\ndriver = log\ntransport_url ="
    before = conf.read_text()
    conf.write_text(f"{before}{section} {transport_url.replace(PASSWORD, 'wrong')}\n")
    code, found = check()
    problems = [(each["part"], each["found"]) for each in found if each["level"] == "warning"]
    assert ("settings", "nova-scheduler sends notifications with driver log, Roost does not") in problems
    assert any(part == "broker" and text.endswith(": the login is refused") for part, text in problems)
    assert code == 0
    conf.write_text(f"{before}{section} {transport_url}\n")
    _, found = check()
    assert sum("login works" in each["found"] for each in found) == 1


@pytest.mark.usefixtures("imported")
def test_warnings_do_not_change_the_exit_code(check, nova):
    nova.kill_service(nova.cell_uuid, "cmp1")
    code, findings = check()
    assert (code, bad(findings)) == (0, [("warning", "databases", "1 compute node down in cell cell1: cmp1")])


@pytest.mark.usefixtures("imported")
def test_cell_that_cannot_be_read_is_one_error(check, nova):
    nova.add_cell("sqlite://", name="cell2", mapping_url=f"mysql://nova:{PASSWORD}@127.0.0.1:1/nova")
    code, findings = check()
    assert code == 8
    ((level, part, found),) = bad(findings)
    assert (level, part) == ("error", "databases")
    assert "the database of cell cell2 cannot be read: " in found


def test_table_ends_with_numbers(run, conf, data, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, output, error = run("nova-scheduler", "--check", "--nova-conf", conf, "--data", data)
    assert code == 8
    assert output.splitlines()[0].split() == ["level", "part", "found", "advice"]
    assert output.endswith("\n1 error, 0 warnings\n")
    assert error == "roost: the check found 1 error\n"


def test_check_needs_a_nova_conf(run, monkeypatch):
    monkeypatch.delenv("ROOST_NOVA_CONF", raising=False)
    code, _, error = run("nova-scheduler", "--check")
    assert (code, error) == (3, "roost: --check: needs a nova.conf: name it with --nova-conf\n")


def test_malformed_file_is_one_error(run, conf, data):
    conf.write_text("[DEFAULT\n")
    code, output, error = run("nova-scheduler", "--check", "--nova-conf", conf, "--data", data, "--json")
    assert (code, error) == (8, "roost: the check found 1 error\n")
    assert output.count("a section is not closed, or has no name") == 1


def test_options_of_output_need_the_check(run):
    code, _, error = run("nova-scheduler", "--json")
    assert code == 2
    assert "need --check" in error


@pytest.mark.usefixtures("imported")
def test_part_of_a_password_after_a_dollar_is_not_shown(run, conf, data):
    conf.write_text(conf.read_text().replace(f":{PASSWORD}@", ":pa$secretword@"))
    code, output, error = run("nova-scheduler", "--check", "--nova-conf", conf, "--data", data, "--json")
    assert code == 8
    assert "transport_url: [DEFAULT] transport_url refers to an option which is not set; write $ as $$" in output
    assert "secretword" not in output + error
