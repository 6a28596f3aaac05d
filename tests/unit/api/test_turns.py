import asyncio

import pytest

from roost.api.reader_client import Turns
from roost.errors import Unavailable


def played(asks, *, cancelled=(), **limits):
    """Let identities ask one after the other while one question is at work; give the order in which they came on."""

    async def play():
        turns, order = Turns(1, **limits), []
        gate = asyncio.Event()

        async def ask(owner):
            async with turns.turn(owner):
                order.append(owner)
                await gate.wait()

        tasks = []
        for owner in asks:
            tasks.append(asyncio.create_task(ask(owner)))
            await asyncio.sleep(0)
        for at in cancelled:
            tasks[at].cancel()
        gate.set()
        return order, await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(play())


def test_each_identity_has_its_turn_however_many_questions_one_has():
    assert played("aaaabbc")[0] == list("aabcaba")


def test_who_leaves_is_passed_over_and_keeps_nothing():
    order, results = played("aabbc", cancelled=(1, 2))
    assert order == list("abc")
    assert [type(each) for each in results if each] == [asyncio.CancelledError] * 2


def test_more_than_may_wait_are_refused():
    order, results = played("abbb", each_max=2)
    assert order == list("abb")
    assert isinstance(results[3], Unavailable)
    assert [type(each) for each in played("abcd", waiting_max=2)[1]][3] is Unavailable


@pytest.mark.parametrize("at_once", [1, 2])
def test_all_turns_come_back(at_once):
    async def play():
        turns = Turns(at_once)
        for _ in range(3 * at_once):
            async with turns.turn("a"):
                pass
        async with turns.turn("a"):
            return True

    assert asyncio.run(play())
