"""The super conductor: schedule a request, and have the cells build its instances.

.. code-block:: text

    request ─▶ specification   name instances and decision, so that any claim can be found
            ─▶ scheduler       choose and claim, with alternates
            ─▶ cells           an order for each instance, to the conductor of its cell
            ◀─ outcomes        ACTIVE, or ERROR and the reason
"""

from collections.abc import Mapping

import msgspec

from roost.conductor.builds.builder_product import BuilderProduct, Cell
from roost.conductor.builds.claim_transfer import release_claims
from roost.conductor.operation.faults import error_outcome, log_error
from roost.errors import BadRequest, NotFound, NoValidHost
from roost.model.evidence.decision import Decision
from roost.model.fleet import NamedRequest
from roost.model.names import uuid_text
from roost.model.request import Request
from roost.model.work.builds import BuildOrder, Outcome
from roost.ports import Random


def specification(request: Request, random: Random) -> NamedRequest:
    """Return a request with uuids for its instances and its decision.

    Raises:
        BadRequest: the request moves an instance.
    """
    if request.move is not None:
        raise BadRequest("a build cannot include a move: request the move of the instance instead")
    decision, *instances = random.uuids(1 + request.count)
    uuids = request.instance_uuids or tuple(map(uuid_text, instances))
    return NamedRequest(
        request=msgspec.structs.replace(request, instance_uuids=uuids), decision_uuid=uuid_text(decision)
    )


def orders(request: Request, decision: Decision) -> list[BuildOrder]:
    """Return the orders to the cells: for each instance its pick and the alternates in the same cell."""
    return [
        BuildOrder(
            instance_uuid=pick.instance_uuid,
            request=request,
            decision_uuid=decision.uuid,
            picks=[pick, *decision.alternates.get(pick.cell, [])],
        )
        for pick in decision.picks
    ]


class SuperConductor:
    """Builds instances: the scheduler chooses their hosts, and the conductors of the cells build them.

    Args:
        product: the scheduler and the claims.
        cells: conductors by name of their cell; the empty name is for hosts without a cell.
        random: source of uuids.
    """

    def __init__(self, *, product: BuilderProduct, cells: Mapping[str, Cell], random: Random) -> None:
        self._product = product
        self._cells = cells
        self._random = random

    def build(self, request: Request) -> list[Outcome]:
        """Choose hosts for all instances of a request or for none, and have their cells build them.

        Returns:
            One outcome for each instance, in the order of the request.

        Raises:
            BadRequest: the request moves an instance.
        """
        named = specification(request, self._random)
        uuids = named.request.instance_uuids
        try:
            decision = self._product.work([named])[0]
        except Exception as error:  # noqa: BLE001  # any error ends the instances in ERROR
            fault, unreleased = log_error(error, decision_uuid=named.decision_uuid), self._undo_claims(named)
            return [error_outcome(uuid, named.decision_uuid, fault=fault, unreleased=unreleased) for uuid in uuids]
        assert decision is not None, "a request leads to a decision"
        if not decision.is_granted:
            fault = str(NoValidHost(decision.reason))
            return [error_outcome(uuid, decision.uuid, fault=fault) for uuid in uuids]
        return [self._send(order) for order in orders(named.request, decision)]

    def _send(self, order: BuildOrder) -> Outcome:
        """Send an order to the cell of its host."""
        pick = order.picks[0]
        cell = self._cells.get(pick.cell)
        if cell is None:
            where = f"in cell {pick.cell}" if pick.cell else "in no cell"
            fault = f"{pick.node} is {where}, and no conductor builds there"
        else:
            try:
                return cell.build(order)
            except Exception as error:  # noqa: BLE001  # the other instances go on
                fault = log_error(error, decision_uuid=order.decision_uuid)
        unreleased = release_claims(self._product, (order.instance_uuid,), decision_uuid=order.decision_uuid)
        return error_outcome(order.instance_uuid, order.decision_uuid, fault=fault, unreleased=unreleased)

    def _undo_claims(self, named: NamedRequest) -> str:
        """Release the claims of a request after the scheduler failed; return the problem, or an empty text.

        A claim and its decision are one commit. If the decision is not stored, there are no claims to release.
        """
        uuid = named.decision_uuid
        try:
            decision = self._product.decision(uuid)
        except NotFound:
            return ""
        except Exception as error:  # noqa: BLE001  # any error becomes part of the outcome
            return f"it is unknown whether resources were claimed: {log_error(error, decision_uuid=uuid)}"
        if not decision.is_granted:
            return ""
        return release_claims(self._product, named.request.instance_uuids, decision_uuid=uuid)
