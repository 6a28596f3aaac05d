"""From a request to the query for Placement. Read this file first.

.. code-block:: text

    extra_spec_groups   resources and traits in flavor and image, defaults, groups of the request
    processors          VCPU or PCPU                  flavor_devices   encryption, TPM, firmware, persistent memory
    destination         aggregates, tree and hosts    prefilters       one rule per file, in Nova's order
"""

from collections.abc import Sequence
from itertools import product

import msgspec

from roost.engine.columns.state import State
from roost.model.devices.pci import PciRequest
from roost.model.request import CandidateQuery, Request, ResourceGroup
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.scheduler.query.destination import add_destination, add_target
from roost.scheduler.query.draft import Draft
from roost.scheduler.query.extra_spec_groups import (
    KEY,
    add_defaults,
    add_extra_specs,
    add_image_traits,
    add_request_groups,
)
from roost.scheduler.query.flavor_devices import add_devices
from roost.scheduler.query.pci_requests import device_groups
from roost.scheduler.query.prefilter import Effect, PrefilterContext, run_prefilters
from roost.scheduler.query.prefilters import PREFILTERS
from roost.scheduler.query.processors import add_processors, is_pinned


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why no host can match."""

    rule: str
    reason: str  # a sentence


class BuiltQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query for a request, and the warnings about ignored parts."""

    query: CandidateQuery
    fallback: CandidateQuery | None = None  # alternative if the query has no candidates
    effects: tuple[tuple[str, Effect], ...] = ()  # names and effects of pre-filters, in order
    refusal: Refusal | None = None
    warnings: tuple[str, ...] = ()  # one sentence each


class AggregateQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The rest of a query if providers are unknown, and the warnings about ignored parts."""

    group: ResourceGroup  # only aggregates
    effects: tuple[tuple[str, Effect], ...] = ()
    refusal: Refusal | None = None
    warnings: tuple[str, ...] = ()  # one sentence each


def build_query(
    request: Request,
    state: State,
    *,
    settings: SchedulerSettings,
    default_zone: str = "nova",
    has_fallback: bool = True,
    placed: Sequence[PciRequest] = (),
) -> BuiltQuery:
    """Build the query of a request to Placement.

    Amounts come from the flavor; extra specs ``resources[S]:CLASS=N`` replace them. An amount of 0 removes its class.
    Traits come from ``trait[S]:NAME=required|forbidden``, the image, and device settings. The request may add groups.
    Then the pre-filters add traits and aggregates. Invalid extra specs are ignored with a warning. An unknown trait is
    not an error here, but no host has it.

    Args:
        request: the request; a comma-separated list of zones means any of them.
        state: the columns, for aggregates and hosts.
        settings: options of pre-filters, and the limit of candidates.
        default_zone: the zone of hosts that are in no aggregate with a zone.
        has_fallback: whether hosts with VCPU only may serve instances with dedicated processors.
        placed: the device requests of the flavor, if Placement allocates PCI devices; otherwise empty.

    Raises:
        BadRequest: two groups have the same suffix, a group or the whole request is empty, a trait is both
            required and forbidden, two trees are required at once, flavor and image contradict each other, or a zone
            does not exist.

    Source:
        nova/scheduler/utils.py, ResourceRequest, and nova/scheduler/request_filter.py.
    """
    draft = _build_draft(request, placed, uses_pcpu=True)
    effects = _run_prefilters(draft, request, state, settings=settings, default_zone=default_zone)
    refusal = _finish(draft, request, state, effects=effects, settings=settings)
    query = draft.query()
    fallback = None
    if has_fallback and is_pinned(request):
        unpinned = _build_draft(request, placed, uses_pcpu=False)
        _finish(unpinned, request, state, effects=effects, settings=settings)
        # If PCPU is the only resource, the query without PCPU would be empty.
        fallback = unpinned.query() if unpinned.has_resources else None
    return BuiltQuery(
        query=query,
        fallback=None if fallback == query else fallback,
        effects=effects,
        refusal=refusal,
        warnings=tuple(draft.warnings),
    )


def build_aggregate_query(
    request: Request, state: State, *, settings: SchedulerSettings, default_zone: str = "nova"
) -> AggregateQuery:
    """Return the aggregates that a request requires, for hosts with unknown providers.

    Args:
        request, state, settings, default_zone: as for ``build_query``.

    Raises:
        BadRequest: a zone does not exist, or flavor and image contradict each other.
    """
    inputs = Draft()
    add_extra_specs(inputs, request.flavor)
    add_image_traits(inputs.main, request.image)
    draft = Draft()
    effects = _run_prefilters(inputs, request, state, settings=settings, default_zone=default_zone)
    add_destination(draft, request)
    _add_effects(draft, effects)
    skipped = [key for key in request.flavor.extra_specs if KEY.fullmatch(key)]
    if request.image is not None:
        names = request.image.properties
        skipped += [name for name in names if name == "traits_required" or name.startswith("trait:")]
    skipped += [f"resource group {group.suffix!r}" for group in request.groups]
    skipped += [f"trait {trait} ({name})" for name, effect in effects for trait in sorted(effect.root_required)]
    if skipped:
        draft.warnings.append(f"providers are unknown, so these are ignored: {', '.join(skipped)}")
    return AggregateQuery(
        group=draft.main.build(""),
        effects=effects,
        refusal=_prefilter_refusal(effects) or _target_refusal(add_target(Draft(), request, state, settings=settings)),
        warnings=tuple(draft.warnings),
    )


def _build_draft(request: Request, placed: Sequence[PciRequest], *, uses_pcpu: bool) -> Draft:
    """Return the static part of the query: flavor, image and request."""
    draft = Draft()
    add_extra_specs(draft, request.flavor)
    add_request_groups(draft, request)
    for group in device_groups(placed):
        draft.add_device(group)
    add_image_traits(draft.main, request.image)
    if uses_pcpu:
        add_processors(draft.main, request)
    add_devices(draft, request)
    add_defaults(draft, request)
    add_destination(draft, request)
    draft.root_required |= request.root_required
    draft.root_forbidden |= request.root_forbidden
    draft.same_subtree = request.same_subtree
    return draft


def _run_prefilters(
    draft: Draft, request: Request, state: State, *, settings: SchedulerSettings, default_zone: str
) -> tuple[tuple[str, Effect], ...]:
    """Run the pre-filters, except for the check before a rebuild: the instance stays on its host."""
    if request.hints.get("_nova_check_type") in ("rebuild", ["rebuild"]):
        return ()
    name_of = state.aggregates.name_of
    context = PrefilterContext(
        request=request,
        required=draft.trait_requirements(),
        aggregates={name_of(aggregate): metadata for aggregate, metadata in state.metadata.items()},
        are_hosts_owned=_are_hosts_owned(state),
        default_zone=default_zone,
        settings=settings,
    )
    return tuple(run_prefilters(PREFILTERS, context))


def _are_hosts_owned(state: State) -> bool:
    """Return whether there are hosts, and each has the trait ``OWNER_NOVA``."""
    owner = state.trait_ids.id_of("OWNER_NOVA")
    if owner is None:
        return False
    roots = state.hosts.provider_row.view[state.hosts.alive.view]
    return len(roots) > 0 and bool(state.traits.mask_of(owner)[roots].all())


def _finish(
    draft: Draft,
    request: Request,
    state: State,
    *,
    effects: tuple[tuple[str, Effect], ...],
    settings: SchedulerSettings,
) -> Refusal | None:
    """Add the pre-filters' effects and the named destination; return the refusal, if any."""
    _add_effects(draft, effects)
    return _prefilter_refusal(effects) or _target_refusal(add_target(draft, request, state, settings=settings))


def _add_effects(draft: Draft, effects: tuple[tuple[str, Effect], ...]) -> None:
    for name, effect in effects:
        draft.root_required |= effect.root_required
        draft.root_forbidden |= effect.root_forbidden
        for group, trait in product(draft.devices, sorted(effect.device_required)):
            group.require(trait)
        draft.main.member_of.extend(effect.member_of)
        draft.main.avoided |= effect.forbidden_aggregates
        draft.warnings.extend(f"{name}: {warning}" for warning in effect.warnings)


def _prefilter_refusal(effects: tuple[tuple[str, Effect], ...]) -> Refusal | None:
    name, effect = effects[-1] if effects else ("", Effect())
    return Refusal(rule=name, reason=f"Scheduling failed: {effect.refusal}") if effect.refusal else None


def _target_refusal(reason: str) -> Refusal | None:
    return Refusal(rule="requested_hosts", reason=reason) if reason else None
