from roost.simulator.lab.gpu_pods import Pod
from roost.simulator.lab.typical_pods import find_typical_pods


def pods_of(*counts):
    """Return as many pods of each kind; kinds differ in their processors."""
    return [Pod(1000 * kind, 2048, 1, 500) for kind, count in enumerate(counts, start=1) for _ in range(count)]


def test_rare_kinds_are_no_typical_pods():
    assert [each.kind.cpu_milli for each in find_typical_pods(pods_of(1, 16, 3))] == [2000, 3000]


def test_shares_are_rounded_as_published():
    shares = [each.share for each in find_typical_pods(pods_of(16, 3, 1))]
    assert shares == [16 / 20 / (19 / 20), 3 / 20 / (19 / 20)]
    assert shares[0] != 16 / 19, "one division rounds another way, and changes ties between hosts"
