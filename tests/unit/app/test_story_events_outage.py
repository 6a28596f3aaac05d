"""Subscribers receive each line of the story once, also when the database fails in between."""

from roost.app.story_events import StoryPublisher
from roost.errors import Unavailable
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from tests.support.conductors.conductors import server
from tests.support.conductors.work_rows import event, operation
from tests.support.fleets.worlds import hosts
from tests.support.wait import wait_until


class FailingReader:
    """A reader whose first two reads of an operation fail."""

    def __init__(self, reader):
        self._reader, self.failures = reader, 2

    def __getattr__(self, name):
        return getattr(self._reader, name)

    def operation(self, number):
        """See ``WorkReader.operation``."""
        self.failures -= 1
        if self.failures >= 0:
            raise Unavailable("the database is away")
        return self._reader.operation(number)


class Recorder:
    """Records the numbers of published lines."""

    def __init__(self):
        self.numbers = []

    def publish(self, _type, payload, **_options):
        """See ``Events.publish``."""
        self.numbers.append(payload.number)


def test_line_is_published_once_despite_database_failures():
    recorder = Recorder()
    with server(None, hosts(1)) as here:
        reader = FailingReader(here.reader)
        here.store.work_reader = lambda _clock: reader
        publisher = StoryPublisher(recorder, poll_s=0.01)
        publisher.start(here.serving)
        now_s = here.clock.now_s()
        rows = [operation(1), *(event(number, operation_id=1, at_s=now_s) for number in (1, 2, 3))]
        assert here.run(lambda current: current.commit([Item(writes=(), work=tuple(map(Put, rows)))])) == [None]
        wait_until(lambda: len(recorder.numbers) >= 3)
        publisher.join()
    assert (recorder.numbers, reader.failures) == ([1, 2, 3], -1)
