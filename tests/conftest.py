"""What every test shares: how Hypothesis searches, and whether golden files are rewritten."""

import pytest
from hypothesis import HealthCheck, settings

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
