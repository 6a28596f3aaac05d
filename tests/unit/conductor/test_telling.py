"""The end of the story: each line is found once, however late it is committed, and however many there are."""

from roost.conductor import story_feed
from roost.conductor.story_feed import StoryFeed
from tests.support.conductors.work_rows import event


class Rows:
    """Lines that were committed, and the time."""

    def __init__(self, now_s=1000.0):
        self.now, self.rows, self.pages = now_s, [], []

    def now_s(self):
        """Give the time."""
        return self.now

    def events_since(self, at_s, *, most):
        """Give a page of lines."""
        self.pages.append(most)
        found = sorted((row for row in self.rows if row.at_s >= at_s), key=lambda row: (row.at_s, row.id))
        return found[:most]

    def commit(self, *numbers, at_s):
        """Commit lines of a moment."""
        self.rows += [event(number, at_s=at_s) for number in numbers]


def found(tail):
    return [row.id for row in tail.news()]


def test_a_line_is_found_once_and_what_was_there_before_is_not():
    rows = Rows()
    rows.commit(1, at_s=999.0)
    tail = StoryFeed(rows)
    rows.commit(2, 3, at_s=1001.0)
    rows.now = 1001.0
    assert (found(tail), found(tail)) == ([2, 3], [])


def test_a_line_that_is_committed_late_is_found_if_it_is_not_too_late():
    rows = Rows()
    tail = StoryFeed(rows)
    rows.now = 1020.0
    rows.commit(1, at_s=1019.0)
    assert found(tail) == [1]
    rows.commit(2, at_s=1011.0)
    rows.commit(3, at_s=1005.0)
    assert (found(tail), found(tail)) == ([2], [])


def test_lines_that_were_found_are_forgotten_when_nobody_asks_for_them_again():
    rows = Rows()
    tail = StoryFeed(rows)
    for second in range(1, 60):
        rows.now = 1000.0 + second
        rows.commit(second, at_s=rows.now)
        assert found(tail) == [second]
    assert len(tail._seen) < 12


def test_more_lines_than_a_page_come_page_by_page_also_those_of_one_moment(monkeypatch):
    monkeypatch.setattr(story_feed, "_PAGE", 4)
    rows = Rows()
    tail = StoryFeed(rows)
    rows.commit(*range(1, 7), at_s=1000.5)
    rows.commit(*range(7, 30), at_s=1001.0)
    rows.now = 1002.0
    assert found(tail) == [*range(1, 30)]
    assert max(rows.pages) == 32
