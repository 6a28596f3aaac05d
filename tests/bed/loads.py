"""The reason of different choices: the loads of the hosts before them."""

from tests.bed.records import Amounts, Loads, Outcome

# Two hosts are near each other if they differ by no more than the largest flavor of the scenario that boots.
_NEAR = {"VCPU": 2, "MEMORY_MB": 256, "DISK_GB": 2}

EQUAL = "equal loads"
NEAR = "near loads"
FAR = "far loads"
OTHER = "other loads before"
FULLER = "fuller host"
UNKNOWN = "unknown loads"
MEANINGS = {
    EQUAL: "both hosts had the same load, so their weights were equal",
    NEAR: "the loads of both hosts differed by one server; computes report later to nova-scheduler",
    OTHER: "previous choices left different loads, so the best host differs",
    FULLER: "other loads before, but the chosen host was fuller by more than one server: look at the decision",
    FAR: "the loads of both hosts differed by more than one server",
    UNKNOWN: "no load was recorded",
}


def classify(reference: Outcome, subject: Outcome) -> str:
    """Return the reason why two clouds chose different hosts."""
    if not reference.loads or not subject.loads:
        return UNKNOWN
    expected, chosen = (subject.loads.get(host, {}) for host in (reference.host, subject.host))
    gaps = _gaps(expected, chosen)
    is_near = all(gap <= _NEAR[name] for name, gap in gaps.items())
    if _plain(reference.loads) != _plain(subject.loads):
        is_fuller = all(chosen.get(name, 0) >= expected.get(name, 0) for name in _NEAR)
        return FULLER if is_fuller and not is_near else OTHER
    if not any(gaps.values()):
        return EQUAL
    return NEAR if is_near else FAR


def _plain(loads: Loads) -> Loads:
    """Return loads without classes that only matter to some requests, and without zeros."""
    return {
        host: {name: amount for name, amount in amounts.items() if amount and name in _NEAR}
        for host, amounts in loads.items()
    }


def _gaps(one: Amounts, other: Amounts) -> Amounts:
    return {name: abs(one.get(name, 0) - other.get(name, 0)) for name in _NEAR}
