"""Write permissions of tokens with host bounds: the provider trees of their hosts, and the allocations there.

A root with a node belongs to the host of the node's service. A root without a node belongs to the host of its name, so
that an agent can create the root of its host before its first report.
"""

from collections.abc import Callable, Mapping

from roost.api.answer_options import Options
from roost.api.http import Identity, Request
from roost.api.placement.handlers import allocations, providers, reshaper
from roost.api.problems import Problem
from roost.engine.columns.state import Holder, State
from roost.model.names import uuid_text
from roost.model.placement import microversions
from roost.model.writes import CLASS_BITS, CLASS_MASK
from roost.placement.writes.claims import ConsumerSpec, holder_of, type_name

_Check = Callable[[Request, State, "_Bounds"], None]


def check(request: Request, state: State) -> None:
    """Refuse a write outside the bounds of a token; a missing target is left to the handler.

    Raises:
        Problem: 403.
        BadRequest: the body is invalid.
    """
    identity = request.identity
    if identity is None or not identity.hosts or request.method == "GET":
        return
    bounds = _Bounds(identity, state, request.options)
    check_bounds = _CHECKS.get((request.method, request.route))
    if check_bounds is None:
        raise bounds.refusal(f"{request.method} {request.route} affects all hosts")
    check_bounds(request, state, bounds)


class _Bounds:
    """The bounds of a token."""

    def __init__(self, identity: Identity, state: State, options: Options) -> None:
        self._identity, self._state, self._options = identity, state, options

    def refusal(self, reason: str) -> Problem:
        """Return the 403 error with a reason."""
        return Problem(
            403, f"this token may only touch {self._identity.bounds}, and {reason}", version_headers="version"
        )

    def host_of(self, row: int) -> str | None:
        """Return the host of the service at a provider's root; None: the root has no node."""
        hosts = self._state.hosts
        host_row = hosts.row_of_root.get(self._state.providers.root.each[row])
        return hosts.names[host_row] if host_row is not None and hosts.alive.each[host_row] else None

    def owns(self, row: int) -> bool:
        """Return whether a provider is in a tree of the token's hosts."""
        return self._identity.may_touch(self._owner(row))

    def check_row(self, row: int) -> None:
        """Refuse a provider outside the trees of the token's hosts."""
        if not self.owns(row):
            raise self.refusal(f"provider {self._state.providers.uuids[row]} belongs to {self._owner(row)}")

    def check_root(self, name: str) -> None:
        """Refuse a new root with the name of another host."""
        if not self._identity.may_touch(name):
            raise self.refusal(f"a provider without a parent would belong to {name}")

    def check_uuid(self, uuid: str) -> None:
        """Refuse an existing provider outside the trees of the token's hosts."""
        row = self._state.providers.row_of_uuid.get(uuid)
        if row is not None:
            self.check_row(row)

    def check_consumer(self, holder: Holder, amounts: Mapping[tuple[int, str], float]) -> None:
        """Refuse a consumer without allocations on the token's hosts, and changes of its allocations on other hosts.

        The token may reduce allocations on providers without a host, such as a shared disk.

        Args:
            amounts: new amounts, by provider row and class.
        """
        state = self._state
        rows, name_of = state.providers.row_of_id, state.class_ids.name_of
        held: Mapping[tuple[int, str], float] = {
            (rows[number >> CLASS_BITS], name_of(number & CLASS_MASK)): amount for number, amount in holder.takes
        }
        if not any(self.owns(row) for row, _ in held):
            raise self.refusal(f"consumer {uuid_text(holder.uuid)} has no allocations there")
        for key in held.keys() | amounts.keys():
            row, before, after = key[0], held.get(key, 0), amounts.get(key, 0)
            if after != before and (after > before or self.host_of(row) is not None):
                self.check_row(row)

    def check_owner(self, spec: ConsumerSpec, holder: Holder) -> None:
        """Refuse a change of project, user or type; a missing value equals the default that responses show."""
        owner = (
            holder.project_id or self._options.incomplete_consumer_project_id,
            holder.user_id or self._options.incomplete_consumer_user_id,
            type_name(self._state, holder),
        )
        if spec.amounts and (spec.project_id, spec.user_id, spec.consumer_type or owner[2]) != owner:
            raise self.refusal(f"consumer {uuid_text(holder.uuid)} belongs to another project, user or type")

    def _owner(self, row: int) -> str:
        providers = self._state.providers
        return self.host_of(row) or providers.names[providers.root.each[row]]


def _check_provider(request: Request, _state: State, bounds: _Bounds) -> None:
    bounds.check_uuid(request.parameters["uuid"])


def _check_creation(request: Request, _state: State, bounds: _Bounds) -> None:
    body = providers.creation_body(request)
    parent = body.get("parent_provider_uuid")
    if parent is None:
        bounds.check_root(body["name"])
    else:
        bounds.check_uuid(parent)


def _check_update(request: Request, state: State, bounds: _Bounds) -> None:
    row = state.providers.row_of_uuid.get(request.parameters["uuid"])
    if row is None:
        return
    bounds.check_row(row)
    body = providers.revision_body(request)
    parent_row = state.providers.parent.each[row]
    parent = body.get("parent_provider_uuid", None if parent_row < 0 else state.providers.uuids[parent_row])
    if parent is not None:
        bounds.check_uuid(parent)
    elif body["name"] != state.providers.names[row] or parent_row >= 0:
        bounds.check_root(body["name"])


def _check_allocations(request: Request, state: State, bounds: _Bounds) -> None:
    _check_specs([allocations.spec_of(request)], state, bounds)


def _check_many_allocations(request: Request, state: State, bounds: _Bounds) -> None:
    _check_specs(allocations.specs_of_many(request), state, bounds)


def _check_deletion(request: Request, state: State, bounds: _Bounds) -> None:
    holder = holder_of(state, request.parameters["consumer"])
    if holder is not None:
        bounds.check_consumer(holder, {})


def _check_reshape(request: Request, state: State, bounds: _Bounds) -> None:
    offers, specs = reshaper.offers_and_specs(request)
    for offer in offers:
        bounds.check_uuid(offer.uuid)
    _check_specs(specs, state, bounds)


def _check_specs(specs: list[ConsumerSpec], state: State, bounds: _Bounds) -> None:
    rows = state.providers.row_of_uuid
    for spec in specs:
        holder = state.holders.get(spec.uuid)
        if holder is None:
            raise bounds.refusal(f"consumer {uuid_text(spec.uuid)} has no allocations there")
        bounds.check_owner(spec, holder)
        amounts = {
            (rows[uuid], name): amount
            for uuid, resources in spec.amounts.items()
            if uuid in rows
            for name, amount in resources.items()
        }
        bounds.check_consumer(holder, amounts)


def _allow_any(_request: Request, _state: State, _bounds: _Bounds) -> None:
    """Allow the request: it only adds names, which ``name_quota`` counts."""


def _check_class(request: Request, _state: State, bounds: _Bounds) -> None:
    if not request.supports(microversions.RESOURCE_CLASS_IDEMPOTENT):
        raise bounds.refusal("a resource class would be renamed for all hosts")


# All other writes are refused.
_CHECKS: Mapping[tuple[str, str], _Check] = {
    ("POST", "/resource_providers"): _check_creation,
    ("PUT", "/resource_providers/{uuid}"): _check_update,
    ("DELETE", "/resource_providers/{uuid}"): _check_provider,
    **{
        (method, f"/resource_providers/{{uuid}}/{collection}"): _check_provider
        for collection, methods in {
            "inventories": ("POST", "PUT", "DELETE"),
            "inventories/{resource_class}": ("PUT", "DELETE"),
            "aggregates": ("PUT",),
            "traits": ("PUT", "DELETE"),
        }.items()
        for method in methods
    },
    ("POST", "/resource_classes"): _allow_any,
    ("PUT", "/resource_classes/{name}"): _check_class,
    ("PUT", "/traits/{name}"): _allow_any,
    ("POST", "/allocations"): _check_many_allocations,
    ("PUT", "/allocations/{consumer}"): _check_allocations,
    ("DELETE", "/allocations/{consumer}"): _check_deletion,
    ("POST", "/reshaper"): _check_reshape,
}
