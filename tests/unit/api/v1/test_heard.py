"""Who was heard is told to the database until it takes it, and what is done each second does not depend on the rest."""

import pytest

from roost.api.v1.agents.agent_registry import AgentRegistry
from roost.api.v1.agents.wakeups import ENDS, Wakeups
from roost.app.up import call_each, heed_each
from roost.errors import Unavailable
from roost.machine import SystemClock
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.store.memory_store import MemoryStore


def test_who_was_heard_is_noted_again_where_the_database_did_not_take_it(monkeypatch):
    store, taken = MemoryStore(), []
    serving = Serving(Current(store))
    agents = AgentRegistry(serving, Wakeups(8), ends=Wakeups(8, topic=ENDS), clock=SystemClock())

    def full(_hosts, _now_s):
        raise Unavailable("no space left")

    agents._heard = {"h1", "h2"}
    monkeypatch.setattr(store, "beat", full)
    with pytest.raises(Unavailable):
        serving.run(agents._beat)
    monkeypatch.setattr(store, "beat", lambda hosts, _now_s: taken.append(hosts))
    agents.note_heard()
    serving.stop()
    agents.close()
    assert (taken, agents._heard) == ([["h1", "h2"]], set())


@pytest.mark.parametrize(
    "together", [lambda *acts: call_each(*acts)(), lambda *acts: heed_each(*map(_heeding, acts))([])]
)
def test_of_several_that_are_told_none_keeps_another_from_hearing_it(together, capfd):
    heard = []

    def fail():
        raise ValueError("a planted fault")

    together(fail, lambda: heard.append("second"))
    assert heard == ["second"]
    assert "a planted fault" in capfd.readouterr().err


def _heeding(act):
    return lambda _work: act()
