"""The seam between an agent and the server that it works for."""

from typing import Protocol

from roost.model.host import HostFacts
from roost.model.work.orders import OrderAnswer, Poll, Polled, Registered, Registration


class Server(Protocol):
    """Knows which agents there are, and what they are to do. Threads may ask it at the same time.

    Where it does not answer, or is too busy to, it is asked again until it does; so what raises no error was done,
    once or more often. All of these raise:

    Raises:
        BadSettings: the agent is not let in, may not touch the host, or another run of it does: it must stop.
        NotFound: the host, or the order, is not known: the agent registers anew.
        BadRequest: what was said cannot be meant; said again, it is refused again.
        Unavailable: the agent is to stop, and nothing was answered until then.
    """

    def register(self, host: str, registration: Registration) -> Registered:
        """Say that an agent lives on a host, and which guests it found.

        Raises:
            Conflict: another agent lives there: this one must stop.
        """

    def report(self, host: str, node: str, facts: HostFacts) -> None:
        """Say what is known of a node; its root provider must be in Placement.

        Raises:
            Conflict: it is not there, or not of this host: the next report may do.
        """

    def poll(self, poll: Poll) -> Polled:
        """Say that agents are alive, and ask what they are to do; waits so long as the poll says."""

    def answer(self, order_id: int, answer: OrderAnswer) -> None:
        """Say what became of an order; said again, the first answer stays.

        Raises:
            Conflict: nobody wants it any more: the agent undoes what it did.
        """

    def deregister(self, host: str) -> None:
        """Say that no agent lives on a host any more."""
