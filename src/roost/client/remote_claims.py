"""Candidates and claims of a remote Placement, for the scheduler."""

import random
from collections.abc import Mapping
from typing import Any

import msgspec

from roost.client.placement_http import Connection, part
from roost.errors import Conflict, PlacementGone
from roost.model.names import uuid_form
from roost.model.placement.microversions import ANY_TRAITS, CONSUMER_TYPES
from roost.model.placement.placement_api import GENERATION_CODE, Answer
from roost.model.placement.remote import Amounts, RemoteAnswer, RemoteConsumer, RemoteHost
from roost.model.request import CandidateQuery
from roost.model.settings.placement_settings import NOBODY
from roost.scheduler.query.query_string import needs_any, query_string

_TYPE = "INSTANCE"
# Part of the message of a 409 if a consumer has another generation, or exists.
_CONSUMER_CONFLICT = "consumer generation conflict"
# Upper bounds of the pauses before allocations are sent again, in seconds: each pause is random, so that competing
# clients do not meet again. The deciding thread waits meanwhile.
_PAUSES_S_MAX = (0.05, 0.1, 0.2)


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
        """Claim amounts for a new consumer; return false if they do not fit, or change too often.

        Raises:
            Conflict: the consumer has allocations already.
            PlacementGone: the server does not answer; the claim may have been made.
        """
        if self._is_dry:
            return True
        answer = self._put(consumer_uuid, allocations, project_id=project_id, user_id=user_id, generation=None)
        if answer.status != 204 and not answer.is_repeated and _CONSUMER_CONFLICT in answer.problem:
            text = f"the instance {consumer_uuid} has allocations at the remote Placement already"
            raise Conflict(text, problem_type="already-exists")
        return self._is_taken(answer, consumer_uuid, allocations)

    def allocations_of(self, consumer_uuid: str) -> RemoteConsumer:
        """Return the allocations of a consumer.

        Raises:
            PlacementGone: the server does not answer.
        """
        body = self._connection.get(f"/allocations/{consumer_uuid}") or {}
        try:
            held = {uuid_form(uuid): each["resources"] for uuid, each in body.get("allocations", {}).items()}
            generation = body.get("consumer_generation")
            return msgspec.convert({"allocations": held, "generation": generation}, RemoteConsumer)
        except (LookupError, TypeError, AttributeError, msgspec.ValidationError) as error:
            raise PlacementGone(f"its allocations are malformed: {error!r}") from error

    def replace(
        self,
        consumer_uuid: str,
        allocations: Amounts,
        *,
        project_id: str,
        user_id: str,
        known: RemoteConsumer | None = None,
    ) -> bool:
        """Replace the allocations of a consumer atomically; return whether it succeeded.

        Args:
            known: its present allocations; None: read them.

        Raises:
            PlacementGone: the server does not answer; the allocations may have been replaced.
        """
        if self._is_dry:
            return True
        generation = (known or self.allocations_of(consumer_uuid)).generation
        answer = self._put(consumer_uuid, allocations, project_id=project_id, user_id=user_id, generation=generation)
        return self._is_taken(answer, consumer_uuid, allocations)

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

    def aggregates_of(self, provider_uuid: str) -> frozenset[str] | None:
        """Return the aggregates of a provider; None: it does not exist.

        Raises:
            PlacementGone: the server does not answer.
        """
        body = self._connection.get(f"/resource_providers/{provider_uuid}/aggregates")
        return None if body is None else frozenset(map(uuid_form, part(body, "aggregates")))

    def _put(
        self, consumer_uuid: str, allocations: Amounts, *, project_id: str, user_id: str, generation: int | None
    ) -> Answer:
        """Send allocations; repeat them after a change of a provider meanwhile, which is not a lack of resources."""
        body: dict[str, Any] = {
            "allocations": {uuid: {"resources": dict(amounts)} for uuid, amounts in allocations.items()},
            "project_id": project_id or NOBODY,
            "user_id": user_id or NOBODY,
            "consumer_generation": generation,
        }
        if self._connection.minor >= CONSUMER_TYPES.minor:
            body["consumer_type"] = _TYPE
        path = f"/allocations/{consumer_uuid}"
        answer = self._connection.request("PUT", path, body)
        for pause_s_max in _PAUSES_S_MAX:
            if answer.is_repeated or answer.code != GENERATION_CODE or _CONSUMER_CONFLICT in answer.problem:
                break
            self._connection.pause(random.uniform(0, pause_s_max))
            answer = self._connection.request("PUT", path, body)
        if answer.status not in {204, 400, 409}:  # The status is 400 if a provider no longer exists.
            raise PlacementGone(f"it answers PUT /allocations with {answer.problem}")
        return answer

    def _is_taken(self, answer: Answer, consumer_uuid: str, allocations: Amounts) -> bool:
        if answer.status == 204:
            return True
        # If the first try succeeded without an answer, the retry conflicts with it.
        return answer.is_repeated and self.allocations_of(consumer_uuid).allocations == allocations


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
                if root not in hosts:
                    host = {"allocations": held, "used": used[root], "mappings": _mappings(request)}
                    hosts[root] = msgspec.convert(host, RemoteHost)
    except (LookupError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise PlacementGone(f"its candidates are malformed: {error!r}") from error
    return RemoteAnswer(hosts=hosts)


def _mappings(request: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the providers of each group of a candidate; empty before microversion 1.34."""
    return {suffix: list(map(uuid_form, uuids)) for suffix, uuids in request.get("mappings", {}).items()}
