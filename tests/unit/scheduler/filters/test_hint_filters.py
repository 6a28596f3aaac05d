"""The filters of hints about instances and addresses, and the filter of isolated images."""

import msgspec
import pytest

from roost.engine.columns.apply import apply
from roost.model import writes
from roost.model.host import HostFacts
from roost.model.image import Image
from roost.scheduler.filters.different_host import DifferentHost
from roost.scheduler.filters.isolated_hosts import IsolatedHosts, IsolatedHostsOptions
from roost.scheduler.filters.same_host import SameHost
from roost.scheduler.filters.simple_cidr_affinity import SimpleCidrAffinity
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.framework.spec import Spec
from tests.support.fleets.fleets import fleet, host_view, spec, uuid_of, uuid_text

ON_FIRST, ON_SECOND, NOWHERE = 501, 502, 503


@pytest.fixture
def state():
    state = fleet(*[HostFacts()] * 3)
    for number, host_id in ((ON_FIRST, 101), (ON_SECOND, 102)):
        consumer = writes.ConsumerRow(id=number, uuid=uuid_of(number), project_id="", user_id="")
        apply(state, writes.Claim([consumer], [], [writes.InstanceRow(number, host_id, flavor_id=1)]))
    return state


@pytest.mark.shows("S034", "S035")
@pytest.mark.parametrize(
    ("numbers", "same"),
    [
        ([ON_FIRST], [True, False, False]),
        ([ON_FIRST, ON_SECOND], [True, True, False]),
        ([NOWHERE], [False, False, False]),
        ([NOWHERE, ON_SECOND], [False, True, False]),
    ],
)
def test_same_and_different_host_hints_select_hosts_of_instances(state, numbers, same):
    for rule, hint, verdicts in (
        (SameHost(NoOptions()), "same_host", same),
        (DifferentHost(NoOptions()), "different_host", [not each for each in same]),
    ):
        request = spec(hints={hint: [uuid_text(number) for number in numbers]})
        assert rule.concerns(request)
        assert rule.keep(host_view(state), request).tolist() == verdicts
        assert rule.keep(host_view(state, [2, 0]), request).tolist() == [verdicts[2], verdicts[0]]
        assert (rule.room(host_view(state), request) > 0).tolist() == verdicts
        one = spec(hints={hint: uuid_text(numbers[0])})
        assert rule.keep(host_view(state), one).tolist()[0] == ((numbers[0] == ON_FIRST) == (rule.name == "same_host"))


def test_missing_or_malformed_hint_refuses_no_host(state):
    assert not SameHost(NoOptions()).concerns(spec())
    assert not DifferentHost(NoOptions()).concerns(spec(hints={"same_host": "x"}))
    assert DifferentHost(NoOptions()).keep(host_view(state), spec(hints={"different_host": "no uuid"})).all()


@pytest.mark.shows("S033")
@pytest.mark.parametrize(
    ("address", "cidr", "verdicts"),
    [
        ("192.168.1.1", None, [True, False, False, False]),
        ("192.168.1.1", "/16", [True, True, False, False]),
        ("192.168.1.130", "/25", [False, False, False, False]),
        ("fd00::1", "/64", [False, False, True, False]),
        ("nonsense", None, [False, False, False, False]),
        ("192.168.1.1", "", [False, False, False, False]),
        ("192.168.2.1", "", [False, True, False, False]),
        ("192.168.1.1", "24", [False, False, False, False]),
    ],
)
def test_host_must_be_in_the_network_of_the_address(address, cidr, verdicts):
    rule = SimpleCidrAffinity(NoOptions())
    addresses = ("192.168.1.20", "192.168.2.1", "fd00::9", "")
    hints = {"build_near_host_ip": address} | ({} if cidr is None else {"cidr": cidr})
    request = spec(hints=hints)
    assert rule.concerns(request)
    assert rule.keep(host_view(fleet(*[HostFacts(host_ip=each) for each in addresses])), request).tolist() == verdicts
    assert not rule.concerns(spec(hints={"cidr": "/24"}))


def test_reason_names_the_network_or_the_invalid_hint():
    rule = SimpleCidrAffinity(NoOptions())
    assert rule.reason(spec(hints={"build_near_host_ip": "10.0.0.1"})) == "have no address in 10.0.0.1/24"
    assert rule.reason(spec(hints={"build_near_host_ip": "x", "cidr": "/8"})) == (
        "cannot be near 'x', because 'x/8' is not a network"
    )


@pytest.mark.shows("S024", "S085")
@pytest.mark.parametrize(
    ("images", "is_restricted", "image", "verdicts"),
    [
        (("gold",), True, "gold", [True, False]),
        (("gold",), True, "other", [False, True]),
        (("gold",), True, None, [False, True]),
        (("gold",), False, "gold", [True, False]),
        (("gold",), False, "other", [True, True]),
        ((), True, "gold", [False, True]),
        ((), False, "gold", [True, True]),
    ],
)
def test_isolated_images_run_on_isolated_hosts(images, is_restricted, image, verdicts):
    rule = IsolatedHosts(
        IsolatedHostsOptions(
            isolated_images=images, isolated_hosts=("host-1",), restrict_isolated_hosts_to_isolated_images=is_restricted
        )
    )
    base = spec()
    request = Spec(type(base.request)(flavor=base.flavor, image=None if image is None else Image(id=image)), now_s=0.0)
    result = rule.keep(host_view(fleet(HostFacts(), HostFacts())), request).tolist()
    assert (result if rule.concerns(request) else [True, True]) == verdicts
    assert rule.keep(host_view(fleet(HostFacts(), HostFacts())), request).tolist() == verdicts


def test_boot_volume_is_not_an_isolated_image(state):
    rule = IsolatedHosts(IsolatedHostsOptions(isolated_images=("i",), isolated_hosts=("host-1",)))
    for is_bfv, verdicts in ((False, [True, False, False]), (True, [False, True, True])):
        request = Spec(msgspec.structs.replace(spec(is_bfv=is_bfv).request, image=Image(id="i")), now_s=0.0)
        assert rule.keep(host_view(state), request).tolist() == verdicts
