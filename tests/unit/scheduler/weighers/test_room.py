import msgspec
import pytest

from roost.cli.text.why_text import explanation_lines
from roost.errors import BadSettings
from roost.model.evidence.explain import Preference
from roost.model.fleet import Departure
from roost.scheduler import registry
from roost.scheduler.rule_support.size_counts import SizeCounts
from roost.scheduler.weighers.room import Room, RoomOptions
from tests.support.fleets.fleets import host_view
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.room_fleets import room_host, room_request, room_settings
from tests.support.fleets.worlds import chosen_hosts, merge_fleets, roost_with, settings_of


def lesson_of(roost):
    """Return the newest document of the weigher."""
    return msgspec.json.decode(roost.state.lessons["room"].body, type=SizeCounts)


def weights_of(roost, request):
    """Return the raw weights of all hosts."""
    shape = roost.scheduler.compile_shape(request)
    return roost.rules.weighers[0].raw(host_view(roost.state), shape.spec).tolist()


def test_weigher_is_off_by_default():
    assert Room(RoomOptions()).multiplier == 0.0


def test_equal_hosts_are_filled_in_the_order_of_the_fleet():
    roost = roost_with(*(room_host(f"h{number}", 10, 100) for number in range(3)), settings=room_settings())
    assert chosen_hosts(roost.decide(room_request(1, 10))) == ["h0"]


def test_an_instance_completes_a_host_instead_of_leaving_it_uneven():
    """The host with many processors left gets the instance with many processors."""
    roost = roost_with(room_host("even", 8, 64), room_host("cpus", 16, 64), settings=room_settings())
    roost.decide(room_request(2, 32, force_hosts=("cpus",)))
    assert chosen_hosts(roost.decide(room_request(6, 1))) == ["cpus"]


def test_the_last_room_for_a_large_size_is_kept():
    """Requests for 8 processors arrived. One fits on the first host and none on the second, which gets small ones."""
    fleet = merge_fleets(room_host("last", 16, 64), room_host("other", 16, 64))
    roost = roost_with(fleet, settings=room_settings())
    roost.work([room_request(8, 32, force_hosts=("last",)), room_request(9, 36, force_hosts=("other",))])
    large = room_request(8, 32, instance_uuids=(uuid_named("large"),))
    roost.work([large, *[room_request(8, 32)] * 97])
    roost.work([Departure(instance_uuids=large.instance_uuids)])
    assert (8, 32, 99) in lesson_of(roost).counts
    assert chosen_hosts(roost.decide(room_request(1, 4))) == ["other"]


def test_overcommit_and_reserved_amounts_count():
    """With them, the second host offers twice the amounts of the first, so the instance leaves it as even."""
    fleet = merge_fleets(room_host("plain", 10, 100, reserved=2), room_host("wide", 10, 198, ratio=2.0, reserved=2))
    roost = roost_with(fleet, settings=room_settings())
    roost.decide(room_request(8, 98, force_hosts=("wide",)))
    plain, wide = weights_of(roost, room_request(8, 98))
    assert plain == wide


def test_sizes_are_learned_from_granted_and_refused_requests():
    roost = roost_with(room_host("h0", 16, 64), settings=room_settings())
    for _ in range(10):
        roost.work([room_request(2, 8)] * 9 + [room_request(3, 8)])
    assert lesson_of(roost).counts == [(2, 8, 90), (3, 8, 10)]
    assert [size[:2] for size in lesson_of(roost).sizes[:2]] == [(2.0, 8.0), (3.0, 8.0)]


def test_requests_without_processors_and_memory_are_not_counted():
    assert Room(RoomOptions()).observe(room_request(0, 0)) is None


@pytest.mark.parametrize(
    ("value", "problem"),
    [(-1.0, "must be a number >= 0"), ("much", "must be a number"), (float("inf"), "must be a finite number")],
)
def test_bad_options_are_refused(value, problem):
    with pytest.raises(BadSettings, match=problem):
        registry.build(settings_of(options={"room_weight_multiplier": value}))


def test_why_names_the_room_that_the_best_host_keeps():
    fleet = merge_fleets(room_host("full", 16, 64), room_host("free", 16, 64))
    roost = roost_with(fleet, settings=room_settings())
    roost.decide(room_request(12, 48, force_hosts=("full",)))
    decision = roost.decide(room_request(4, 16))
    explanation = roost.why(decision.uuid).explanation
    (preference,) = explanation.preferences
    assert isinstance(preference, Preference)
    assert (preference.weigher, preference.host, preference.other) == ("room", "full", "free")
    assert preference.text.startswith("loses ")
    assert preference.text.endswith(" slots less")
    assert any(line.startswith("room: full loses ") for line in explanation_lines(explanation))


def test_equal_hosts_are_not_compared():
    roost = roost_with(room_host("h0", 8, 32), room_host("h1", 8, 32), settings=room_settings())
    assert roost.why(roost.decide(room_request(1, 4)).uuid).explanation.preferences == []
