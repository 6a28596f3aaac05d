import pytest

from tests.contract.stores import SHARED, URL_FIXTURES, SqliteWorld
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import ApiClient, placement_api, roost_api


@pytest.fixture
def api():
    """The Placement API over a store in memory."""
    with placement_api() as client:
        assert isinstance(client, ApiClient)
        yield client


@pytest.fixture(params=["sqlite", *SHARED])
def api_factory(request, tmp_path):
    """A function that opens the API over one persistent database; it may be called repeatedly."""
    if request.param == "sqlite":
        world = SqliteWorld(tmp_path / "roost.db")
    else:
        world = SHARED[request.param](request.getfixturevalue(URL_FIXTURES[request.param]))
    yield lambda: placement_api(world.open())
    world.close()


@pytest.fixture
def own():
    """The /v1 API over three hosts of 4 VCPU."""
    with roost_api(fleet(3, vcpus=4)) as client:
        yield client


@pytest.fixture(params=["sqlite", *SHARED])
def url(request, tmp_path):
    """The URL or path of a persistent database, for each backend."""
    if request.param == "sqlite":
        return tmp_path / "roost.db"
    return request.getfixturevalue(URL_FIXTURES[request.param])
