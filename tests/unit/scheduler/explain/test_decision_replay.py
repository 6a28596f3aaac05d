import msgspec

from roost.scheduler.explain.decision_replay import compare_decisions
from tests.support.fleets.worlds import hosts, roost_with, small_request


def test_replay_compares_results_but_not_reason_texts():
    roost = roost_with(hosts(2))
    refusal = roost.decide(small_request(vcpus=100))
    stages = [msgspec.structs.replace(stage, reason="other words") for stage in refusal.stages]
    older = msgspec.structs.replace(refusal, reason="older words", stages=stages)
    assert compare_decisions(older, refusal).is_same
    fewer = msgspec.structs.replace(stages[0], after=stages[0].after + 1)
    assert compare_decisions(msgspec.structs.replace(older, stages=[fewer, *stages[1:]]), refusal).fields == ["stages"]
