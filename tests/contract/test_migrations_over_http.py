"""Instances that are resized and migrate, from end to end: a server, a conductor, and agents with fake drivers."""

from tests.contract.agents_over_http import http_server, is_ready, running_agent, running_conductor
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, joined
from tests.support.waiting import until

ONE = uuid_named("one")
HOW = "; if that is off for good, `roost instance revert --lost` does without it"
SMALL, LARGE = {"vcpus": 1, "memory_mb": 1}, {"vcpus": 4, "memory_mb": 2, "name": "large"}


def shown(own):
    found = own.get(f"/instances/{ONE}")
    return (found.json["status"], found.json["host"], found.json["fault"]) if found.status == 200 else None


def done(own, act, body=None, *, key=None):
    """Ask for something, and wait until it is over; give how the instance is then."""
    headers = {} if key is None else {"idempotency-key": key}
    answered = own.post(f"/instances/{ONE}/{act}", body or {}, headers=headers)
    assert answered.status == 202, answered.text
    operation = answered.json["operation"]
    until(lambda: own.get(f"/operations/{operation}").json["outcome"] != "open")
    return shown(own)


def refused(own, act, body=None):
    answered = own.post(f"/instances/{ONE}/{act}", body or {})
    return answered.status, answered.json["detail"]


def states(*drivers):
    return [[guest.state for guest in driver.guests()] for driver in drivers]


def test_an_instance_is_resized_taken_back_confirmed_and_migrates():
    fleet = joined(host("host-a", VCPU=4, MEMORY_MB=99), host("host-b", VCPU=8, MEMORY_MB=32))
    with http_server() as (own, _, url):
        own.in_thread(lambda roost: roost.install(fleet))
        with running_agent(url, host="host-a") as a, running_agent(url, host="host-b") as b, running_conductor(own):
            until(lambda: is_ready(own, "host-a") and is_ready(own, "host-b"))
            asked = {"flavor": SMALL, "name": "one", "instance_uuids": [ONE], "force_hosts": ["host-a"]}
            assert own.post("/instances", asked).status == 202
            until(lambda: shown(own) == ("ACTIVE", "host-a", ""))

            assert refused(own, "resize", {"flavor": SMALL}) == (400, "$.flavor: the instance has that size already")
            assert refused(own, "resize", {"flavor": "gone"}) == (400, "$.flavor: there is no flavor 'gone'")
            assert refused(own, "migrate", {"host": "nowhere"}) == (400, "$.host: there is no host 'nowhere'")
            assert refused(own, "migrate", {"host": "HOST-A"}) == (400, "$.host: the instance is on host-a already")
            assert refused(own, "confirm") == (
                409,
                f"the instance {ONE} cannot confirm in status ACTIVE: it has to be in VERIFY_RESIZE",
            )

            assert done(own, "resize", {"flavor": LARGE}, key="bigger") == ("VERIFY_RESIZE", "host-b", "")
            assert states(a, b) == [["stopped"], ["running"]]
            again = own.post(f"/instances/{ONE}/resize", {"flavor": LARGE}, headers={"idempotency-key": "bigger"})
            assert again.status == 202
            assert used(own) == 5
            assert done(own, "revert") == ("ACTIVE", "host-a", "")
            assert states(a, b) == [["running"], []]
            assert used(own) == 1
            assert done(own, "resize", {"flavor": LARGE}) == ("VERIFY_RESIZE", "host-b", "")
            assert done(own, "confirm") == ("ACTIVE", "host-b", "")
            assert states(a, b) == [[], ["running"]]
            assert used(own) == 4
            assert done(own, "migrate", {"host": "host-a"}) == ("ACTIVE", "host-a", "")
            assert done(own, "migrate", {"verify": True}) == ("VERIFY_RESIZE", "host-b", "")
            assert done(own, "revert") == ("ACTIVE", "host-a", "")
            assert "stopped on host-a" in a.console(ONE)
            assert used(own) == 4


def test_an_instance_is_resized_on_its_own_host():
    with http_server() as (own, _, url):
        own.in_thread(lambda roost: roost.install(host("host-a", VCPU=8, MEMORY_MB=99)))
        with running_agent(url, host="host-a") as driver, running_conductor(own):
            until(lambda: is_ready(own, "host-a"))
            assert own.post("/instances", {"flavor": SMALL, "name": "one", "instance_uuids": [ONE]}).status == 202
            until(lambda: shown(own) == ("ACTIVE", "host-a", ""))
            for end, amount in (("revert", 1), ("confirm", 4)):
                assert done(own, "resize", {"flavor": LARGE}) == ("VERIFY_RESIZE", "host-a", "")
                assert used(own) == 5
                assert done(own, end) == ("ACTIVE", "host-a", "")
                assert (states(driver), used(own)) == ([["running"]], amount)
            assert own.delete(f"/instances/{ONE}").status == 202
            until(lambda: used(own) == 0)
            assert driver.guests() == []


def test_an_instance_goes_back_from_a_host_that_is_lost():
    fleet = joined(host("host-a", VCPU=4, MEMORY_MB=99), host("host-b", VCPU=8, MEMORY_MB=32))
    with http_server() as (own, _, url):
        own.in_thread(lambda roost: roost.install(fleet))
        with running_agent(url, host="host-a") as a, running_conductor(own):
            with running_agent(url, host="host-b"):
                until(lambda: is_ready(own, "host-a") and is_ready(own, "host-b"))
                asked = {"flavor": SMALL, "name": "one", "instance_uuids": [ONE], "force_hosts": ["host-a"]}
                assert own.post("/instances", asked).status == 202
                until(lambda: shown(own) == ("ACTIVE", "host-a", ""))
                assert done(own, "resize", {"flavor": LARGE}) == ("VERIFY_RESIZE", "host-b", "")
            status, detail = refused(own, "revert", {"lost": True})
            assert (status, "cannot revert as one whose host is lost: the agent of host-b is there" in detail) == (
                409,
                True,
            )
            assert own.delete("/agents/host-b").status == 204
            away = f"the agent of host-b does not answer{HOW}"
            assert done(own, "revert") == ("VERIFY_RESIZE", "host-b", away)
            asked_by = {"x-roles": "service"}
            answered = own.post(f"/instances/{ONE}/revert", {"lost": True}, headers=asked_by)
            assert (answered.status, answered.json["detail"]) == (
                403,
                "policy roost:instances:revert:lost does not allow this; your roles: service",
            )
            assert done(own, "revert", {"lost": True}, key="back") == ("ACTIVE", "host-a", "")
            again = own.post(f"/instances/{ONE}/revert", {}, headers={"idempotency-key": "back"})
            assert again.status == 422
            assert (states(a), used(own)) == ([["running"]], 5)
            with running_agent(url, host="host-b", life=2):
                until(lambda: used(own) == 1)
                assert is_ready(own, "host-b")


def used(own):
    return own.in_thread(lambda roost: roost.utilisation())["VCPU"][0]
