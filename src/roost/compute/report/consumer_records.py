"""Reads, claims, changes, moves and releases the allocations of consumers."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from roost.compute.providers.held_allocations import (
    Allocations,
    Amounts,
    ConsumerRecord,
    amounts_of,
    holdings_of,
    merge_ends,
)
from roost.compute.report.placement_session import PlacementSession, part, refusal
from roost.errors import Conflict, NotFound
from roost.model.placement.placement_api import GENERATION_CODE, Answer
from roost.observe import log

VERSION = "1.28"  # the first with consumer generations
# Only this text distinguishes the conflict of a consumer from that of a provider.
_CONSUMER_CHANGED = "consumer generation conflict"


class Consumers:
    """The consumers of a Placement. ``ReportClient`` documents the public methods."""

    def __init__(self, session: PlacementSession) -> None:
        self._session = session

    # --- read ---

    def answer_of(self, consumer_uuid: str) -> dict[str, Any]:
        """Return the response for a consumer."""
        return self._session.read(f"/allocations/{consumer_uuid}", version=VERSION)

    def of_provider(self, uuid: str) -> dict[str, Any]:
        """Return the allocations on a provider, by consumer."""
        found = self._session.read(f"/resource_providers/{uuid}/allocations", version=VERSION)
        held: dict[str, Any] = part(found, "allocations")
        return held

    def of_providers(self, uuids: Iterable[str]) -> Allocations:
        """Return all allocations of the consumers of some providers, including those on other providers."""
        consumers = sorted({consumer for uuid in uuids for consumer in self.of_provider(uuid)})
        records = ((consumer, self.answer_of(consumer)) for consumer in consumers)
        # Some consumers may have released their allocations meanwhile.
        return {consumer: _record(found) for consumer, found in records if part(found, "allocations")}

    # --- write ---

    def claim(
        self,
        consumer_uuid: str,
        request: Mapping[str, Any],
        *,
        project_id: str,
        user_id: str,
        generation: int | None,
        version: str,
    ) -> bool:
        """Claim the amounts of a request for a consumer, in addition to its allocations."""
        for _ in self._session.retries.attempts():
            found = self.answer_of(consumer_uuid)
            held, amounts = amounts_of(part(found, "allocations")), amounts_of(part(request, "allocations"))
            body: dict[str, Any] = {"project_id": project_id, "user_id": user_id, "consumer_generation": generation}
            if held:
                amounts = merge_ends(held, amounts)
                body["consumer_generation"] = part(found, "consumer_generation") if generation is None else generation
            elif "mappings" in request:
                body["mappings"] = request["mappings"]
            is_claimed = self._put(consumer_uuid, amounts, body, version=version)
            if is_claimed is not None:
                return is_claimed
        return False

    def put(self, consumer_uuid: str, payload: Mapping[str, Any]) -> bool:
        """Replace all allocations of a consumer."""
        for _ in self._session.retries.attempts():
            body = {name: value for name, value in payload.items() if name != "allocations"}
            is_claimed = self._put(consumer_uuid, amounts_of(part(payload, "allocations")), body, version=VERSION)
            if is_claimed is not None:
                return is_claimed
        return False

    def change(self, consumer_uuid: str, edit: Callable[[Amounts], dict[str, dict[str, int]]]) -> bool:
        """Change the allocations of a consumer with a function; return whether it changed them.

        Raises:
            NotFound: the consumer has no allocations.
            Conflict: every attempt met a concurrent change of the consumer or its providers.
        """
        path = f"/allocations/{consumer_uuid}"
        for _ in self._session.retries.attempts():
            found = self.answer_of(consumer_uuid)
            held = amounts_of(part(found, "allocations"))
            if not held:
                raise NotFound("allocation of consumer", consumer_uuid)
            amounts = edit(held)
            if amounts == held:
                return False
            answer = self._send(consumer_uuid, amounts, {**_record(found)}, version=VERSION)
            if answer.status == 204:
                return True
            if not _is_race(answer):
                raise refusal("PUT", path, answer)
        raise Conflict(f"the allocations of consumer {consumer_uuid} changed during each attempt", code=GENERATION_CODE)

    def move(self, source_uuid: str, target_uuid: str) -> bool:
        """Move the allocations of one consumer to another."""
        for _ in self._session.retries.attempts():
            source, target = self.answer_of(source_uuid), self.answer_of(target_uuid)
            held = amounts_of(part(source, "allocations"))
            if not held:
                return bool(part(target, "allocations"))
            record = _record(source)
            ours = {"project_id": record["project_id"], "user_id": record["user_id"]}
            body = {
                source_uuid: {**ours, "allocations": {}, "consumer_generation": record["consumer_generation"]},
                target_uuid: {
                    **ours,
                    "allocations": holdings_of(held),
                    "consumer_generation": target.get("consumer_generation"),
                },
            }
            answer = self._session.request("POST", "/allocations", body, version=VERSION)
            if answer.status == 204 or (answer.is_repeated and self._holds(target_uuid, held)):
                return True
            if not _is_race(answer):
                log.event("move_refused", source=source_uuid, target=target_uuid, problem=answer.problem)
                return False
            if _CONSUMER_CHANGED in answer.problem:
                raise refusal("POST", "/allocations", answer)
        return False

    def release(self, consumer_uuid: str) -> bool:
        """Release all allocations of a consumer, unless it changes concurrently; return whether there were any."""
        found = self.answer_of(consumer_uuid)
        if not part(found, "allocations"):
            return False  # Some servers would keep a consumer after an empty release.
        answer = self._send(consumer_uuid, {}, {**_record(found)}, version=VERSION)
        if answer.status != 204:
            raise refusal("PUT", f"/allocations/{consumer_uuid}", answer)
        return True

    def release_on(self, consumer_uuid: str, known: Mapping[str, Any], uuids: Collection[str]) -> bool:
        """Release the allocations of a consumer on some providers, if it is unchanged since it was read."""
        held = amounts_of(part(known, "allocations"))
        remaining = {uuid: each for uuid, each in held.items() if uuid not in uuids}
        if remaining == held:
            return False
        answer = self._send(consumer_uuid, remaining, {**_record(known)}, version=VERSION)
        if answer.status != 204:
            raise refusal("PUT", f"/allocations/{consumer_uuid}", answer)
        return True

    def drop(self, consumer_uuid: str) -> bool:
        """Release all allocations of a consumer despite concurrent changes; return whether there were any."""
        path = f"/allocations/{consumer_uuid}"
        answer = self._session.request("DELETE", path, version=VERSION)
        if answer.status == 404:
            return answer.is_repeated
        if answer.status != 204:
            raise refusal("DELETE", path, answer)
        return True

    # --- shared ---

    def _put(self, consumer_uuid: str, amounts: Amounts, body: Mapping[str, Any], *, version: str) -> bool | None:
        """Replace the allocations of a consumer; return whether it succeeded, or None if a retry may help.

        Raises:
            Conflict: the consumer changed.
        """
        answer = self._send(consumer_uuid, amounts, body, version=version)
        if answer.status == 204:
            return True
        if not _is_race(answer):
            log.event("claim_refused", consumer=consumer_uuid, problem=answer.problem)
            return False
        if _CONSUMER_CHANGED in answer.problem:
            raise refusal("PUT", f"/allocations/{consumer_uuid}", answer)
        return None

    def _send(self, consumer_uuid: str, amounts: Amounts, body: Mapping[str, Any], *, version: str) -> Answer:
        """Replace the allocations of a consumer; return the answer, or 204 if an unanswered attempt succeeded."""
        body = {**body, "allocations": holdings_of(amounts)}
        answer = self._session.request("PUT", f"/allocations/{consumer_uuid}", body, version=version)
        if answer.status == 409 and answer.is_repeated and self._holds(consumer_uuid, amounts):
            return Answer(204, None, is_repeated=True)
        return answer

    def _holds(self, consumer_uuid: str, amounts: Amounts) -> bool:
        return amounts_of(part(self.answer_of(consumer_uuid), "allocations")) == amounts


def _is_race(answer: Answer) -> bool:
    return answer.status == 409 and answer.code == GENERATION_CODE


def _record(found: Mapping[str, Any]) -> ConsumerRecord:
    return ConsumerRecord(
        allocations=part(found, "allocations"),
        project_id=part(found, "project_id"),
        user_id=part(found, "user_id"),
        consumer_generation=part(found, "consumer_generation"),
    )
