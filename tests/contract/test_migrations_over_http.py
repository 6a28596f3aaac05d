"""Resizes and migrations, end to end: a server, a conductor, and agents with fake drivers."""

from tests.contract.agents_over_http import http_server, is_ready, running_agent, running_conductor
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, merge_fleets
from tests.support.wait import wait_until

ONE = uuid_named("one")
HOW = "; if it will not return, use `roost instance revert --lost`"
SMALL, LARGE = {"vcpus": 1, "memory_mb": 1}, {"vcpus": 4, "memory_mb": 2, "name": "large"}


def instance_view(own):
    found = own.get(f"/instances/{ONE}")
    return (found.json["status"], found.json["host"], found.json["fault"]) if found.status == 200 else None


def run_act(own, act, body=None, *, key=None):
    """Run an act and wait for its operation; return the instance's status, host and fault."""
    headers = {} if key is None else {"idempotency-key": key}
    response = own.post(f"/instances/{ONE}/{act}", body or {}, headers=headers)
    assert response.status == 202, response.text
    operation = response.json["operation"]
    wait_until(lambda: own.get(f"/operations/{operation}").json["outcome"] != "open")
    return instance_view(own)


def refusal(own, act, body=None):
    response = own.post(f"/instances/{ONE}/{act}", body or {})
    return response.status, response.json["detail"]


def states(*drivers):
    return [[guest.state for guest in driver.guests()] for driver in drivers]


def test_instance_is_resized_reverted_confirmed_and_migrated():
    fleet = merge_fleets(host("host-a", VCPU=4, MEMORY_MB=99), host("host-b", VCPU=8, MEMORY_MB=32))
    with http_server() as (own, _, url):
        own.in_thread(lambda roost: roost.install(fleet))
        with running_agent(url, host="host-a") as a, running_agent(url, host="host-b") as b, running_conductor(own):
            wait_until(lambda: is_ready(own, "host-a") and is_ready(own, "host-b"))
            build_body = {"flavor": SMALL, "name": "one", "instance_uuids": [ONE], "force_hosts": ["host-a"]}
            assert own.post("/instances", build_body).status == 202
            wait_until(lambda: instance_view(own) == ("ACTIVE", "host-a", ""))

            assert refusal(own, "resize", {"flavor": SMALL}) == (400, "$.flavor: the instance has that size already")
            assert refusal(own, "resize", {"flavor": "gone"}) == (400, "$.flavor: there is no flavor 'gone'")
            assert refusal(own, "migrate", {"host": "nowhere"}) == (400, "$.host: there is no host 'nowhere'")
            assert refusal(own, "migrate", {"host": "HOST-A"}) == (400, "$.host: the instance is on host-a already")
            assert refusal(own, "confirm") == (
                409,
                (
                    f"the instance {ONE} cannot confirm in status ACTIVE: it has to be in VERIFY_RESIZE; possible now: "
                    "delete, stop, reboot, resize, migrate, live-migrate, evacuate, rebuild, shelve"
                ),
            )

            assert run_act(own, "resize", {"flavor": LARGE}, key="bigger") == ("VERIFY_RESIZE", "host-b", "")
            assert states(a, b) == [["stopped"], ["running"]]
            again = own.post(f"/instances/{ONE}/resize", {"flavor": LARGE}, headers={"idempotency-key": "bigger"})
            assert again.status == 202
            assert used(own) == 5
            assert run_act(own, "revert") == ("ACTIVE", "host-a", "")
            assert states(a, b) == [["running"], []]
            assert used(own) == 1
            assert run_act(own, "resize", {"flavor": LARGE}) == ("VERIFY_RESIZE", "host-b", "")
            assert run_act(own, "confirm") == ("ACTIVE", "host-b", "")
            assert states(a, b) == [[], ["running"]]
            assert used(own) == 4
            assert run_act(own, "migrate", {"host": "host-a"}) == ("ACTIVE", "host-a", "")
            assert run_act(own, "migrate", {"verify": True}) == ("VERIFY_RESIZE", "host-b", "")
            assert run_act(own, "revert") == ("ACTIVE", "host-a", "")
            assert "stopped on host-a" in a.console(ONE)
            assert used(own) == 4


def test_instance_is_resized_on_its_own_host():
    with http_server() as (own, _, url):
        own.in_thread(lambda roost: roost.install(host("host-a", VCPU=8, MEMORY_MB=99)))
        with running_agent(url, host="host-a") as driver, running_conductor(own):
            wait_until(lambda: is_ready(own, "host-a"))
            assert own.post("/instances", {"flavor": SMALL, "name": "one", "instance_uuids": [ONE]}).status == 202
            wait_until(lambda: instance_view(own) == ("ACTIVE", "host-a", ""))
            for end, amount in (("revert", 1), ("confirm", 4)):
                assert run_act(own, "resize", {"flavor": LARGE}) == ("VERIFY_RESIZE", "host-a", "")
                assert used(own) == 5
                assert run_act(own, end) == ("ACTIVE", "host-a", "")
                assert (states(driver), used(own)) == ([["running"]], amount)
            assert own.delete(f"/instances/{ONE}").status == 202
            wait_until(lambda: used(own) == 0)
            assert driver.guests() == []


def test_resize_is_reverted_from_a_lost_host():
    fleet = merge_fleets(host("host-a", VCPU=4, MEMORY_MB=99), host("host-b", VCPU=8, MEMORY_MB=32))
    with http_server() as (own, _, url):
        own.in_thread(lambda roost: roost.install(fleet))
        with running_agent(url, host="host-a") as a, running_conductor(own):
            with running_agent(url, host="host-b"):
                wait_until(lambda: is_ready(own, "host-a") and is_ready(own, "host-b"))
                build_body = {"flavor": SMALL, "name": "one", "instance_uuids": [ONE], "force_hosts": ["host-a"]}
                assert own.post("/instances", build_body).status == 202
                wait_until(lambda: instance_view(own) == ("ACTIVE", "host-a", ""))
                assert run_act(own, "resize", {"flavor": LARGE}) == ("VERIFY_RESIZE", "host-b", "")
            status, detail = refusal(own, "revert", {"lost": True})
            assert (status, "cannot be reverted from a lost host: the agent of host-b is there" in detail) == (
                409,
                True,
            )
            assert own.delete("/agents/host-b").status == 204
            away = f"the agent of host-b does not answer{HOW}"
            assert run_act(own, "revert") == ("VERIFY_RESIZE", "host-b", away)
            service_role = {"x-roles": "service"}
            response = own.post(f"/instances/{ONE}/revert", {"lost": True}, headers=service_role)
            assert (response.status, response.json["detail"]) == (
                403,
                "policy roost:instances:revert:lost does not allow this; your roles: service; it needs the role admin",
            )
            assert run_act(own, "revert", {"lost": True}, key="back") == ("ACTIVE", "host-a", "")
            again = own.post(f"/instances/{ONE}/revert", {}, headers={"idempotency-key": "back"})
            assert again.status == 422
            assert (states(a), used(own)) == ([["running"]], 5)
            with running_agent(url, host="host-b", life=2):
                wait_until(lambda: used(own) == 1)
                assert is_ready(own, "host-b")


def used(own):
    return own.in_thread(lambda roost: roost.utilisation())["VCPU"][0]
