"""A column file after a failover of PostgreSQL: used if the new server has all of its changes, else refused."""

from contextlib import closing

import pytest

from roost.model.settings.roost_settings import Store as Settings
from roost.placement.current import Current
from roost.store.backends import database_at
from roost.store.column_file.file_place import place_in_folder
from roost.store.postgresql.store import PostgresStore
from tests.contract.stores import commit, item, provider
from tests.support.databases.standbys import ignore_timelines, pair
from tests.support.fleets.content_by_id import content_by_id
from tests.support.wait import wait_until

pytestmark = pytest.mark.long


@pytest.fixture
def servers(monkeypatch):
    """Yield a server and its standby; only vectors and tokens show a loss."""
    ignore_timelines(monkeypatch)
    with pair() as found:
        yield found


@pytest.fixture
def settings(tmp_path):
    tmp_path.chmod(0o700)
    return Settings(column_folder=str(tmp_path))


def put(servers, number):
    """Create a provider, by a process of its own."""
    with closing(PostgresStore(servers.url)) as store:
        Current(store)
        assert commit(store, item(provider(number))) == [""]


def write(servers, settings):
    path = place_in_folder(servers.url, settings)
    assert path is not None
    assert database_at(servers.url).write_column_file(path)


def load(servers, settings):
    """Return whether the file is used, and the providers; check them against those of all rows."""
    with closing(PostgresStore(servers.url, settings=settings)) as store, closing(PostgresStore(servers.url)) as other:
        loaded = store.load()
        list(loaded.parts)
        state = Current(store).state
        assert content_by_id(state) == content_by_id(Current(other).state)
        return loaded.is_cached, sorted(state.providers.row_of_id)


def test_file_is_used_after_a_failover_without_a_loss(servers, settings):
    put(servers, 1)
    write(servers, settings)
    put(servers, 2)
    wait_until(lambda: servers.lag() == 0)
    servers.fail_over()
    put(servers, 3)
    assert load(servers, settings) == (True, [1, 2, 3])


def test_file_is_used_if_only_later_changes_were_lost(servers, settings):
    put(servers, 1)
    write(servers, settings)
    wait_until(lambda: servers.lag() == 0)
    servers.starve()
    put(servers, 2)
    servers.fail_over()
    put(servers, 3)
    assert load(servers, settings) == (True, [1, 3])


def test_file_with_lost_changes_is_refused(servers, settings):
    put(servers, 1)
    wait_until(lambda: servers.lag() == 0)
    servers.starve()
    put(servers, 2)
    write(servers, settings)
    servers.fail_over()
    put(servers, 3)
    assert load(servers, settings) == (False, [1, 3])
    write(servers, settings)
    assert load(servers, settings) == (True, [1, 3])
