"""A connection pooler between Roost and PostgreSQL is refused unless configured for session pooling."""

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from roost.errors import StoreBroken
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.store.backends import open_reader, open_store
from tests.contract.stores import commit, item, provider
from tests.support.databases.pooler import pooler


@pytest.fixture
def pooled_url(postgres_url):
    database, _, folder = postgres_url.partition("?host=")
    with pooler(Path(folder)) as own:
        yield f"{database}?host={own}"


def test_pooler_is_refused_with_advice(pooled_url, postgres_url):
    for opened in (open_store, open_reader):
        with pytest.raises(StoreBroken, match=r"set store\.pooler to session"):
            opened(pooled_url, settings=StoreSettings())
    with closing(open_store(postgres_url, settings=StoreSettings())) as store:
        assert commit(store, item(provider(1))) == [""]


def test_session_pooler_is_used_when_configured(pooled_url):
    settings = StoreSettings(pooler="session")
    with closing(open_store(pooled_url, settings=settings)) as store, closing(store.work_reader(None)) as work:
        assert commit(store, item(provider(1))) == [""]
        assert work.now_s() > 0


def test_previous_backend_is_terminated_behind_a_pooler(pooled_url, postgres_url):
    with closing(open_store(pooled_url, settings=StoreSettings(pooler="session"))) as store:
        assert commit(store, item(provider(1))) == [""]
        broken = store._link.connection
        (before,) = broken.execute("SELECT pg_backend_pid()").fetchone()
        with psycopg.connect(postgres_url, autocommit=True) as holding:
            holding.execute("BEGIN; LOCK TABLE feed")
            # As after a deadline: the server still runs an abandoned statement.
            broken.pgconn.send_query(b"LOCK TABLE feed; SELECT pg_sleep(60)")
            broken.pgconn.flush()
            broken.close()
            (after,) = store._link.read("SELECT pg_backend_pid()", ())[0]
            found = holding.execute("SELECT pid FROM pg_stat_activity WHERE pid = ANY (%s)", ([before, after],))
            assert found.fetchall() == [(after,)]


def test_transaction_pooler_is_not_a_valid_setting():
    with pytest.raises(ValueError, match="pools by transaction do not work"):
        StoreSettings(pooler="transaction")
