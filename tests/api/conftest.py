import pytest

from tests.asking import Asking, asking
from tests.contract.stores import PostgresWorld, SqliteWorld


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
