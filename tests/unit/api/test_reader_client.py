import asyncio

import pytest

from roost.api.reader_client import Turns
from roost.errors import Unavailable


def play_turns(owners, *, cancelled=(), **limits):
    """Queue requests of these owners behind a running one; return the order of the turns, and the results."""

    async def play():
        turns, order = Turns(1, **limits), []
        gate = asyncio.Event()

        async def ask(owner):
            async with turns.turn(owner):
                order.append(owner)
                await gate.wait()

        tasks = []
        for owner in owners:
            tasks.append(asyncio.create_task(ask(owner)))
            await asyncio.sleep(0)
        for at in cancelled:
            tasks[at].cancel()
        gate.set()
        return order, await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(play())


def test_identities_take_turns_regardless_of_their_queue_length():
    assert play_turns("aaaabbc")[0] == list("aabcaba")


def test_cancelled_waiter_is_skipped_and_holds_no_slot():
    order, results = play_turns("aabbc", cancelled=(1, 2))
    assert order == list("abc")
    assert [type(each) for each in results if each] == [asyncio.CancelledError] * 2


def test_waiters_beyond_the_limit_are_refused():
    order, results = play_turns("abbb", each_max=2)
    assert order == list("abb")
    assert [str(each) for each in results if each] == ["2 long questions of this identity are waiting; try again"]
    assert isinstance(results[3], Unavailable)


def test_waiters_beyond_the_limit_of_all_identities_are_refused():
    order, results = play_turns("abcd", waiting_max=2)
    assert order == list("abc")
    assert [str(each) for each in results if each] == ["2 long questions are waiting; try again"]


@pytest.mark.parametrize("at_once", [1, 2])
def test_all_turns_are_released(at_once):
    async def play():
        turns = Turns(at_once)
        for _ in range(3 * at_once):
            async with turns.turn("a"):
                pass
        async with turns.turn("a"):
            return True

    assert asyncio.run(play())
