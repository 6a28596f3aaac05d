"""Notifications of decisions: at their start, and when they are durable."""

from collections.abc import Callable, Sequence

import msgspec

from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, NamedRequest
from roost.model.request import Request
from roost.model.work.notification import HostSelection, InstancePlace
from roost.observe import log
from roost.observe.event_buffer import Events

Act = Request | NamedRequest | Departure
Result = Decision | Exception | None
_NAMES = ("scheduler.select_destinations",)
_OLDER_NAMES = ("scheduler.run_instance",)


class DecisionNotifier:
    """Wraps the function that decides requests, and publishes the start and end of each.

    Args:
        decide: executes requests and departures, in order.
        events: receives the notifications.
        now_s: seconds since the epoch.
    """

    def __init__(
        self, decide: Callable[[Sequence[Act]], Sequence[Result]], events: Events, *, now_s: Callable[[], float]
    ) -> None:
        self._decide, self._events, self._now_s = decide, events, now_s
        self._names = _NAMES + (_OLDER_NAMES if events.limits.run_instance else ())

    def __call__(self, acts: Sequence[Act]) -> Sequence[Result]:
        """Execute requests and departures in order; publish the start and end of each request, including failures."""
        started = [self._publish_start(act) for act in acts]
        try:
            results = self._decide(acts)
        except Exception as error:
            for payloads in started:
                self._publish_end(payloads, error)
            raise
        for payloads, result in zip(started, results, strict=True):
            self._publish_end(payloads, result)
        return results

    def _publish_start(self, act: Act) -> list[HostSelection]:
        """Publish the start of a request; return the payloads of its end, one per event name."""
        if isinstance(act, Departure):
            return []
        request = act.request if isinstance(act, NamedRequest) else act
        payload = HostSelection(
            project_id=request.project_id,
            user_id=request.user_id,
            flavor=request.flavor.name,
            count=request.count,
            instance_uuids=list(request.instance_uuids),
        )
        end_payloads = []
        for name in self._names:
            start_id = self._publish(f"{name}.start", payload)
            end_payloads.append(msgspec.structs.replace(payload, start_id=start_id))
        return end_payloads

    def _publish_end(self, payloads: Sequence[HostSelection], result: Result) -> None:
        for name, payload in zip(self._names, payloads, strict=False):  # Departures are not published.
            self._publish(f"{name}.end", _end_payload(payload, result))

    def _publish(self, event_type: str, payload: HostSelection) -> str | None:
        try:
            return self._events.publish(event_type, payload, time_s=self._now_s())
        except Exception as error:  # noqa: BLE001  # a decision does not depend on its notification
            log.fault("notify", error)
            return None


def _end_payload(payload: HostSelection, result: Result) -> HostSelection:
    if not isinstance(result, Decision):
        return msgspec.structs.replace(payload, outcome="failed", reason=str(result))
    placed = [
        InstancePlace(instance_uuid=pick.instance_uuid, host=pick.host, node=pick.node, cell=pick.cell)
        for pick in result.picks
    ]
    return msgspec.structs.replace(
        payload, outcome=result.outcome, decision_uuid=result.uuid, reason=result.reason, placed=placed
    )
