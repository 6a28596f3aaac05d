"""Heartbeats are retried until the database stores them; callbacks do not depend on each other."""

import pytest

from roost.api.v1.agents.agent_registry import AgentRegistry
from roost.api.v1.agents.wakeups import ENDS, Wakeups
from roost.app.up import call_each, combine_listeners
from roost.errors import Unavailable
from roost.machine import SystemClock
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.store.memory_store import MemoryStore


def test_heartbeats_are_stored_again_after_a_database_failure(monkeypatch):
    store, stored = MemoryStore(), []
    serving = Serving(Current(store))
    agents = AgentRegistry(serving, Wakeups(8), ends=Wakeups(8, topic=ENDS), clock=SystemClock())

    def full(_hosts, _now_s):
        raise Unavailable("no space left")

    agents._heartbeats = {"h1", "h2"}
    monkeypatch.setattr(store, "beat", full)
    with pytest.raises(Unavailable):
        serving.run(agents._store)
    monkeypatch.setattr(store, "beat", lambda hosts, _now_s: stored.append(hosts))
    agents.store_heartbeats()
    serving.stop()
    agents.close()
    assert (stored, agents._heartbeats) == ([["h1", "h2"]], set())


@pytest.mark.parametrize(
    "together", [lambda *acts: call_each(*acts)(), lambda *acts: combine_listeners(*map(_callback_of, acts))([])]
)
def test_failing_callback_does_not_block_the_others(together, capfd):
    calls = []

    def fail():
        raise ValueError("a planted fault")

    together(fail, lambda: calls.append("second"))
    assert calls == ["second"]
    assert "a planted fault" in capfd.readouterr().err


def _callback_of(act):
    return lambda _work: act()
