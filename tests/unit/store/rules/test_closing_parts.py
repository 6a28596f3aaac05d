"""Parts whose source closes after the last one."""

import pytest

from roost.store.rules.closing_parts import close_after


@pytest.fixture
def closed():
    """Return a list with an entry for each close."""
    return []


def parts(count, error=None):
    yield from range(count)
    if error is not None:
        raise error


def test_source_closes_after_the_last_part(closed):
    iterator = close_after(parts(3), lambda: closed.append("closed"))
    assert [next(iterator) for _ in range(3)] == [0, 1, 2]
    assert closed == []
    assert list(iterator) == []
    assert closed == ["closed"]


@pytest.mark.parametrize("read", [0, 1])
def test_source_closes_when_the_iterator_is_dropped(closed, read):
    iterator = close_after(parts(3), lambda: closed.append("closed"))
    for _ in range(read):
        next(iterator)
    assert closed == []
    del iterator
    assert closed == ["closed"]


def test_source_closes_after_an_error(closed):
    iterator = close_after(parts(1, ValueError("damaged")), lambda: closed.append("closed"))
    with pytest.raises(ValueError, match="damaged"):
        list(iterator)
    assert closed == ["closed"]
