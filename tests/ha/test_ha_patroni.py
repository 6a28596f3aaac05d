"""A switchover of Patroni under load loses nothing; `make ha` has the other faults."""

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.ha import patroni
from tests.ha.ha_run import run_faults
from tests.ha.report import problems_of

pytestmark = pytest.mark.long


@pytest.fixture
def folder():
    # Under /tmp, because the path of a socket has at most 107 bytes.
    found = Path(tempfile.mkdtemp(prefix="roost-ha-", dir="/tmp"))
    try:
        yield found
    finally:
        shutil.rmtree(found)


# CI does not install Patroni: `make ha-peers` does.
@pytest.mark.skipif(bool(patroni.missing()), reason=patroni.missing() or "-")
def test_switchover_loses_nothing(folder):
    cluster = patroni.open_cluster(folder, hold_s=5)
    faults = [fault for fault in cluster.faults() if fault.name == "switchover"]
    (result,) = run_faults(cluster, folder, faults, report=print)
    assert [each for each in problems_of(result) if "outage" not in each] == [], result.details
    assert result.acknowledged > 100
