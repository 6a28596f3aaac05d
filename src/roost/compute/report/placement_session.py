"""Requests to a Placement API over any transport, with retries."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from roost.errors import BadRequest, Conflict, NotFound, PlacementGone, RoostError
from roost.model.placement.placement_api import Answer

_STEP_S = 2.0


class Http(Protocol):
    """A transport to a Placement API."""

    def ask(self, method: str, path: str, body: object = None, *, version: str) -> Answer:
        """Send a request once.

        Args:
            path: with the query string, from the root of the API.
            body: sent as JSON; None: no body.
            version: microversion, such as ``1.36``.

        Raises:
            PlacementGone: there was no answer; it is unknown whether the request was carried out.
        """


class RetryPolicy:
    """The number of attempts, and the random pauses between them: up to 2 s, then up to 4 s, and so on.

    Args:
        sleep: waits a number of seconds.
        uniform: returns a random number between two numbers.
        tries: number of attempts, >= 1.
        step_s: increment of the longest pause, in seconds.
    """

    def __init__(
        self,
        *,
        sleep: Callable[[float], None],
        uniform: Callable[[float, float], float],
        tries: int = 4,
        step_s: float = _STEP_S,
    ) -> None:
        self._sleep = sleep
        self._uniform = uniform
        self._tries = tries
        self._step_s = step_s

    def attempts(self) -> Iterator[None]:
        """Yield once per attempt, after its pause."""
        for attempt in range(self._tries):
            if attempt:
                self._sleep(self._uniform(0.0, self._step_s * attempt))
            yield


class PlacementSession:
    """Sends requests with retries. A request without an answer may be carried out twice.

    Args:
        http: the transport.
        retries: policy for the repetition of a request; callers use it, too.
    """

    def __init__(self, http: Http, retries: RetryPolicy) -> None:
        self._http = http
        self.retries = retries

    def request(self, method: str, path: str, body: object = None, *, version: str) -> Answer:
        """Send a request until it is answered; return the answer with any status except 503.

        Raises:
            PlacementGone: no attempt was answered; it is unknown whether one was carried out.
        """
        gone: PlacementGone | None = None
        for _ in self.retries.attempts():
            try:
                answer = self._http.ask(method, path, body, version=version)
            except PlacementGone as error:
                gone = error
                continue
            if answer.status != 503:
                return answer._replace(is_repeated=answer.is_repeated or gone is not None)
            gone = PlacementGone(f"it answers {_label(method, path)} with {answer.problem}")
        assert gone is not None, "there is at least one attempt"
        raise gone

    def read(self, path: str, *, version: str) -> dict[str, Any]:
        """Return the body of a resource.

        Raises:
            NotFound: the resource does not exist.
            PlacementGone: there is no answer, or not an answer of a Placement.
            RoostError: the other errors of ``refusal``.
        """
        answer = self.request("GET", path, version=version)
        if answer.status != 200:
            raise refusal("GET", path, answer)
        if not isinstance(answer.body, dict):
            raise PlacementGone(f"it answers {_label('GET', path)} with no object")
        return answer.body


def refusal(method: str, path: str, answer: Answer) -> RoostError:
    """Return the error for the status of an answer."""
    problem = f"Placement refuses {_label(method, path)}: {answer.problem}"
    match answer.status:
        case 400:
            return BadRequest(problem, code=answer.code)
        case 404:
            return NotFound("provider", path, message=problem)
        case 409:
            return Conflict(problem, code=answer.code)
    return PlacementGone(f"it answers {_label(method, path)} with {answer.problem}")


def part(record: Any, name: str) -> Any:
    """Return a member of an answer.

    Raises:
        PlacementGone: the member is missing.
    """
    try:
        return record[name]
    except (LookupError, TypeError):
        raise PlacementGone(f"its answer has no {name}") from None


def _label(method: str, path: str) -> str:
    return f"{method} {path.partition('?')[0]}"
