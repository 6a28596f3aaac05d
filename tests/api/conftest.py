import pytest

from tests.contract.stores import PostgresWorld, SqliteWorld
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import Asking, asking, asking_own


@pytest.fixture
def api():
    """The Placement API over a store in memory."""
    with asking() as found:
        assert isinstance(found, Asking)
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def lasting(request, tmp_path):
    """Give what opens the API over one database that lasts, as often as it is called."""
    if request.param == "sqlite":
        world = SqliteWorld(tmp_path / "roost.db")
    else:
        world = PostgresWorld(request.getfixturevalue("postgres_url"))
    yield lambda: asking(world.open())
    world.close()


@pytest.fixture
def own():
    """Give Roost's own API over three hosts of 4 VCPU."""
    with asking_own(fleet(3, vcpus=4)) as found:
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Give a database that lasts."""
    if request.param == "sqlite":
        return tmp_path / "roost.db"
    return request.getfixturevalue("postgres_url")
