"""The feed of stories returns each event once, also after late commits, and page by page."""

from roost.conductor import story_feed
from roost.conductor.story_feed import follow_stories
from tests.support.conductors.work_rows import event


class Rows:
    """Committed events, and a clock."""

    def __init__(self, now_s=1000.0):
        self.now, self.rows, self.pages = now_s, [], []

    def now_s(self):
        """Return the time."""
        return self.now

    def events_since(self, at_s, *, limit):
        """Return a page of events, oldest first."""
        self.pages.append(limit)
        events = sorted((row for row in self.rows if row.at_s >= at_s), key=lambda row: (row.at_s, row.id))
        return events[:limit]

    def commit(self, *numbers, at_s):
        """Commit events of one time."""
        self.rows += [event(number, at_s=at_s) for number in numbers]


def new_ids(feed):
    return [row.id for row in feed.news()]


def test_feed_returns_new_events_once_and_no_old_ones():
    rows = Rows()
    rows.commit(1, at_s=999.0)
    feed = follow_stories(rows)
    rows.commit(2, 3, at_s=1001.0)
    rows.now = 1001.0
    assert (new_ids(feed), new_ids(feed)) == ([2, 3], [])


def test_feed_returns_events_that_are_at_most_ten_seconds_late():
    rows = Rows()
    feed = follow_stories(rows)
    rows.now = 1020.0
    rows.commit(1, at_s=1019.0)
    assert new_ids(feed) == [1]
    rows.commit(2, at_s=1011.0)
    rows.commit(3, at_s=1005.0)
    assert (new_ids(feed), new_ids(feed)) == ([2], [])


def test_feed_forgets_events_that_cannot_appear_again():
    rows = Rows()
    feed = follow_stories(rows)
    for second in range(1, 60):
        rows.now = 1000.0 + second
        rows.commit(second, at_s=rows.now)
        assert new_ids(feed) == [second]
    assert len(feed._seen) < 12


def test_feed_returns_all_pages_also_of_events_of_one_time(monkeypatch):
    monkeypatch.setattr(story_feed, "_PAGE", 4)
    rows = Rows()
    feed = follow_stories(rows)
    rows.commit(*range(1, 7), at_s=1000.5)
    rows.commit(*range(7, 30), at_s=1001.0)
    rows.now = 1002.0
    assert new_ids(feed) == [*range(1, 30)]
    assert max(rows.pages) == 32
