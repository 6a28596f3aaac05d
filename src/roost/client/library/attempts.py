"""The attempts of a call: which failures are retried, when, and for how long."""

import http.client
import math
import ssl
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from roost.api.v1.schemas.operations import ShownOperation
from roost.client.library.api_error import NoAnswer, OperationOpen, error_of, problem_of
from roost.client.library.exchange import Answer, Attempt, Call, Lost, Pause, Renewal, Steps, T
from roost.client.outage_text import outage_sentence
from roost.client.wire import check_prefix
from roost.errors import Unavailable

# Statuses of a server or proxy that cannot answer now.
_TEMPORARY = frozenset({429, 502, 503, 504})
# A retry of such a request would fail as well.
_OVER_BUDGET = "/v1/errors#over-budget"
# Longest wait of one request about an operation, in seconds, and the pause after an answer that came early.
_POLL_S, _EARLY_S = 20.0, 0.5


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of retries: after lost connections, and after the statuses 429, 502, 503 and 504.

    Each retry of a write has the idempotency key of its first attempt, so nothing is done twice. Each pause doubles, by
    a random factor of 0.5 to 1.5. A pause is never shorter than the ``retry-after`` of the server.
    """

    attempts_max: int = 6  # with the first one; 1: no retries
    pause_first_s: float = 0.1
    pause_max_s: float = 10.0

    def __post_init__(self) -> None:
        if self.attempts_max < 1 or not 0 <= self.pause_first_s <= self.pause_max_s < math.inf:
            raise ValueError("attempts_max must be at least 1, and the pauses must be 0 <= first <= max")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions of all calls of a client."""

    url: str  # of the server, for messages
    retry: Retry
    has_login: bool  # whether a refused token can be renewed
    clock: Callable[[], float]  # monotonic, in seconds
    draw: Callable[[], float]  # returns a random number, 0 <= number < 1


def ask(call: Call[T], conditions: Conditions, *, timeout_s: float) -> Steps[T]:
    """Send a call until it gets a final answer; return what it reads from the answer.

    Args:
        timeout_s: limit for all attempts and pauses.

    Raises:
        ApiError: the server refuses the request, or cannot answer it.
        NoAnswer: no answer arrived.
    """
    end_s = conditions.clock() + timeout_s
    is_renewed = has_reconnected = False
    count = 0
    while True:
        outcome = yield Attempt(call=call, timeout_s=max(end_s - conditions.clock(), 0.001))
        assert outcome is not None, "an attempt has an outcome"
        if isinstance(outcome, Lost) and outcome.is_reused and not has_reconnected:
            has_reconnected = True  # The server has closed an idle connection: this says nothing about its health.
            continue
        if isinstance(outcome, Answer) and outcome.status == 401 and conditions.has_login and not is_renewed:
            is_renewed = True
            yield Renewal()
            continue
        count += 1
        if not is_temporary(outcome):
            break
        pause_s = pause_before(outcome, count, conditions)
        if count >= conditions.retry.attempts_max or conditions.clock() + pause_s >= end_s:
            break
        yield Pause(seconds=pause_s)
    return _result_of(outcome, call, conditions)


def wait_for_end(
    call: Callable[[float], Call[ShownOperation]],
    conditions: Conditions,
    *,
    timeout_s: float,
    limit_s: float,
    on_progress: Callable[[ShownOperation], None] | None,
) -> Steps[ShownOperation]:
    """Wait until an operation ends.

    Args:
        call: returns the request for its state, with the seconds to wait for its end.
        timeout_s: limit of each request, in addition to that wait.
        limit_s: limit of the whole wait.
        on_progress: receives each new state.

    Raises:
        OperationOpen: the limit is over.
        ApiError, NoAnswer: as for ``ask``.
    """
    end_s = conditions.clock() + limit_s
    changed_s = -math.inf
    while True:
        start_s = conditions.clock()
        wait_s = min(_POLL_S, max(end_s - start_s, 0.0))
        shown = yield from ask(call(wait_s), conditions, timeout_s=timeout_s + wait_s)
        if on_progress is not None and shown.changed_at_s != changed_s:
            changed_s = shown.changed_at_s
            on_progress(shown)
        if shown.outcome != "open":
            return shown
        now_s = conditions.clock()
        if now_s >= end_s:
            raise OperationOpen(shown, limit_s=limit_s)
        if now_s - start_s < min(wait_s, _EARLY_S):  # A server that stops does not wait.
            yield Pause(seconds=_EARLY_S)


def is_temporary(outcome: Answer | Lost) -> bool:
    """Return whether a retry may succeed."""
    if not isinstance(outcome, Answer):
        return not isinstance(outcome.error, ssl.SSLCertVerificationError)
    return outcome.status in _TEMPORARY and problem_of(outcome).type != _OVER_BUDGET


def pause_before(outcome: Answer | Lost, count: int, conditions: Conditions) -> float:
    """Return the seconds before a retry.

    Args:
        count: number of failed attempts, >= 1.
    """
    retry, draw = conditions.retry, conditions.draw()
    pause_s = min(retry.pause_first_s * 2.0 ** (count - 1), retry.pause_max_s) * (0.5 + draw)
    if isinstance(outcome, Answer):
        after = outcome.headers.get("retry-after", "")
        if after.isdecimal():
            pause_s = max(pause_s, int(after[:9]) * (1.0 + 0.25 * draw))  # Clients must not return all at once.
    return pause_s


def _result_of(outcome: Answer | Lost, call: Call[T], conditions: Conditions) -> T:
    if not isinstance(outcome, Answer):
        raise NoAnswer(outage_sentence(outcome.error, conditions.url), key=call.key) from None
    if outcome.status >= http.client.BAD_REQUEST:
        check_prefix(conditions.url, outcome.body)
        raise error_of(outcome, key=call.key)
    try:
        return call.read(outcome)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"{conditions.url} gave an answer that is not of this API: {error}") from None
