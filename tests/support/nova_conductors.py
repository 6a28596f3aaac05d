"""A conductor of Nova: it calls the scheduler as over the message queue, and waits for the answers."""

import json
from contextlib import contextmanager
from queue import Queue

from roost.app.remote_placement import RemoteFollower
from roost.app.up import open_product
from roost.client.placement_http import Connection
from roost.model.names import uuid_bytes
from roost.model.settings.roost_settings import Settings
from roost.nova.rpc.envelope import CallContext, Message
from roost.nova.rpc.rpc_call import Call
from roost.nova.scheduler_service import SchedulerService
from roost.placement.write_plan import Plan
from roost.placement.writes.claims import ConsumerSpec, plan_replacement
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import merge_fleets
from tests.support.nova_messages import request_spec

CONTEXT = CallContext(request_id="req-1", user_id="a-user", project_id="a-project", roles=("member",))


class Conductor:
    """Sends calls to the service, and waits for their answers."""

    def __init__(self, product, serving, **options):
        self.product, self.serving, self.hints = product, serving, []
        self.service = SchedulerService(product, serving, on_hint=self.hints.append, **options)

    def send(self, method, *, is_call=True, **args):
        """Return the decoded reply of a call; None for a cast."""
        replies = Queue()
        message = Message(
            method=method,
            version="4.5",
            namespace=None,
            args=args,
            context=CONTEXT,
            timeout_s=60.0,
            unique_id="1",
            message_id="m" if is_call else None,
            reply_queue="q" if is_call else None,
        )
        self.service.handlers[method](Call(message, lambda *answer: replies.put(answer[1])))
        return json.loads(json.loads(replies.get(timeout=30))["oslo.message"]) if is_call else None

    def select(self, *uuids, objects=True, alternates=True, **fields):
        """Return the selections of each instance, as the fields of their objects."""
        reply = self.send(
            "select_destinations",
            instance_uuids=list(uuids) or None,
            spec_obj=request_spec(**fields),
            return_objects=objects,
            return_alternates=alternates,
        )
        assert reply["failure"] is None, reply["failure"]
        if not objects:
            return reply["result"]
        return [[each["nova_object.data"] for each in instance] for instance in reply["result"]]

    def refuse(self, *uuids, **fields):
        """Return the failure of a refused request."""
        reply = self.send(
            "select_destinations",
            instance_uuids=list(uuids) or None,
            spec_obj=request_spec(**fields),
            return_objects=True,
            return_alternates=True,
        )
        return json.loads(reply["failure"])

    def vcpus(self):
        """Return the used virtual CPUs by host."""
        state = self.serving.state
        return {name: int(used) for name, used in zip(state.hosts.names, state.hosts.column("vcpus_used"), strict=True)}


@contextmanager
def conductor(*fleets, settings=None, **options):
    """Open a conductor of a scheduler with Roost's own Placement."""
    product, serving = open_product("sqlite://", settings or Settings())
    try:
        serving.run(lambda _: product.install(merge_fleets(*fleets)))
        yield Conductor(product, serving, **options)
    finally:
        serving.stop()


@contextmanager
def conductor_over_remote(address, *, settings=None, wrapped=lambda remote: remote, **options):
    """Open a conductor of a scheduler with a remote Placement; each root provider there is a host."""
    connections = [Connection(address, token="admin", timeout_s=20) for _ in range(2)]
    remote = RemoteFollower(*connections, interval_s=60)
    remote.placement = wrapped(remote.placement)
    product, serving = open_product("sqlite://", settings or Settings(), remote=remote)
    try:
        yield Conductor(product, serving, **options)
    finally:
        serving.stop()
        for connection in connections:
            connection.close()


def claim(serving, uuid, **vcpus):
    """Claim virtual CPUs by host for an instance, as Nova does without its scheduler."""
    amounts = {uuid_named(name): {"VCPU": amount} for name, amount in vcpus.items()}
    spec = ConsumerSpec(uuid=uuid_bytes(uuid), amounts=amounts, project_id="p", user_id="u", generation=None)
    serving.run(lambda current: Plan(answer=None, writes=plan_replacement(current, [spec], unknown_class="").writes))


def hosts_of(selections):
    """Return the names of the chosen host and the alternates, for each instance."""
    return [[each["service_host"] for each in instance] for instance in selections]


def reason_of(failure):
    """Return the reason of a refusal."""
    assert (failure["class"], failure["module"]) == ("NoValidHost", "nova.exception")
    assert failure["message"] == f"No valid host was found. {failure['kwargs']['reason']}"
    assert failure["args"] == [failure["message"]]
    assert failure["kwargs"]["code"] == 500
    return failure["kwargs"]["reason"]
