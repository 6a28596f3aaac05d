"""The multiplier of each weigher: its default, the meaning of its sign, and its override by aggregates."""

import msgspec
import pytest

from roost.errors import BadSettings
from roost.model.fleet import Fleet
from roost.model.host import HostFacts, PciPool
from roost.model.request import Destination, Request
from roost.settings import read_settings
from tests.support.fleets.worlds import aggregate, chosen_hosts, group, host, merge_fleets, roost_with, small_request

DEVICE = PciPool(vendor_id="8086", product_id="154c", count=1)
MOVE = small_request(destination=Destination(cell="y", allow_cross_cell_move=True))
# weigher: option, default, sign of the multipliers that prefer "good", properties of host "bad" and of host "good"
WEIGHERS = {
    "ram": ("ram_weight_multiplier", 1.0, 1.0, {"MEMORY_MB": 8}, {"MEMORY_MB": 16}),
    "cpu": ("cpu_weight_multiplier", 1.0, 1.0, {"VCPU": 8}, {"VCPU": 16}),
    "disk": ("disk_weight_multiplier", 1.0, 1.0, {"DISK_GB": 8}, {"DISK_GB": 16}),
    "io_ops": ("io_ops_weight_multiplier", -1.0, -1.0, HostFacts(num_io_ops=3), HostFacts()),
    "pci": ("pci_weight_multiplier", 1.0, 1.0, HostFacts(pci_pools=(DEVICE,)), HostFacts()),
    "build_failure": ("build_failure_weight_multiplier", 1e6, 1.0, HostFacts(failed_builds=1), HostFacts()),
    "cross_cell": ("cross_cell_move_weight_multiplier", 1e6, 1.0, HostFacts(cell="x"), HostFacts(cell="y")),
    "metrics": (
        "weight_multiplier",
        1.0,
        1.0,
        HostFacts(metrics={"cpu.percent": 9.0}),
        HostFacts(metrics={"cpu.percent": 1.0}),
    ),
    "soft_affinity": ("soft_affinity_weight_multiplier", 1.0, 1.0, {}, {}),
    "soft_anti_affinity": ("soft_anti_affinity_weight_multiplier", 1.0, 1.0, {}, {}),
}
NEVER_NEGATIVE = ("pci", "soft_affinity", "soft_anti_affinity")


def settings(weigher: str, value: float | None = None):
    """Return settings that enable only one weigher."""
    option = WEIGHERS[weigher][0]
    line = "" if value is None else f"{option} = {value}\n"
    is_metrics = weigher == "metrics"
    return read_settings(
        f'[filter_scheduler]\nweight_classes = ["{weigher}"]\n{"" if is_metrics else line}'
        f'[metrics]\nweight_setting = ["cpu.percent=-1"]\n{line if is_metrics else ""}'
    )


def one_host(name: str, properties: HostFacts | dict[str, int], aggregates: list[str]) -> Fleet:
    """Return a host with these facts, or with these amounts in place of the defaults."""
    if isinstance(properties, HostFacts):
        return host(name, facts=properties, aggregates=aggregates)
    return host(name, aggregates=aggregates, **({"VCPU": 8, "MEMORY_MB": 32} | properties))


def request_for(weigher: str) -> Request:
    """Return a request that concerns the weigher."""
    if weigher.startswith("soft"):
        return small_request(in_group="g")
    return MOVE if weigher == "cross_cell" else small_request()


def winners(weigher: str, value: float | None = None, multipliers: tuple[str, ...] = ()) -> set[str]:
    """Return the hosts chosen in either order of the two; aggregates of both hosts set the multipliers."""
    *_, bad, good = WEIGHERS[weigher]
    option = "metrics_weight_multiplier" if weigher == "metrics" else WEIGHERS[weigher][0]
    names = [f"aggregate-{number}" for number in range(len(multipliers))]
    policy = "soft-anti-affinity" if weigher == "soft_anti_affinity" else "soft-affinity"
    fleet = merge_fleets(
        *(aggregate(name, **{option: text}) for name, text in zip(names, multipliers, strict=True)), group("g", policy)
    )
    hosts = [one_host("bad", bad, names), one_host("good", good, names)]
    names_of_chosen = set()
    for order in (hosts, hosts[::-1]):
        roost = roost_with(fleet, *order, settings=settings(weigher, value))
        if weigher.startswith("soft"):
            member_host = "bad" if weigher == "soft_anti_affinity" else "good"
            roost.decide(msgspec.structs.replace(request_for(weigher), force_hosts=(member_host,)))
        names_of_chosen.update(chosen_hosts(roost.decide(request_for(weigher))))
    return names_of_chosen


@pytest.mark.shows(
    "S089",
    "S090",
    "S091",
    "S092",
    "S093",
    "S094",
    "S095",
    "S149",
    "S150",
    "S151",
    "S152",
    "S153",
    "S154",
    "S155",
    "S157",
    "S158",
)
@pytest.mark.parametrize("weigher", WEIGHERS)
def test_multiplier_sign_selects_the_better_end(weigher):
    option, default, sense, *_ = WEIGHERS[weigher]
    section = "metrics" if weigher == "metrics" else "filter_scheduler"
    assert settings(weigher).tables[section][option] == default
    assert winners(weigher) == {"good"}
    assert winners(weigher, 2.0 * sense) == {"good"}
    assert winners(weigher, 0.0) == {"bad", "good"}
    if weigher in NEVER_NEGATIVE:
        with pytest.raises(BadSettings, match=option):
            settings(weigher, -0.5)
    else:
        assert winners(weigher, -2.0 * sense) == {"bad"}


@pytest.mark.shows("S107", "S147")
@pytest.mark.parametrize("multipliers", [("2",), ("-2",), ("2", "-2"), ("3", "2"), ("-2", "x"), ("x",)], ids=" ".join)
@pytest.mark.parametrize("weigher", WEIGHERS)
def test_lowest_valid_aggregate_multiplier_overrides_the_option(weigher, multipliers):
    _, default, sense, *_ = WEIGHERS[weigher]
    value = default if "x" in multipliers else min(map(float, multipliers))
    assert winners(weigher, multipliers=multipliers) == {"good" if value * sense > 0 else "bad"}


@pytest.mark.shows("S159")
@pytest.mark.parametrize("value", [3.0, 0.5, 0.0, -1.0])
def test_metrics_weight_is_scaled_by_its_multiplier(value):
    *_, bad, good = WEIGHERS["metrics"]
    decision = roost_with(host("bad", facts=bad), host("good", facts=good), settings=settings("metrics", value)).decide(
        small_request()
    )
    totals = {score.host: score.total for score in decision.best}
    assert totals == {"bad": 0.0, "good": value}
