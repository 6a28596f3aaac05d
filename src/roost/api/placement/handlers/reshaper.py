"""``/reshaper``: changes inventories and the allocations on them in one commit."""

from typing import Any

from roost.api.http import Request, Response, make_response
from roost.api.json_schema import Schema
from roost.api.placement.allocation_schemas import UUID_KEY, consumers_schema, pick_newest
from roost.api.placement.handlers.allocations import specs_of
from roost.api.placement.handlers.inventories import REPLACE
from roost.model.placement import microversions
from roost.model.placement.microversions import Version
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.placement.writes.claims import ConsumerSpec
from roost.placement.writes.reshapes import Offer, reshape


def _schema(version: Version) -> Schema:
    offered = {
        "type": "object",
        "patternProperties": {UUID_KEY: REPLACE.document},
        "minProperties": 1,
        "additionalProperties": False,
    }
    return Schema(
        {
            "type": "object",
            "properties": {"inventories": offered, "allocations": consumers_schema(version, minimum=0)},
            "required": ["inventories", "allocations"],
            "additionalProperties": False,
        }
    )


_SCHEMAS = {
    since: _schema(since) for since in (microversions.RESHAPER, microversions.MAPPINGS, microversions.CONSUMER_TYPES)
}


def post(request: Request, current: Current) -> Plan[Response]:
    """Replace inventories and allocations, all or none."""
    offers, specs = offers_and_specs(request)
    request.note("", *(offer.uuid for offer in offers), consumers=f"{len(specs):,}")
    writes = reshape(current, offers, specs)
    return Plan(writes=writes, answer=make_response(request, status=204))


def offers_and_specs(request: Request) -> tuple[list[Offer], list[ConsumerSpec]]:
    """Return the requested inventories and allocations.

    Raises:
        BadRequest: the body is invalid.
    """
    body: dict[str, Any] = request.json(pick_newest(_SCHEMAS, request.version))
    offers = [
        Offer(uuid=uuid, generation=each["resource_provider_generation"], inventories=each["inventories"])
        for uuid, each in body["inventories"].items()
    ]
    return offers, specs_of(body["allocations"], request.options)
