"""How a Placement API is asked: by whatever can carry a question, and again where no answer came."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from roost.errors import BadRequest, Conflict, NotFound, PlacementGone, RoostError
from roost.model.placement.placement_api import Answer

_STEP_S = 2.0


class Http(Protocol):
    """A way to a Placement API."""

    def ask(self, method: str, path: str, body: object = None, *, version: str) -> Answer:
        """Ask once.

        Args:
            path: with the query string, from the root of the API on.
            body: sent as JSON; None: there is none.
            version: microversion, as ``1.36``.

        Raises:
            PlacementGone: no answer came; whether it was carried out is not known.
        """


class Patience:
    """How often something is tried, and how long is waited in between: a random part of 2 s, then of 4 s, and so on.

    Args:
        sleep: waits so many seconds.
        uniform: gives a random number between two.
        tries: >= 1.
        step_s: by so much the longest pause grows from try to try.
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

    def turns(self) -> Iterator[None]:
        """Yield once for each try, after the pause before it."""
        for turn in range(self._tries):
            if turn:
                self._sleep(self._uniform(0.0, self._step_s * turn))
            yield


class Asking:
    """Asks patiently: a question without an answer is asked again, so it may be carried out twice.

    Args:
        http: the way to the API.
        patience: with which it is asked, and for those who ask to retry with.
    """

    def __init__(self, http: Http, patience: Patience) -> None:
        self._http = http
        self.patience = patience

    def ask(self, method: str, path: str, body: object = None, *, version: str) -> Answer:
        """Return the answer, whatever its status but 503.

        Raises:
            PlacementGone: no try was answered; whether one was carried out is not known.
        """
        gone: PlacementGone | None = None
        for _ in self.patience.turns():
            try:
                answer = self._http.ask(method, path, body, version=version)
            except PlacementGone as error:
                gone = error
                continue
            if answer.status != 503:
                return answer._replace(is_repeated=answer.is_repeated or gone is not None)
            gone = PlacementGone(f"it answers {_label(method, path)} with {answer.problem}")
        assert gone is not None, "patience tries at least once"
        raise gone

    def read(self, path: str, *, version: str) -> dict[str, Any]:
        """Return what is there.

        Raises:
            NotFound: it is not.
            PlacementGone: it does not answer, or not as a Placement does; and what else ``refusal`` gives.
        """
        answer = self.ask("GET", path, version=version)
        if answer.status != 200:
            raise refusal("GET", path, answer)
        if not isinstance(answer.body, dict):
            raise PlacementGone(f"it answers {_label('GET', path)} with no object")
        return answer.body


def refusal(method: str, path: str, answer: Answer) -> RoostError:
    """Return the error that says what whoever asked can do about a status."""
    what = f"Placement refuses {_label(method, path)}: {answer.problem}"
    match answer.status:
        case 400:
            return BadRequest(what, code=answer.code)
        case 404:
            return NotFound("provider", path, message=what)
        case 409:
            return Conflict(what, code=answer.code)
    return PlacementGone(f"it answers {_label(method, path)} with {answer.problem}")


def part(record: Any, name: str) -> Any:
    """Return a member of an answer.

    Raises:
        PlacementGone: there is none.
    """
    try:
        return record[name]
    except (LookupError, TypeError):
        raise PlacementGone(f"its answer has no {name}") from None


def _label(method: str, path: str) -> str:
    return f"{method} {path.partition('?')[0]}"
