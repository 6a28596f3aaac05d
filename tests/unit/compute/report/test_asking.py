"""A question that is asked again, and what its answers mean."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.compute.report.placement_session import Asking, Patience, part, refusal
from roost.errors import BadRequest, Conflict, NotFound, PlacementGone
from roost.model.placement.placement_api import Answer, newest_minor

SAID = {"errors": [{"detail": "no\n such  thing", "code": "placement.undefined_code"}]}


class Scripted:
    """Answers what it was told to, in order; None: not at all."""

    def __init__(self, *answers):
        self.left = [*answers]

    def ask(self, method, path, body=None, *, version):
        """Answer."""
        answer = self.left.pop(0)
        if answer is None:
            raise PlacementGone("the line is cut")
        return answer


def asking(*answers, tries=4):
    """Give what asks, and its pauses."""
    pauses = []
    return Asking(Scripted(*answers), Patience(sleep=pauses.append, uniform=lambda _, high: high, tries=tries)), pauses


def test_what_is_answered_at_once_is_not_repeated():
    ours, pauses = asking(Answer(404, None))
    assert ours.ask("GET", "/x", version="1.36") == Answer(404, None, is_repeated=False)
    assert pauses == []


@pytest.mark.parametrize("first", [None, Answer(503, None)])
def test_what_is_not_answered_or_503_is_asked_again_and_may_have_been_done(first):
    ours, pauses = asking(first, Answer(409, SAID))
    assert ours.ask("PUT", "/x", version="1.36") == Answer(409, SAID, is_repeated=True)
    assert pauses == [2.0]


@pytest.mark.parametrize(
    ("last", "sentence"),
    [(None, "the line is cut"), (Answer(503, None), "it answers GET /x with status 503")],
)
def test_what_is_never_answered_is_given_up(last, sentence):
    ours, pauses = asking(last, last, last, tries=3)
    with pytest.raises(PlacementGone, match=sentence):
        ours.ask("GET", "/x?y=1", version="1.36")
    assert pauses == [2.0, 4.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 406, 409, 500])
def test_no_other_status_is_asked_again(status):
    ours, pauses = asking(Answer(status, SAID))
    assert ours.ask("PUT", "/x", version="1.36").status == status
    assert pauses == []


@given(seed=st.integers(0, 2**32), tries=st.integers(1, 6))
def test_pauses_are_bounded_and_random(seed, tries):
    pauses = []
    patience = Patience(sleep=pauses.append, uniform=random.Random(seed).uniform, tries=tries)
    assert len(list(patience.turns())) == tries
    assert len(pauses) == tries - 1
    assert all(0.0 <= pause <= 2.0 * turn for turn, pause in enumerate(pauses, 1))


def test_there_is_no_pause_behind_the_last_try():
    pauses = []
    for _ in Patience(sleep=pauses.append, uniform=lambda _, high: high).turns():
        if len(pauses) == 2:
            break
    assert pauses == [2.0, 4.0]


@pytest.mark.parametrize(
    ("status", "kind", "sentence"),
    [
        (400, BadRequest, "^Placement refuses PUT /x: no such thing$"),
        (404, NotFound, "^Placement refuses PUT /x: no such thing$"),
        (409, Conflict, "^Placement refuses PUT /x: no such thing$"),
        (403, PlacementGone, "it answers PUT /x with no such thing$"),
        (500, PlacementGone, "it answers PUT /x with no such thing$"),
    ],
)
def test_what_can_be_done_about_a_status(status, kind, sentence):
    with pytest.raises(kind, match=sentence):
        raise refusal("PUT", "/x?y=1", Answer(status, SAID))


@pytest.mark.parametrize("body", [None, [], "text", 3])
def test_an_answer_that_is_no_object_is_none_of_a_placement(body):
    with pytest.raises(PlacementGone, match="with no object"):
        asking(Answer(200, body))[0].read("/x", version="1.36")


@pytest.mark.parametrize("record", [None, {}, [], "text"])
def test_a_part_that_is_missing_is_told(record):
    with pytest.raises(PlacementGone, match="its answer has no traits"):
        part(record, "traits")


@pytest.mark.parametrize("body", [None, b"", "no", {}, {"errors": []}, {"errors": [{}]}, {"errors": None}])
def test_an_error_that_says_nothing_is_told_by_its_status(body):
    assert (Answer(500, body).problem, Answer(500, body).code) == ("status 500", "")


@pytest.mark.parametrize("versions", [None, [], [{"max_version": 3}], [{"max_version": "2.x"}]])
@pytest.mark.parametrize("wrap", [lambda versions: versions, lambda versions: {"versions": versions}])
def test_what_does_not_tell_its_versions_is_no_placement(versions, wrap):
    with pytest.raises(ValueError, match="does not tell its versions"):
        newest_minor(wrap(versions))
