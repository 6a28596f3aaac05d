"""The interface between an agent and its server."""

from typing import Protocol

from roost.model.host import HostFacts
from roost.model.work.orders import OrderAnswer, Poll, PollAnswer, Registration, RegistrationAnswer


class Server(Protocol):
    """The server of agents. Threads may share it.

    Each method repeats its request until the server answers, so a request may take effect more than once. All methods
    raise these errors.

    Raises:
        AccessDenied: the agent must stop: it is not authorized for the host.
        BadSettings: the agent must stop: another run of it serves the host.
        NotFound: the host or the order is unknown; the agent registers again.
        BadRequest: the request is invalid; repeating it does not help.
        Unavailable: the agent is stopping, and the server has not answered.
    """

    def register(self, host: str, registration: Registration) -> RegistrationAnswer:
        """Register an agent and the guests of its host.

        Raises:
            Conflict: another agent is registered for the host; this agent must stop.
        """

    def report(self, host: str, node: str, facts: HostFacts) -> None:
        """Report the facts of a node; its root provider must be in Placement.

        Raises:
            Conflict: the provider is missing, or belongs to another host; the next report may succeed.
        """

    def poll(self, poll: Poll) -> PollAnswer:
        """Report the agents of a poll as alive, and return their orders; without orders, wait up to ``poll.wait_s``."""

    def answer(self, order_id: int, answer: OrderAnswer) -> None:
        """Send the answer to an order; only the first answer counts.

        Raises:
            Conflict: the order was withdrawn; the agent undoes it.
        """

    def deregister(self, host: str) -> None:
        """Report that the agent of a host ends."""
