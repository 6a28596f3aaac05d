"""The conductor of a cell: builds an instance on its host, and where that fails on the next alternate of the cell.

.. code-block:: text

    order ─▶ build      on the host that is claimed already
          ◀─ failed     counted on the host; may it be tried once more?
          ─▶ claim      the next alternate: in one commit the failed host is given back and this one is taken
          ─▶ build      there, and so on
          ─▶ outcome    ACTIVE with one claim, or ERROR with none, and the story of the attempts
"""

from collections import deque
from contextlib import suppress
from functools import partial

from roost.conductor.builds.alternates import location_of
from roost.conductor.builds.build_failures import count_build
from roost.conductor.builds.builder_product import Product
from roost.conductor.builds.claim_transfer import release_claims, transfer_claim
from roost.conductor.operation.faults import describe_error, failed_outcome, log_error
from roost.conductor.operation.retries import attempt_record, check_attempt, first_attempt, no_alternate_error
from roost.errors import BuildFailed, Conflict, Unavailable
from roost.model.evidence.decision import Pick
from roost.model.work.builds import Attempt, BuildOrder, Instance, Outcome
from roost.ports import Builder


class CellConductor:
    """Builds the instances of one cell, one after the other.

    Args:
        product: where claims and counts are kept.
        builder: builds on hosts.
    """

    def __init__(self, *, product: Product, builder: Builder) -> None:
        self._product = product
        self._builder = builder

    def build(self, order: BuildOrder) -> Outcome:
        """Build an instance on the host that is claimed for it, or on one of its alternates.

        Returns:
            ACTIVE: it runs, and holds what the pick of its host says. ERROR: it runs nowhere, and holds nothing.
        """
        attempts: list[Attempt] = []
        try:
            pick = self._built(order, attempts)
        except Exception as error:  # noqa: BLE001  # whatever goes wrong, the instance has an end that says so
            return failed_outcome(
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

    def _built(self, order: BuildOrder, attempts: list[Attempt]) -> Pick:
        """Return where the instance runs, and tell each attempt.

        Raises:
            Exception: whatever ends it in ERROR.
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
                self._see(order, pick)
                return pick
            if not isinstance(error, BuildFailed):
                raise error
            attempt += 1
            check(attempt=attempt, error=error)
            pick = self._claimed(order, left, attempts)

    def _failure(self, order: BuildOrder, pick: Pick) -> Exception | None:
        """Build on a host that is claimed; return what went wrong."""
        instance = Instance(uuid=order.instance_uuid, request=order.request, allocations=pick.allocations)
        try:
            self._builder.build(instance, host=pick.host, node=pick.node, limits=pick.limits)
        except Exception as error:  # noqa: BLE001  # whatever a builder raises is about this attempt
            return error
        return None

    def _see(self, order: BuildOrder, pick: Pick) -> None:
        """See that the instance is still where it was built.

        Raises:
            Conflict: somebody deleted or moved it meanwhile.
        """
        placement = self._product.placement
        with suppress(Unavailable):  # Its claim was durable before it was built.
            placement.refresh()
        here = location_of(placement.state, order.instance_uuid)
        if here != (pick.host, pick.node):
            raise Conflict(f"the instance {order.instance_uuid} went to {here[1]} while it was built on {pick.node}")

    def _claimed(self, order: BuildOrder, left: deque[Pick], attempts: list[Attempt]) -> Pick:
        """Return the next alternate that could be claimed, and tell of those that could not.

        Raises:
            MaxRetriesExceeded: none could.
        """
        while left:
            pick = left.popleft()
            problem = transfer_claim(self._product, order, pick)
            if not problem:
                return pick
            attempts.append(attempt_record(pick, problem=problem, is_claimed=False))
        raise no_alternate_error(order.instance_uuid)
