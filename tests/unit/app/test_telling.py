"""What happens is told, each line once, whatever becomes of another one."""

import json

from roost.app.story_events import StoryPublisher
from roost.errors import Unavailable
from roost.model.settings.notification_settings import Notifications
from roost.observe.event_buffer import Events
from tests.support.conductors.work_rows import event


class Reader:
    """Knows no operation, and fails as often as it was told to."""

    def __init__(self, failures=0):
        self.failures = failures

    def operation(self, _number):
        """Give none, or fail."""
        if self.failures:
            self.failures -= 1
            raise Unavailable("the database is away")


def kinds(events):
    frames = b"".join(events._kept).decode().splitlines()
    return [line.removeprefix("event: ") for line in frames if line.startswith("event: ")]


def telling(*rows):
    events = Events(Notifications(), run="test")
    found = StoryPublisher(events)
    found._pending.extend(rows)
    return found, events


def test_a_line_that_cannot_be_understood_keeps_no_other_from_being_told(capfd):
    rows = [event(number, kind=f"kind{number}", body=b"{" if number == 2 else b"") for number in (1, 2, 3)]
    found, events = telling(*rows)
    found._publish_all(Reader())
    assert [kind.rpartition(".")[2] for kind in kinds(events)] == ["kind1", "kind3"]
    assert [json.loads(line)["request_id"] for line in capfd.readouterr().err.splitlines()] == ["telling"]


def test_an_agent_that_is_ready_is_told_as_one_whichever_operation_saw_to_that():
    lines = ("agent.gone", 0), ("agent.ready", 1), ("drain.asked", 1)
    rows = [event(number, kind=kind, operation_id=of, instance_uuid=None) for number, (kind, of) in enumerate(lines, 1)]
    found, events = telling(*rows)
    found._publish_all(Reader())
    assert kinds(events) == ["agent.gone", "agent.ready", "operation.drain.asked"]


def test_lines_wait_while_the_database_cannot_be_asked():
    found, events = telling(*(event(number, kind=f"kind{number}") for number in (1, 2)))
    reader = Reader(failures=1)
    try:
        found._publish_all(reader)
    except Unavailable:
        assert kinds(events) == []
    found._publish_all(reader)
    assert [kind.rpartition(".")[2] for kind in kinds(events)] == ["kind1", "kind2"]
