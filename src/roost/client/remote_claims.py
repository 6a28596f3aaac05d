"""Candidates and claims of a remote Placement, for the scheduler."""

from collections.abc import Mapping
from typing import Any

import msgspec

from roost.client.placement_http import Connection, part
from roost.errors import PlacementGone
from roost.model.names import uuid_form
from roost.model.placement.microversions import ANY_TRAITS, CONSUMER_TYPES
from roost.model.placement.remote import Amounts, RemoteAnswer, RemoteHost
from roost.model.request import CandidateQuery
from roost.model.settings.placement_settings import NOBODY
from roost.scheduler.query.query_string import needs_any, query_string

_TYPE = "INSTANCE"


class RemotePlacement:
    """Candidates and claims of a remote Placement.

    Args:
        connection: connection to the remote Placement.
        is_dry: whether to write nothing; then every claim and every release succeeds.
    """

    def __init__(self, connection: Connection, *, is_dry: bool = False) -> None:
        self._connection = connection
        self._is_dry = is_dry

    def dry(self) -> "RemotePlacement":
        """Return a copy for dry runs, which writes nothing."""
        return RemotePlacement(self._connection, is_dry=True)

    def candidates(self, query: CandidateQuery) -> RemoteAnswer:
        """Return the hosts that can satisfy a query.

        Raises:
            PlacementGone: the server does not answer.
        """
        minor = self._connection.minor
        if minor < ANY_TRAITS.minor and needs_any(query):
            return RemoteAnswer(
                problem=f"alternative traits need microversion {ANY_TRAITS}; the remote Placement has 1.{minor}"
            )
        answer = self._connection.request("GET", f"/allocation_candidates?{query_string(query)}")
        if answer.status == 400:
            return RemoteAnswer(problem=answer.problem)
        if answer.status != 200:
            raise PlacementGone(f"it answers /allocation_candidates with {answer.problem}")
        return _hosts(part(answer.body, "allocation_requests"), part(answer.body, "provider_summaries"))

    def claim(self, consumer_uuid: str, allocations: Amounts, *, project_id: str, user_id: str) -> bool:
        """Claim amounts for a new consumer; return false after a concurrent change.

        Raises:
            PlacementGone: the server does not answer; the claim may have been made.
        """
        return self._is_dry or self._put(
            consumer_uuid, allocations, project_id=project_id, user_id=user_id, generation=None
        )

    def replace(self, consumer_uuid: str, allocations: Amounts, *, project_id: str, user_id: str) -> bool:
        """Replace the allocations of a consumer atomically; return whether it succeeded.

        Raises:
            PlacementGone: the server does not answer; the allocations may have been replaced.
        """
        if self._is_dry:
            return True
        generation = self._read_allocations(consumer_uuid).get("consumer_generation")
        return self._put(consumer_uuid, allocations, project_id=project_id, user_id=user_id, generation=generation)

    def release(self, consumer_uuid: str) -> None:
        """Release all allocations of a consumer, if it has any.

        Raises:
            PlacementGone: the server does not answer; the allocations may have been released.
        """
        if self._is_dry:
            return
        answer = self._connection.request("DELETE", f"/allocations/{consumer_uuid}")
        if answer.status not in {204, 404}:
            raise PlacementGone(f"it answers DELETE /allocations with {answer.problem}")

    def _put(
        self, consumer_uuid: str, allocations: Amounts, *, project_id: str, user_id: str, generation: int | None
    ) -> bool:
        body: dict[str, Any] = {
            "allocations": {uuid: {"resources": dict(amounts)} for uuid, amounts in allocations.items()},
            "project_id": project_id or NOBODY,
            "user_id": user_id or NOBODY,
            "consumer_generation": generation,
        }
        if self._connection.minor >= CONSUMER_TYPES.minor:
            body["consumer_type"] = _TYPE
        answer = self._connection.request("PUT", f"/allocations/{consumer_uuid}", body)
        if answer.status == 204:
            return True
        if answer.status not in {400, 409}:  # The status is 400 if a provider no longer exists.
            raise PlacementGone(f"it answers PUT /allocations with {answer.problem}")
        # If the first try succeeded without an answer, the retry conflicts with it.
        return answer.is_repeated and self._holds(consumer_uuid, allocations)

    def _holds(self, consumer_uuid: str, allocations: Amounts) -> bool:
        current = self._read_allocations(consumer_uuid).get("allocations", {})
        held = {uuid_form(uuid): each["resources"] for uuid, each in current.items()}
        return held == {uuid: dict(amounts) for uuid, amounts in allocations.items()}

    def _read_allocations(self, consumer_uuid: str) -> Mapping[str, Any]:
        body: Mapping[str, Any] = self._connection.get(f"/allocations/{consumer_uuid}") or {}
        return body


def _hosts(requests: list[Any], summaries: Mapping[str, Any]) -> RemoteAnswer:
    """Return the first candidate of each tree, and the usage of the tree."""
    try:
        root_of = {uuid: uuid_form(each["root_provider_uuid"]) for uuid, each in summaries.items()}
        used: dict[str, dict[str, int]] = {}
        for uuid, each in summaries.items():
            of_tree = used.setdefault(root_of[uuid], {})
            for name, amounts in each["resources"].items():
                of_tree[name] = of_tree.get(name, 0) + amounts["used"]
        hosts: dict[str, RemoteHost] = {}
        for request in requests:
            held = {uuid_form(uuid): each["resources"] for uuid, each in request["allocations"].items()}
            for root in {root_of[uuid] for uuid in request["allocations"]}:
                hosts.setdefault(root, msgspec.convert({"allocations": held, "used": used[root]}, RemoteHost))
    except (LookupError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise PlacementGone(f"its candidates are malformed: {error!r}") from error
    return RemoteAnswer(hosts=hosts)
