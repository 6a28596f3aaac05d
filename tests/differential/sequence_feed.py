"""Send a sequence to the reference in parts, so that its data changes between reads."""

from tests.differential.duel import Side


class SequenceFeed:
    """Sends a sequence of requests to a server in parts."""

    def __init__(self, server, act):
        self.side = Side(server)
        self.side.empty()
        self._act = act
        self._answer = None

    def run(self, steps):
        """Send the next ``steps`` requests, or all remaining ones."""
        for _ in range(steps):
            try:
                request = self._act.send(self._answer)
            except StopIteration:
                return
            self._answer = self.side.ask(request)
