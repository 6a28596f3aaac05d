"""Fixtures of all tests: Hypothesis profiles, golden files, the command line in process, PostgreSQL and MariaDB."""

import os

import pytest
from hypothesis import HealthCheck, settings

from roost import cli
from roost.observe import log
from tests.differential import reference
from tests.support.databases import galera, mariadb, postgres
from tests.support.missing_programs import skip_test

# Deadlines measure the machine, not the code. Benchmarks measure time.
settings.register_profile(
    "ci", deadline=None, derandomize=True, database=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", parent=settings.get_profile("ci"), derandomize=False, max_examples=5_000)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-rewrite", action="store_true", help="write the output of the tests into the golden files"
    )
    parser.addoption("--galera", action="store_true", help="run the tests on MariaDB on a node of a Galera cluster")


# Contract tests with other results on a cluster. A restore takes several transactions, so repeat a killed one.
# The lease of a killed process ends after a minute, since other nodes cannot see its end. Positions have gaps.
_NOT_ON_GALERA = (
    "test_killed_restore_leaves_the_old_or_the_new_content",
    "test_killed_snapshot_is_ignored_and_its_parts_are_deleted_later",
    "test_snapshot_starts_after_enough_writes_and_never_twice_at_once",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--galera"):
        differs = pytest.mark.skip(reason="differs on a cluster")
        for item in items:
            if item.name.startswith(_NOT_ON_GALERA):
                item.add_marker(differs)


@pytest.fixture(autouse=True)
def unlimited_log():
    """Restore the log after a test that configures it: repeated problems are lines again."""
    before = log.settings_in_use()
    yield
    if log.settings_in_use() != before:
        log.configure(before)


@pytest.fixture
def run(capsys, monkeypatch):
    """Return a function that runs ``roost`` in this process and returns its exit code, output and error output."""
    monkeypatch.setattr(cli.signals, "watch", lambda: None)  # The test runner keeps its signal handlers.
    monkeypatch.setenv("ROOST_PROFILES", os.devnull)  # The user of the tests may have profiles.

    def run(*words):
        monkeypatch.setattr("sys.argv", ["roost", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory):
    """Yield the URL of the PostgreSQL server of this test run, which all workers share."""
    folder = tmp_path_factory.getbasetemp()
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    with postgres.shared_server(folder.parent if is_worker else folder) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server):
    """Yield the URL of a new PostgreSQL database."""
    with postgres.fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def mariadb_server(request, tmp_path_factory):
    """Yield the URL of the MariaDB server of this test run, which all workers share."""
    if request.config.getoption("--galera"):
        with galera.cluster() as running:
            yield running.socket_url(0, "")
        return
    if mariadb.SERVE is None or mariadb.INSTALL is None:
        skip_test(mariadb.MISSING)
    folder = tmp_path_factory.getbasetemp()
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    with mariadb.shared_server(folder.parent if is_worker else folder) as url:
        yield url


@pytest.fixture
def mariadb_url(mariadb_server):
    """Yield the URL of a new MariaDB database."""
    with mariadb.fresh_database(mariadb_server) as url:
        yield url


@pytest.fixture(scope="module")
def reference_placement():
    """Yield the reference server of the Placement API, one for each test file."""
    if reference.python() is None:
        skip_test(reference.HOW_TO_INSTALL)
    with reference.Reference() as server:
        yield server
