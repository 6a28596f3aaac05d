"""A reference that grows while its database is read."""

from tests.differential.duel import Side


class Growing:
    """Lets a sequence of requests change the reference, some at a time."""

    def __init__(self, server, act):
        self.side = Side(server)
        self.side.empty()
        self._act = act
        self._answer = None

    def run(self, steps):
        """Send so many more, or what is left."""
        for _ in range(steps):
            try:
                request = self._act.send(self._answer)
            except StopIteration:
                return
            self._answer = self.side.ask(request)
