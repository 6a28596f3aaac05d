"""Requests to a Placement API over HTTP: one connection that is kept, and patience where the other side is away."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from roost.client.wire import LOST, Wire, decode_json
from roost.errors import BadSettings, PlacementGone
from roost.model.placement_api import Answer, newest_minor

SETTING = "placement.remote_url"
TOKEN_VARIABLE = "ROOST_PLACEMENT_TOKEN"  # noqa: S105  # where it is, not what it is
OLDEST, NEWEST = 36, 39  # microversions 1.x
# Before each further try of a request that was not answered, or answered 503.
_PAUSES_S = (0.1, 0.4, 1.0)


class Connection:
    """A way to a Placement API; one thread uses it at a time.

    Args:
        url: where ``/allocation_candidates`` is found below.
        token: that lets us in; None: none is sent.
        timeout_s: for which one answer is waited for, > 0.
        pause: waits so many seconds.

    Raises:
        BadSettings: the address is none, or answers in versions that are too old.
        PlacementGone: it does not answer, or does not let us in.
    """

    def __init__(
        self, url: str, *, token: str | None, timeout_s: float, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._wire = Wire(url, headers={"x-auth-token": token} if token else {}, timeout_s=timeout_s, setting=SETTING)
        self._pause = pause
        self._version: str | None = None  # There is none for the question which there are.
        try:
            self.minor = self._newest()
        except BaseException:
            self.close()
            raise
        self._version = f"1.{self.minor}"

    def _newest(self) -> int:
        found = self.ask("GET", "/").body
        try:
            newest = newest_minor(found)
        except ValueError as error:
            raise BadSettings(SETTING, f"is no Placement API: {error}") from None
        if newest < OLDEST:
            raise BadSettings(SETTING, f"has microversions up to 1.{newest}, and 1.{OLDEST} is needed")
        return min(newest, NEWEST)

    def get(self, path: str) -> Any:
        """Return what is answered; None: there is no such thing."""
        answer = self.ask("GET", path)
        if answer.status == 404:
            return None
        if answer.status != 200 or not isinstance(answer.body, dict):
            raise PlacementGone(f"it answers {path.partition('?')[0]} with {answer.problem}")
        return answer.body

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request that may be carried out twice, again and again where it is not answered.

        Raises:
            PlacementGone: no try was answered, or we are not let in; whether it was carried out is not known.
        """
        for pause_s in (*_PAUSES_S, None):
            try:
                status, text = self._wire.send(method, path, body, version=self._version)
                problem = "it answers with status 503"
            except LOST as error:
                status, text, problem = 503, b"", str(error) or type(error).__name__
            if status != 503:
                return _answer(f"{method} {path.partition('?')[0]}", status, text, is_repeated=pause_s != _PAUSES_S[0])
            if pause_s is None:
                raise PlacementGone(problem)
            self._pause(pause_s)
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._wire.close()


def _answer(what: str, status: int, text: bytes, *, is_repeated: bool) -> Answer:
    if status in {401, 403}:
        raise PlacementGone(f"it does not let us in: status {status}; put a token into ${TOKEN_VARIABLE}")
    answer = Answer(status, decode_json(text), is_repeated)
    if status >= 500:
        raise PlacementGone(f"it answers {what} with {answer.problem}")
    return answer


def part(record: Mapping[str, Any] | None, name: str) -> Any:
    """Return a member of an answer.

    Raises:
        PlacementGone: there is none.
    """
    try:
        return (record or {})[name]
    except LookupError:
        raise PlacementGone(f"its answer has no {name}") from None
