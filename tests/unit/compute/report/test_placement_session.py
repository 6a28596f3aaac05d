"""Requests to Placement: retries, and errors from answers."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.compute.report.placement_session import PlacementSession, RetryPolicy, part, refusal
from roost.errors import BadRequest, Conflict, NotFound, PlacementGone
from roost.model.placement.placement_api import Answer, newest_minor

ERROR_BODY = {"errors": [{"detail": "no\n such  thing", "code": "placement.undefined_code"}]}


class ScriptedClient:
    """Returns the given answers in order; None: raises PlacementGone."""

    def __init__(self, *answers):
        self.left = [*answers]

    def ask(self, method, path, body=None, *, version):
        """Return the next answer."""
        answer = self.left.pop(0)
        if answer is None:
            raise PlacementGone("the line is cut")
        return answer


def new_session(*answers, tries=4):
    """Return a session, and the list of its pauses."""
    pauses = []
    retries = RetryPolicy(sleep=pauses.append, uniform=lambda _, high: high, tries=tries)
    return PlacementSession(ScriptedClient(*answers), retries), pauses


def test_immediate_answer_is_not_retried():
    session, pauses = new_session(Answer(404, None))
    assert session.request("GET", "/x", version="1.36") == Answer(404, None, is_repeated=False)
    assert pauses == []


@pytest.mark.parametrize("first", [None, Answer(503, None)])
def test_outage_text_or_503_is_retried_and_marked_as_repeated(first):
    session, pauses = new_session(first, Answer(409, ERROR_BODY))
    assert session.request("PUT", "/x", version="1.36") == Answer(409, ERROR_BODY, is_repeated=True)
    assert pauses == [2.0]


@pytest.mark.parametrize(
    ("last", "sentence"),
    [(None, "the line is cut"), (Answer(503, None), "it answers GET /x with status 503")],
)
def test_last_failed_try_raises_placement_gone(last, sentence):
    session, pauses = new_session(last, last, last, tries=3)
    with pytest.raises(PlacementGone, match=sentence):
        session.request("GET", "/x?y=1", version="1.36")
    assert pauses == [2.0, 4.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 406, 409, 500])
def test_other_statuses_are_not_retried(status):
    session, pauses = new_session(Answer(status, ERROR_BODY))
    assert session.request("PUT", "/x", version="1.36").status == status
    assert pauses == []


@given(seed=st.integers(0, 2**32), tries=st.integers(1, 6))
def test_pauses_are_bounded_and_random(seed, tries):
    pauses = []
    retries = RetryPolicy(sleep=pauses.append, uniform=random.Random(seed).uniform, tries=tries)
    assert len(list(retries.attempts())) == tries
    assert len(pauses) == tries - 1
    assert all(0.0 <= pause <= 2.0 * turn for turn, pause in enumerate(pauses, 1))


def test_no_pause_follows_a_successful_try():
    pauses = []
    for _ in RetryPolicy(sleep=pauses.append, uniform=lambda _, high: high).attempts():
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
def test_error_status_selects_the_exception(status, kind, sentence):
    with pytest.raises(kind, match=sentence):
        raise refusal("PUT", "/x?y=1", Answer(status, ERROR_BODY))


@pytest.mark.parametrize("body", [None, [], "text", 3])
def test_answer_that_is_not_an_object_is_refused(body):
    with pytest.raises(PlacementGone, match="with no object"):
        new_session(Answer(200, body))[0].read("/x", version="1.36")


@pytest.mark.parametrize("record", [None, {}, [], "text"])
def test_missing_part_of_an_answer_is_named(record):
    with pytest.raises(PlacementGone, match="its answer has no traits"):
        part(record, "traits")


@pytest.mark.parametrize("body", [None, b"", "no", {}, {"errors": []}, {"errors": [{}]}, {"errors": None}])
def test_error_without_details_is_reported_by_status(body):
    assert (Answer(500, body).problem, Answer(500, body).code) == ("status 500", "")


@pytest.mark.parametrize("versions", [None, [], [{"max_version": 3}], [{"max_version": "2.x"}]])
@pytest.mark.parametrize("wrap", [lambda versions: versions, lambda versions: {"versions": versions}])
def test_missing_versions_are_refused(versions, wrap):
    with pytest.raises(ValueError, match="its version document is invalid"):
        newest_minor(wrap(versions))
