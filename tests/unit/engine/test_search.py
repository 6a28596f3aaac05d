import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from roost.engine.anchors import anchor_mask
from roost.engine.search import has_candidate, search, to_candidate
from tests.forests import compiled_of, query_of, questions, result_of, state_of, uuid_of
from tests.reference.candidates import all_candidates, candidates_at


@settings(max_examples=700)
@given(questions())
def test_search_finds_what_the_slow_rule_finds(question):
    forest, query = question
    state = state_of(forest)
    found = [result_of(state, each) for each in search(state, compiled_of(state, query))]
    wanted = all_candidates(forest, query)
    assert set(found) == wanted
    assert len(found) == len(wanted)
