"""``roost.PlacementDirect``, with keystoneauth1 and without."""

import gc
import subprocess
import sys
import threading
import types

import msgspec
import pytest

import roost
from roost.direct.direct_client import Client
from roost.errors import BadRequest, BadSettings, StoreBusy, Unavailable
from roost.model.settings.roost_settings import Settings, Store

UUID = "4e8e5957-649f-477b-9e5b-f1f75b21c03c"


@pytest.fixture(params=["keystoneauth", "own"])
def kind(request, monkeypatch):
    """Return the kind of client: the one of keystoneauth1, or our own without it."""
    if request.param == "keystoneauth":
        pytest.importorskip("keystoneauth1", reason="the extra keystone is not installed")
    else:
        # A None in sys.modules makes the import fail.
        for name in ("keystoneauth1.adapter", "keystoneauth1", "requests"):
            monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, "roost.direct.keystone_adapter", raising=False)
    return request.param


@pytest.mark.shows("S130")
def test_provider_is_created_and_read_back(kind):
    with roost.PlacementDirect("sqlite://") as client:
        assert isinstance(client, Client) == (kind == "own")
        created = client.post("/resource_providers", json={"name": "one", "uuid": UUID}, microversion="1.20")
        assert (created.status_code, created.json()["uuid"]) == (200, UUID)
        assert created.headers["Location"].endswith(f"/resource_providers/{UUID}")
        reply = client.get(f"/resource_providers/{UUID}", microversion="1.20")
        assert reply.json() == created.json()
        assert reply.headers["openstack-api-version"] == "placement 1.20"


@pytest.mark.usefixtures("kind")
def test_error_status_is_returned_as_a_response():
    with roost.PlacementDirect("sqlite://") as client:
        missing = client.get("/resource_providers/none", microversion="1.23")
        assert missing.status_code == 404
        assert missing.json()["errors"][0]["code"] == "placement.undefined_code"
        assert "none" in missing.text


@pytest.mark.parametrize(("latest", "version"), [(False, "1.0"), (True, "1.39")])
@pytest.mark.usefixtures("kind")
def test_default_microversion_is_the_oldest_or_the_latest(latest, version):
    with roost.PlacementDirect("sqlite://", latest_microversion=latest) as client:
        answer = client.get("/resource_providers")
        assert answer.headers["openstack-api-version"] == f"placement {version}"


@pytest.mark.usefixtures("kind")
def test_escaped_query_and_params_find_the_same_provider():
    with roost.PlacementDirect("sqlite://", latest_microversion=True) as client:
        client.post("/resource_providers", json={"name": "a b&ü", "uuid": UUID})
        providers = client.get("/resource_providers?name=a%20b%26%C3%BC").json()["resource_providers"]
        assert [each["uuid"] for each in providers] == [UUID]
        assert client.get("/resource_providers", params={"name": "a b&ü"}).json()["resource_providers"] == providers


@pytest.mark.usefixtures("kind")
def test_headers_of_the_caller_take_precedence():
    with roost.PlacementDirect("sqlite://") as client:
        assert client.get("/resource_providers", headers={"x-auth-token": "bob"}).status_code == 403


@pytest.mark.shows("S130")
@pytest.mark.usefixtures("kind")
def test_exit_ends_all_threads_and_leaves_only_the_database(tmp_path):
    path, before = tmp_path / "roost.db", threading.active_count()
    for _ in range(2):  # The second one finds the lock free.
        with roost.PlacementDirect(str(path)) as client:
            assert client.get("/resource_providers").status_code == 200
            assert threading.active_count() > before
        assert threading.active_count() == before
    gc.collect()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["roost.db", "roost.db.lock"]
    with pytest.raises(Unavailable):
        client.get("/resource_providers")


@pytest.mark.usefixtures("kind")
def test_failed_block_releases_the_database(tmp_path):
    with pytest.raises(ZeroDivisionError), roost.PlacementDirect(tmp_path / "roost.db"):
        raise ZeroDivisionError
    with roost.PlacementDirect(tmp_path / "roost.db"):
        pass


@pytest.mark.usefixtures("kind")
def test_threads_send_requests_concurrently():
    with roost.PlacementDirect("sqlite://", latest_microversion=True) as client:
        created = []
        threads = [
            threading.Thread(
                target=lambda number=number: created.append(
                    client.post("/resource_providers", json={"name": f"n{number}"}).status_code
                )
            )
            for number in range(8)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert created == [200] * 8
        assert len(client.get("/resource_providers").json()["resource_providers"]) == 8


def configurations(folder):
    """Return one configuration of each kind, all for the same database."""
    path = folder / "one.db"
    (folder / "roost.toml").write_text(f'[store]\nurl = "sqlite:///{path}"\n')
    (folder / "placement.conf").write_text(f"[placement_database]\nconnection = sqlite:///{path}\n[api]\n")
    loaded = types.SimpleNamespace(placement_database=types.SimpleNamespace(connection=f"sqlite:///{path}"))
    return [
        path,
        str(path),
        f"sqlite:///{path}",
        str(folder / "roost.toml"),
        folder / "placement.conf",
        msgspec.structs.replace(Settings(), store=Store(url=f"sqlite:///{path}")),
        loaded,
    ]


def test_every_kind_of_configuration_names_the_same_database(tmp_path):
    for number, config in enumerate(configurations(tmp_path)):
        with roost.PlacementDirect(config, latest_microversion=True) as client:
            assert len(client.get("/resource_providers").json()["resource_providers"]) == number
            client.post("/resource_providers", json={"name": f"n{number}"})


def test_loaded_oslo_configuration_names_the_database(tmp_path):
    cfg = pytest.importorskip("oslo_config.cfg", reason="the extra keystone is not installed")
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.StrOpt("connection")], group="placement_database")
    conf([], project="roost-test", default_config_files=[])
    conf.set_override("connection", f"sqlite:///{tmp_path / 'one.db'}", group="placement_database")
    with roost.PlacementDirect(conf) as client:
        assert client.get("/resource_providers").status_code == 200
    assert (tmp_path / "one.db").exists()


def test_api_settings_come_from_the_configuration(tmp_path):
    (tmp_path / "placement.conf").write_text(
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/a.db\n[api]\nauth_strategy = keystone\n"
        "[oslo_policy]\npolicy_file = rules.yaml\n"
    )
    (tmp_path / "rules.yaml").write_text('"placement:traits:list": "!"\n')
    loaded = types.SimpleNamespace(
        placement_database=types.SimpleNamespace(connection="sqlite://"),
        oslo_policy=types.SimpleNamespace(policy_file=str(tmp_path / "rules.yaml"), enforce_new_defaults=False),
        placement=types.SimpleNamespace(max_allocation_candidates=5),
    )
    for config in (tmp_path / "placement.conf", loaded):
        with roost.PlacementDirect(config, latest_microversion=True) as client:
            assert client.get("/traits").status_code == 403
            assert client.get("/resource_classes").status_code == 200


@pytest.mark.parametrize("config", [None, 5, types.SimpleNamespace(), "oracle://a@b/c", "notes.txt", "no.conf"])
def test_a_configuration_that_names_no_database_is_refused(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(BadSettings), roost.PlacementDirect(config):
        pass


def test_database_file_in_use_is_refused(tmp_path):
    with (
        roost.PlacementDirect(tmp_path / "roost.db"),
        pytest.raises(StoreBusy),
        roost.PlacementDirect(tmp_path / "roost.db"),
    ):
        pass


@pytest.mark.usefixtures("kind")
def test_client_works_on_postgresql(postgres_url):
    with roost.PlacementDirect(postgres_url, latest_microversion=True) as client:
        assert client.post("/resource_providers", json={"name": "one"}).status_code == 200


def test_package_import_loads_no_submodules():
    code = "import sys, roost; sys.exit(any(name.startswith('roost.') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.usefixtures("kind")
def test_context_is_reusable_but_not_reentrant():
    before = threading.active_count()
    context = roost.PlacementDirect("sqlite://", latest_microversion=True)
    with context as client:
        client.post("/resource_providers", json={"name": "one", "uuid": UUID})
        with pytest.raises(BadRequest, match="already open"):
            context.__enter__()
        assert client.get(f"/resource_providers/{UUID}").status_code == 200
    context.__exit__(None, None, None)
    assert threading.active_count() == before
    with context as client:
        assert client.get(f"/resource_providers/{UUID}").status_code == 404
