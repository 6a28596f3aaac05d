"""Two hosts of one database server: after the first one freezes, only one attempt to connect waits for it."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial

import pytest
from psycopg.conninfo import conninfo_to_dict

from roost.model.settings.roost_settings import Store as StoreSettings
from roost.store.backends import open_store
from roost.store.mariadb.address import read_url
from tests.contract.stores import URL_FIXTURES, new_ids, put_providers
from tests.support.databases.freezing_relay import freezing_relay
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

SETTINGS = StoreSettings(deadline_s=3.0, wait_s=10.0)


def socket_of(url):
    """Return the path of the socket in the URL of a test server."""
    if url.startswith("mysql"):
        return read_url(url).hosts[0].socket
    found = conninfo_to_dict(url)
    return f"{found['host']}/.s.PGSQL.{found.get('port', 5432)}"


def through(url, *ports):
    """Return the URL of a database through ports of this machine."""
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    if url.startswith("mysql"):
        return f"mysql://root@{hosts}/{read_url(url).database}"
    found = conninfo_to_dict(url)
    return f"postgresql://{found['user']}@{hosts}/{found['dbname']}"


@pytest.mark.parametrize("kind", list(URL_FIXTURES))
@pytest.mark.parametrize(("name", "bounds"), [("prune", {"max_bytes": 2**40}), ("prune_work", {})])
def test_pruning_waits_for_a_frozen_host_only_until_the_deadline_of_requests(kind, name, bounds, request, capfdbinary):
    url = request.getfixturevalue(URL_FIXTURES[kind])
    with ExitStack() as stack:
        first, second = (stack.enter_context(freezing_relay(socket_of(url))) for _ in range(2))
        pool = stack.enter_context(ThreadPoolExecutor(1))
        store = stack.enter_context(closing(open_store(through(url, first.port, second.port), settings=SETTINGS)))
        list(store.load().writes)
        prune = partial(getattr(store, name), older_than_s=0.0, **bounds)
        prune()  # The first call also adds up all sizes.
        first.freeze()
        # Half of ``bulk_deadline_s``, and far more than ``deadline_s``.
        capfdbinary.readouterr()
        assert pool.submit(prune).result(30) == 0
        (line,) = capfdbinary.readouterr().err.splitlines()
        assert json.loads(line)["event"] == "old_rows_kept"
        put_providers(store, 1)
        first.thaw()


@pytest.mark.parametrize("kind", list(URL_FIXTURES))
def test_one_attempt_waits_for_a_frozen_host(kind, request):
    url = request.getfixturevalue(URL_FIXTURES[kind])
    with ExitStack() as stack:
        first, second = (stack.enter_context(freezing_relay(socket_of(url))) for _ in range(2))
        both = through(url, first.port, second.port)
        store = stack.enter_context(closing(open_store(both, settings=SETTINGS)))
        list(store.load().writes)
        work = stack.enter_context(closing(store.work_reader(None)))
        put_providers(store, 1)
        assert work.now_s() > 0
        attempts = first.attempts
        assert (attempts > 2, second.attempts) == (True, 0)
        first.freeze()
        put_providers(store, 2)
        # The reader does not wait for an answer of the frozen host, which would end with an error.
        assert work.now_s() > 0
        with closing(open_store(both, settings=SETTINGS)) as other:
            list(other.load().writes)
            put_providers(other, 3)
        assert new_ids(store) == [3]
        assert second.attempts >= 4
        first.thaw()
        wait_until(lambda: first.attempts > attempts)
    # Beside the attempt of the commit, maybe one of a heartbeat at the same moment.
    assert first.attempts <= attempts + 2
