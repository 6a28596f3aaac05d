import pytest

from roost.simulator.lab.compact_hosts import build_hosts
from roost.simulator.lab.compact_policies import POLICIES
from roost.simulator.lab.compact_trial import run_trial
from roost.simulator.traces.formats import open_workload
from roost.simulator.workload import Options
from tests.unit.simulator.lab.compact_files import trace
from tests.unit.simulator.lab.gpu_files import write

KIND = "8c/32m"


def trial(folder, policy, *vms, count=3, refused_max=100, kinds=(KIND,)):
    (path,) = write(folder, vms=trace(*vms))
    workload = open_workload([path], Options(hosts=(f"1x{KIND}",)))
    acts = [event.act for event in workload.events]
    hosts = build_hosts(workload.fleet, kinds, count)
    return run_trial(hosts, acts, policy, refused_max=refused_max, has_filters=False)


def stays(*sizes):
    """Return virtual machines that arrive one after another, and stay."""
    return [(*size, at, "inf") for at, size in enumerate(sizes)]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_request_counts_and_departures_make_room(tmp_path, policy):
    found = trial(tmp_path, policy, (8, 8, 0, 1), (8, 8, 1, "inf"), (9, 8, 2, "inf"), (8, 32, 3, "inf"), count=1)
    assert (found.refused, found.empty_hosts, found.is_finished) == (2, 0, True)


def test_a_trial_ends_after_too_many_refused_requests(tmp_path):
    found = trial(tmp_path, "first_fit", *stays(*[(9, 1)] * 200), refused_max=3)
    assert not found.is_finished
    assert 3 < found.refused < 200


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        # Two hosts of 8 cores have 3 and 6 in use. If the first one gets the request for 2, the last one, for 5, fits
        # nowhere.
        ("first_fit", 1),
        ("best_fit", 0),
        ("dot_product", 0),
        ("worst_fit", 1),
    ],
)
def test_policies_choose_different_hosts(tmp_path, policy, refused):
    vms = stays((3, 12), (6, 24), (2, 8), (5, 20))
    assert trial(tmp_path, policy, *vms, count=2).refused == refused


def test_worst_fit_leaves_no_host_empty(tmp_path):
    vms = stays((1, 4), (1, 4), (1, 4))
    assert trial(tmp_path, "worst_fit", *vms).empty_hosts == 0
    assert trial(tmp_path, "best_fit", *vms).empty_hosts == 2


def test_kinds_of_hosts_have_their_own_shares(tmp_path):
    """With 4 of 8 cores and 16 of 32 memory on the small host, less is left than on the large one."""
    found = trial(tmp_path, "best_fit", *stays((4, 16)), kinds=("80c/320m", KIND), count=2)
    assert found.refused == 0
    found = trial(tmp_path, "best_fit", *stays((4, 16), (76, 304), (8, 32)), kinds=("80c/320m", KIND), count=2)
    assert found.refused == 1
