"""Story lines become events, each once, also when another line fails."""

import json

from roost.app.story_events import StoryPublisher
from roost.errors import Unavailable
from roost.model.settings.notification_settings import Notifications
from roost.observe.event_buffer import Events
from tests.support.conductors.work_rows import event


class Reader:
    """Finds no operation; the first ``failures`` reads fail."""

    def __init__(self, failures=0):
        self.failures = failures

    def operation(self, _number):
        """Return None, or fail."""
        if self.failures:
            self.failures -= 1
            raise Unavailable("the database is away")


def kinds(events):
    frames = b"".join(events._frames).decode().splitlines()
    return [line.removeprefix("event: ") for line in frames if line.startswith("event: ")]


def publisher_of(*rows):
    events = Events(Notifications(), run="test")
    publisher = StoryPublisher(events)
    publisher._pending.extend(rows)
    return publisher, events


def test_unreadable_line_does_not_block_the_others(capfd):
    rows = [event(number, kind=f"kind{number}", body=b"{" if number == 2 else b"") for number in (1, 2, 3)]
    publisher, events = publisher_of(*rows)
    publisher._publish_all(Reader())
    assert [kind.rpartition(".")[2] for kind in kinds(events)] == ["kind1", "kind3"]
    assert [json.loads(line)["request_id"] for line in capfd.readouterr().err.splitlines()] == ["stories"]


def test_agent_ready_event_keeps_its_kind_within_an_operation():
    lines = ("agent.gone", 0), ("agent.ready", 1), ("drain.asked", 1)
    rows = [event(number, kind=kind, operation_id=of, instance_uuid=None) for number, (kind, of) in enumerate(lines, 1)]
    publisher, events = publisher_of(*rows)
    publisher._publish_all(Reader())
    assert kinds(events) == ["agent.gone", "agent.ready", "operation.drain.asked"]


def test_lines_wait_while_the_database_is_unavailable():
    publisher, events = publisher_of(*(event(number, kind=f"kind{number}") for number in (1, 2)))
    reader = Reader(failures=1)
    try:
        publisher._publish_all(reader)
    except Unavailable:
        assert kinds(events) == []
    publisher._publish_all(reader)
    assert [kind.rpartition(".")[2] for kind in kinds(events)] == ["kind1", "kind2"]
