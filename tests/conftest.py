"""Fixtures that more than one kind of test needs."""

from collections.abc import Iterator
from pathlib import Path

import postgres
import pytest


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[str]:
    """Give the URL of the PostgreSQL server of this test run."""
    folder = tmp_path_factory.getbasetemp()
    with postgres.shared_server(folder if worker_id == "master" else folder.parent) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """Give the URL of a new PostgreSQL database."""
    with postgres.fresh_database(postgres_server) as url:
        yield url


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    """Give the path of a SQLite database that is not there yet."""
    return tmp_path / "roost.db"
