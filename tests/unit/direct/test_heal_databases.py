"""Healing on both databases, and the error for an unreadable flavor."""

from contextlib import closing

import msgspec
import pytest

from roost import PlacementDirect
from roost.direct.direct_report import DirectHttp
from roost.direct.heal_allocations import HealOptions, HealResult, heal
from roost.errors import StoreBroken
from roost.fleet.stored_documents import document_of
from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.host import HostSpec
from roost.model.names import uuid_bytes
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.work.work_rows import Put
from roost.store.backends import open_store
from tests.contract.stores import commit, item
from tests.support.agents.report_clients import World
from tests.support.conductors.work_rows import status
from tests.support.fleets.worlds import roost_on

FLAVOR = Flavor(
    name="mixed",
    vcpus=2,
    memory_mb=512,
    root_gb=2,
    swap=1,
    extra_specs={"hw:cpu_policy": "dedicated", "resources:CUSTOM_CARD": "1", "resources1:CUSTOM_CARD": "1"},
)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Return the URL of a database with one host."""
    address = str(tmp_path / "roost.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with PlacementDirect(address) as client:
        world = World(DirectHttp(client))
        world.ask("PUT", "/resource_classes/CUSTOM_CARD")
        world.provider("host", PCPU=4, MEMORY_MB=4096, DISK_GB=10, CUSTOM_CARD=4)
    spec = HostSpec(provider_uuid=world.u("host"), host="host", node=world.n("host"))
    with closing(open_store(address, settings=StoreSettings())) as store:
        roost_on(store).install(Fleet(hosts=[spec]))
    return address


def populate(url, *, flavor=b"", is_bfv=False):
    """Store an active instance without allocations on the host; return its UUID."""
    body = flavor or msgspec.json.encode(FLAVOR)
    request = Request(flavor=FLAVOR, is_bfv=is_bfv).body()
    documents = [document_of("flavor", body, body), document_of("request", request, request)]
    uuid = World(None).u("lost")
    row = status(
        1,
        uuid=uuid_bytes(uuid),
        status="ACTIVE",
        task="",
        node=World(None).n("host"),
        host="host",
        flavor_id=documents[0].id,
        request_id=documents[1].id,
    )
    with closing(open_store(url, settings=StoreSettings())) as store:
        assert commit(store, item(*documents, work=[Put(row)])) == [""]
    return uuid


@pytest.mark.parametrize("is_bfv", [False, True])
def test_heal_allocates_all_resources_of_flavor_and_request(url, is_bfv):
    uuid, messages = populate(url, is_bfv=is_bfv), []
    assert heal(url, Settings(), HealOptions(), echo=messages.append) == HealResult("healed", 1)
    with PlacementDirect(url) as client:
        world = World(DirectHttp(client))
        amounts = {"PCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1 if is_bfv else 3, "CUSTOM_CARD": 2}
        assert world.held("lost") == world.amounts(host=amounts)
        body = world.ask("GET", f"/allocations/{uuid}")
    assert (body["project_id"], body["user_id"], len(messages)) == ("project", "user", 1)
    assert heal(url, Settings(), HealOptions(), echo=messages.append) == HealResult("nothing", 0)


def test_unreadable_flavor_is_a_clear_error(url):
    uuid = populate(url, flavor=b"{}")
    with pytest.raises(StoreBroken, match=f"the flavor of instance {uuid} cannot be understood"):
        heal(url, Settings(), HealOptions(), echo=lambda _: None)
