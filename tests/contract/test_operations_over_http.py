"""Operations, end to end: a conductor, an HTTP server, and agents with fake drivers."""

from roost.conductor.intake import accept
from roost.model.names import uuid_bytes
from roost.model.work.operation import PowerChange
from tests.contract.agents_over_http import http_server, is_ready, running_agent, running_conductor
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, merge_fleets, small_request
from tests.support.wait import wait_until

ONE = uuid_named("one")


def request(own, act, *words, key, **more):
    """Request an operation."""

    def task(current):
        reader = own.agents.reader(current)
        return act(current, reader, *words, operation_uuid=uuid_bytes(uuid_named(key)), now_s=reader.now_s(), **more)

    return own.serving.run(task)


def status(own):
    return own.serving.run(lambda current: own.agents.reader(current).status(uuid_bytes(ONE)))


def test_instance_is_built_on_an_alternate_stopped_started_and_deleted(tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_text('[[fault]]\naction = "spawn"\n')
    fleet = merge_fleets(host("host-a", VCPU=8, MEMORY_MB=99), host("host-b", VCPU=8, MEMORY_MB=32))
    with http_server() as (own, _, url):
        own.in_thread(lambda roost: roost.install(fleet))
        with (
            running_agent(url, host="host-a", options={"script": str(broken)}) as bad,
            running_agent(url, host="host-b") as good,
            running_conductor(own),
        ):
            wait_until(lambda: is_ready(own, "host-a") and is_ready(own, "host-b"))
            request(
                own,
                accept.build,
                small_request(instance_uuids=(ONE,)),
                key="build",
                name="one",
                decision_uuid=uuid_named("decision"),
            )
            wait_until(lambda: status(own).status in {"ACTIVE", "ERROR"})
            assert (status(own).status, status(own).host, status(own).fault) == ("ACTIVE", "host-b", "")
            assert bad.guests() == []
            assert [(guest.uuid, guest.state) for guest in good.guests()] == [(ONE, "running")]
            request(own, accept.act, ONE, key="stop", kind="stop", body=PowerChange())
            wait_until(lambda: status(own).status == "SHUTOFF")
            assert [guest.state for guest in good.guests()] == ["stopped"]
            request(own, accept.act, ONE, key="start", kind="start", body=PowerChange())
            wait_until(lambda: status(own).status == "ACTIVE")
            request(own, accept.delete, ONE, key="delete")
            wait_until(lambda: status(own).status == "DELETED")
            assert good.guests() == []
            assert own.in_thread(lambda roost: roost.utilisation())["VCPU"] == (0, 16)
