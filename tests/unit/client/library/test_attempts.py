"""Retries of calls, with a clock that only pauses move."""

import ssl

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.client import NoAnswer, ObjectMissing, RequestConflict, Retry, ServerTrouble
from roost.client.library.attempts import Conditions, ask, wait_for_end
from roost.client.library.exchange import Answer, Attempt, Call, Lost, Pause, Renewal

CALL = Call(method="POST", path="/v1/decisions", key="once", read=lambda answer: answer.body)
DONE = Answer(status=200, headers={}, body=b"done")
LOST = Lost(error=ConnectionResetError("reset"))


def refusal(status, kind="", **headers):
    """Return an error of a server."""
    body = {"type": kind and f"/v1/errors#{kind}", "title": "", "status": status, "detail": "no", "request_id": "r"}
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(status=status, headers=named, body=msgspec.json.encode(body))


class Conversation:
    """Carries out the steps of a call with outcomes in order; records the steps."""

    def __init__(self, *outcomes, retry=None, draw=0.5, has_login=False):
        self.outcomes, self.steps, self.now_s = [*outcomes], [], 0.0
        self.conditions = Conditions(
            url="http://server",
            retry=retry or Retry(),
            has_login=has_login,
            clock=lambda: self.now_s,
            draw=lambda: draw,
        )

    def run(self, steps):
        """Return the result of steps."""
        outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                return end.value
            self.steps.append(step)
            outcome = self.outcomes.pop(0) if isinstance(step, Attempt) else None
            self.now_s += step.seconds if isinstance(step, Pause) else 0.0

    def ask(self, timeout_s=60.0):
        """Return the result of a call."""
        return self.run(ask(CALL, self.conditions, timeout_s=timeout_s))

    @property
    def pauses(self):
        """The pauses so far, in seconds."""
        return [step.seconds for step in self.steps if isinstance(step, Pause)]


def test_each_attempt_has_the_key_of_the_first():
    own = Conversation(LOST, refusal(503), refusal(429), refusal(502), DONE)
    assert own.ask() == b"done"
    assert [step.call.key for step in own.steps if isinstance(step, Attempt)] == ["once"] * 5


@pytest.mark.parametrize(("status", "error"), [(409, RequestConflict), (404, ObjectMissing), (500, ServerTrouble)])
def test_refusal_is_final(status, error):
    own = Conversation(refusal(status))
    with pytest.raises(error):
        own.ask()
    assert own.pauses == []


def test_request_over_the_budget_of_the_server_is_not_repeated():
    own = Conversation(refusal(503, "over-budget", retry_after="1"))
    with pytest.raises(ServerTrouble) as error:
        own.ask()
    assert (error.value.problem_type, own.pauses) == ("over-budget", [])


def test_pauses_double_up_to_their_maximum():
    own = Conversation(*[LOST] * 5, DONE, retry=Retry(pause_first_s=1, pause_max_s=5))
    assert own.ask() == b"done"
    assert own.pauses == [1, 2, 4, 5, 5]


@given(draw=st.floats(0, 1, exclude_max=True), after_s=st.integers(0, 30))
def test_pause_is_never_shorter_than_the_server_demands(draw, after_s):
    own = Conversation(refusal(503, retry_after=str(after_s)), DONE, draw=draw)
    assert own.ask() == b"done"
    (pause_s,) = own.pauses
    assert after_s <= pause_s <= max(1.25 * after_s, 0.15)


def test_clients_return_at_different_moments():
    pauses = []
    for draw in (0.0, 0.5):
        own = Conversation(refusal(503, retry_after="4"), DONE, draw=draw)
        own.ask()
        pauses += own.pauses
    assert pauses == [4, 4.5]


def test_attempts_end_with_their_number():
    own = Conversation(*[LOST] * 3, retry=Retry(attempts_max=3))
    with pytest.raises(NoAnswer, match="http://server does not answer: reset") as error:
        own.ask()
    assert error.value.idempotency_key == "once"
    assert len(own.pauses) == 2


def test_attempts_end_before_a_pause_beyond_the_timeout():
    own = Conversation(refusal(503, retry_after="30"))
    with pytest.raises(ServerTrouble):
        own.ask(timeout_s=20)
    assert own.pauses == []


def test_attempts_have_the_time_that_is_left():
    own = Conversation(LOST, DONE, retry=Retry(pause_first_s=4))
    own.ask(timeout_s=10)
    assert [step.timeout_s for step in own.steps if isinstance(step, Attempt)] == [10, 6]


def test_idle_connection_that_the_server_closed_costs_no_pause_once():
    own = Conversation(Lost(error=ConnectionResetError(), is_reused=True), DONE)
    assert own.ask() == b"done"
    assert own.pauses == []
    again = Conversation(*[Lost(error=ConnectionResetError(), is_reused=True)] * 2, DONE)
    again.ask()
    assert len(again.pauses) == 1


def test_untrusted_certificate_is_final():
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = 18, "self-signed certificate"
    own = Conversation(Lost(error=error))
    with pytest.raises(NoAnswer):
        own.ask()
    assert own.pauses == []


def test_refused_token_is_renewed_once():
    own = Conversation(refusal(401), DONE, has_login=True)
    assert own.ask() == b"done"
    assert [type(step) for step in own.steps] == [Attempt, Renewal, Attempt]
    with pytest.raises(Exception, match="no"):
        Conversation(refusal(401), refusal(401), has_login=True).ask()


def test_wait_pauses_if_a_server_answers_early():
    states = [Answer(status=200, headers={}, body=text) for text in (b"open", b"open", b"done")]
    own = Conversation(*states)

    def call(wait_s):
        return Call(method="GET", path=f"?wait_s={wait_s:g}", read=lambda answer: State(answer.body.decode()))

    shown = own.run(wait_for_end(call, own.conditions, timeout_s=5, limit_s=30, on_progress=None))
    assert shown.outcome == "done"
    assert own.pauses == [0.5, 0.5]
    assert own.steps[0].call.path == "?wait_s=20"


class State:
    """The part of an operation that a wait reads."""

    def __init__(self, outcome):
        self.outcome, self.changed_at_s = outcome, 0.0


def test_limits_of_retries_are_checked():
    with pytest.raises(ValueError, match="attempts_max"):
        Retry(attempts_max=0)
    with pytest.raises(ValueError, match="first <= max"):
        Retry(pause_first_s=2, pause_max_s=1)
