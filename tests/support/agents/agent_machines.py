"""The agent of a host as a state machine: a test reads the tasks that are due, and feeds events."""

from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.identity import Identity
from roost.compute.agent.state_machine import Agent
from roost.compute.agent.tasks import Register, Reply, Scan
from roost.model.work.guest import GuestReport
from roost.model.work.orders import OrderAnswer, OwnNode, RegistrationAnswer
from tests.support.agents.scripted_agents import HOST, RUN
from tests.support.fleets.worlds import uuid_named

OK = OrderAnswer(run=RUN, outcome="ok")
FAILED = OrderAnswer(run=RUN, outcome="failed", problem="no room")
GUEST = uuid_named("guest")


def agent(journal=None, *, run=RUN, timeout_s=600.0, sync_s=0.0):
    """Return a new agent without orders."""
    identity = Identity(host=HOST, run=run, driver="fake")
    return Agent(identity, journal or Journal(None), driver_timeout_s=timeout_s, sync_s=sync_s)


def register_agent(one, *guests, now_s=0.0, is_ready=True, fence=1, **lists):
    """Scan and register an agent. The fence rises with each run of the agent, and when the server gives it up."""
    assert one.due(now_s) == [Scan()]
    one.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], guests)
    (register,) = one.due(now_s)
    assert isinstance(register, Register)
    one.on_registered(RegistrationAnswer(fence=fence, is_ready=is_ready, down_after_s=60.0, **lists), now_s)
    return register.registration


def ready_agent(journal=None, **more):
    """Return a registered agent that may carry out orders."""
    one = agent(journal, **more)
    register_agent(one)
    one.on_tracked()
    return one


def answer_poll(one, *orders, now_s=0.0, **more):
    """Answer an agent's poll, and return the tasks that are due then."""
    one.on_polled(1, orders, now_s=now_s, **more)
    return one.due(now_s)


def guest_report(name="guest", state="running"):
    """Return a driver's report of a guest."""
    return GuestReport(uuid=uuid_named(name), node=HOST, operation="old", state=state)


def outcomes(tasks):
    """Return the order and outcome of each answer that the agent has to send."""
    return [(task.order.id, task.answer.outcome) for task in tasks if isinstance(task, Reply)]
