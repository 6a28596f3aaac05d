"""What every test shares: how Hypothesis searches, whether golden files are rewritten, and a PostgreSQL."""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests import postgres

# Deadlines measure the machine, not the code; benchmarks own time.
settings.register_profile(
    "ci", deadline=None, derandomize=True, database=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", parent=settings.get_profile("ci"), derandomize=False, max_examples=5_000)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-rewrite", action="store_true", help="write what the tests produced into the golden files"
    )


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory):
    """Give the URL of the PostgreSQL server of this test run; workers share one."""
    folder = tmp_path_factory.getbasetemp()
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    with postgres.shared_server(folder.parent if is_worker else folder) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server):
    """Give the URL of a new PostgreSQL database."""
    with postgres.fresh_database(postgres_server) as url:
        yield url
