"""The conductor of a cell: build an instance on its host, or, after a failure, on the next alternate of the cell.

.. code-block:: text

    order ─▶ build      on the claimed host
          ◀─ failed     count it on the host; check whether a retry is allowed
          ─▶ claim      release the failed host and claim the next alternate, in one commit
          ─▶ build      there, and so on
          ─▶ outcome    ACTIVE with one claim, or ERROR with none, and the attempts
"""

from collections import deque
from contextlib import suppress
from functools import partial

from roost.conductor.builds.alternates import location_of
from roost.conductor.builds.build_failures import count_build
from roost.conductor.builds.builder_product import BuilderProduct
from roost.conductor.builds.claim_transfer import release_claims, transfer_claim
from roost.conductor.operation.faults import describe_error, error_outcome, log_error
from roost.conductor.operation.retries import attempt_record, check_attempt, first_attempt, no_alternate_error
from roost.errors import BuildFailed, Conflict, Unavailable
from roost.model.evidence.decision import Pick
from roost.model.work.builds import Attempt, BuildOrder, Instance, Outcome
from roost.ports import Builder


class CellConductor:
    """Builds the instances of one cell, one after the other.

    Args:
        product: stores claims and counts.
        builder: builds on hosts.
    """

    def __init__(self, *, product: BuilderProduct, builder: Builder) -> None:
        self._product = product
        self._builder = builder

    def build(self, order: BuildOrder) -> Outcome:
        """Build an instance on its claimed host, or on one of its alternates.

        Returns:
            ACTIVE: it runs, with the allocations of its pick. ERROR: it runs nowhere and holds nothing.
        """
        attempts: list[Attempt] = []
        try:
            pick = self._build(order, attempts)
        except Exception as error:  # noqa: BLE001  # any error ends the instance in ERROR
            return error_outcome(
                order.instance_uuid,
                order.decision_uuid,
                fault=log_error(error, decision_uuid=order.decision_uuid),
                attempts=attempts,
                unreleased=release_claims(self._product, (order.instance_uuid,), decision_uuid=order.decision_uuid),
            )
        return Outcome(
            instance_uuid=order.instance_uuid,
            status="ACTIVE",
            decision_uuid=order.decision_uuid,
            host=pick.host,
            node=pick.node,
            cell=pick.cell,
            attempts=attempts,
        )

    def _build(self, order: BuildOrder, attempts: list[Attempt]) -> Pick:
        """Return the host of the instance; record each attempt.

        Raises:
            Exception: the instance ends in ERROR.
        """
        settings, request = self._product.settings.scheduler, order.request
        check = partial(check_attempt, request, instance_uuid=order.instance_uuid, attempts_max=settings.max_attempts)
        pick, *alternates = order.picks
        left, attempt = deque(alternates), first_attempt(request)
        check(attempt=attempt, error=None)
        while True:
            error = self._failure(order, pick)
            attempts.append(attempt_record(pick, problem="" if error is None else describe_error(error)))
            count_build(self._product.placement, pick, has_failed=error is not None, rounds=settings.claim_rounds)
            if error is None:
                self._check_location(order, pick)
                return pick
            if not isinstance(error, BuildFailed):
                raise error
            attempt += 1
            check(attempt=attempt, error=error, attempts=attempts)
            pick = self._claim_next(order, left, attempts)

    def _failure(self, order: BuildOrder, pick: Pick) -> Exception | None:
        """Build on a claimed host; return the error."""
        instance = Instance(uuid=order.instance_uuid, request=order.request, allocations=pick.allocations)
        try:
            self._builder.build(instance, host=pick.host, node=pick.node, limits=pick.limits)
        except Exception as error:  # noqa: BLE001  # any error of a builder fails this attempt
            return error
        return None

    def _check_location(self, order: BuildOrder, pick: Pick) -> None:
        """Check that the claim of the instance is still on its host.

        Raises:
            Conflict: it was deleted or moved meanwhile.
        """
        placement = self._product.placement
        with suppress(Unavailable):  # The refresh may fail: the claim was durable before the build.
            placement.refresh()
        location = location_of(placement.state, order.instance_uuid)
        if location != (pick.host, pick.node):
            raise Conflict(
                f"the claim of instance {order.instance_uuid} moved to {location[1]} during the build on {pick.node}"
            )

    def _claim_next(self, order: BuildOrder, left: deque[Pick], attempts: list[Attempt]) -> Pick:
        """Claim the next fitting alternate; record each alternate without a claim.

        Raises:
            MaxRetriesExceeded: none is left.
        """
        while left:
            pick = left.popleft()
            problem = transfer_claim(self._product, order, pick)
            if not problem:
                return pick
            attempts.append(attempt_record(pick, problem=problem, is_claimed=False))
        raise no_alternate_error(order.instance_uuid, attempts)
