import pytest

from tests.asking import Asking, asking


@pytest.fixture
def api():
    """The Placement API over a store in memory."""
    with asking() as found:
        assert isinstance(found, Asking)
        yield found
