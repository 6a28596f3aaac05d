import msgspec

from roost.scheduler.explain.decision_replay import compare_decisions
from tests.support.fleets.worlds import hosts, roost_with, wish


def test_a_replay_compares_what_happened_and_not_the_words_of_a_version():
    roost = roost_with(hosts(2))
    refused = roost.decide(wish(vcpus=100))
    stages = [msgspec.structs.replace(stage, reason="other words") for stage in refused.stages]
    older = msgspec.structs.replace(refused, reason="older words", stages=stages)
    assert compare_decisions(older, refused).is_same
    fewer = msgspec.structs.replace(stages[0], after=stages[0].after + 1)
    assert compare_decisions(msgspec.structs.replace(older, stages=[fewer, *stages[1:]]), refused).fields == ["stages"]
