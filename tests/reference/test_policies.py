from hypothesis import given

from roost.api.access.policy import Policy
from roost.api.http import Identity
from tests.reference.policies import meaning, sentences, text

BOB = Identity(user_id="bob", project_id="shop", roles=frozenset({"admin"}))
TARGET = {"project_id": "shop"}


@given(sentences())
def test_policy_rule_matches_slow_evaluation(sentence):
    policy = Policy({"placement:traits:list": text(sentence), "yes": "@", "no": "!"}, origin="f")
    assert policy.allows("placement:traits:list", BOB, TARGET) == meaning(sentence)


@given(sentences())
def test_blanks_and_extra_brackets_do_not_change_a_rule(sentence):
    spaced = f"  (  {text(sentence).replace(' ', '   ').replace('(', ' ( ').replace('%  ( ', '%(')} ) "
    spaced = spaced.replace("% ( ", "%(")
    policy = Policy({"placement:traits:list": spaced, "yes": "@", "no": "!"}, origin="f")
    assert policy.allows("placement:traits:list", BOB, TARGET) == meaning(sentence)
