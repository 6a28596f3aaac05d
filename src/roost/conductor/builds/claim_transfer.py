"""Transfers and releases of the claims of instances that conductors build."""

from roost.conductor.builds.alternates import plan_alternate
from roost.conductor.builds.builder_product import BuilderProduct
from roost.conductor.builds.remote_alternates import transfer_remote_claim
from roost.conductor.operation.faults import log_error
from roost.model.evidence.decision import Pick
from roost.model.fleet import Departure
from roost.model.work.builds import BuildOrder
from roost.model.writes import Item


def transfer_claim(product: BuilderProduct, order: BuildOrder, pick: Pick) -> str:
    """Release the host of an instance and claim an alternate, in one commit.

    Returns:
        Why the alternate cannot be claimed; empty: it is claimed.

    Raises:
        Conflict: the instance does not exist any more.
        Unavailable: the store or the remote Placement failed.
    """
    placement, remote = product.placement, product.remote
    for _ in range(product.settings.scheduler.claim_rounds):
        placement.refresh()
        step = plan_alternate(placement, order.instance_uuid, pick)
        if isinstance(step, str):
            return step
        if remote is not None:
            return (
                ""
                if transfer_remote_claim(placement, remote, step)
                else f"conflict with a concurrent change on {pick.node}"
            )
        if placement.commit([Item(writes=(step.release, step.claim))])[0] is None:
            return ""
    return f"conflicts with concurrent changes on {pick.node} in every attempt"


def release_claims(product: BuilderProduct, instance_uuids: tuple[str, ...], *, decision_uuid: str) -> str:
    """Release all allocations of instances; return the problem, or an empty text."""
    try:
        product.work([Departure(instance_uuids=instance_uuids)])
    except Exception as error:  # noqa: BLE001  # any error becomes part of the outcome
        return log_error(error, decision_uuid=decision_uuid)
    return ""
