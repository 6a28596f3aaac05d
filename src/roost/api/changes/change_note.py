"""Changes by clients: their kinds, and the note of one that goes to the log."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# The kind of change that a request makes, by its policy. Requests with other policies only read, or agents send them.
_V1: Mapping[str, str] = {
    "services:update": "host.update",
    "hosts:drain": "host.drain",
    "plans:apply": "plan.apply",
    "aggregates:create": "aggregate.create",
    "aggregates:update": "aggregate.update",
    "aggregates:delete": "aggregate.delete",
    "aggregates:ratios": "host.set_ratios",
    "aggregates:hosts:update": "host.join_aggregate",
    "aggregates:hosts:delete": "host.leave_aggregate",
    "flavors:update": "flavor.update",
    "flavors:delete": "flavor.delete",
    "images:update": "image.update",
    "images:delete": "image.delete",
    "groups:create": "group.create",
    "groups:delete": "group.delete",
    "decisions:create": "decision.create",
    "decisions:next": "decision.next",
    "operations:delete": "operation.cancel",
    "operations:pause": "operation.pause",
    "operations:resume": "operation.resume",
    "instances:create": "instance.create",
    "instances:delete": "instance.delete",
    "instances:start": "instance.start",
    "instances:stop": "instance.stop",
    "instances:reboot": "instance.reboot",
    "instances:reset": "instance.reset",
    "instances:rebuild": "instance.rebuild",
    "instances:resize": "instance.resize",
    "instances:migrate": "instance.migrate",
    "instances:live-migrate": "instance.live_migrate",
    "instances:evacuate": "instance.evacuate",
    "instances:confirm": "instance.confirm",
    "instances:revert": "instance.revert",
    "instances:shelve": "instance.shelve",
    "instances:offload": "instance.offload",
    "instances:unshelve": "instance.unshelve",
}
_PLACEMENT: Mapping[str, str] = {
    "resource_providers:create": "resource_provider.create",
    "resource_providers:update": "resource_provider.update",
    "resource_providers:delete": "resource_provider.delete",
    "resource_providers:inventories:create": "inventory.create",
    "resource_providers:inventories:update": "inventory.update",
    "resource_providers:inventories:delete": "inventory.delete",
    "resource_providers:aggregates:update": "resource_provider.update_aggregates",
    "resource_providers:traits:update": "resource_provider.update_traits",
    "resource_providers:traits:delete": "resource_provider.delete_traits",
    "resource_classes:create": "resource_class.create",
    "resource_classes:update": "resource_class.update",
    "resource_classes:delete": "resource_class.delete",
    "traits:update": "trait.create",
    "traits:delete": "trait.delete",
    "allocations:manage": "allocation.update",
    "allocations:update": "allocation.update",
    "allocations:delete": "allocation.delete",
    "reshaper:reshape": "inventory.reshape",
}
_KINDS: Mapping[str, str] = {
    **{f"roost:{policy}": kind for policy, kind in _V1.items()},
    **{f"placement:{policy}": kind for policy, kind in _PLACEMENT.items()},
}
# Kinds that handlers choose in place of the kind of their policy.
_CHOSEN = (
    "instance.release",
    "host.disable",
    "host.enable",
    "host.force_down",
    "host.force_up",
    "flavor.create",
    "image.create",
)
# Kinds of changes by the server itself.
SETTINGS_RELOAD = "settings.reload"
KINDS = frozenset(_KINDS.values()) | frozenset(_CHOSEN) | {SETTINGS_RELOAD}
# The path parameters that name the changed object.
_OBJECTS = ("host", "id", "name", "uuid", "consumer")


@dataclass(slots=True)
class ChangeNote:
    """The change that a request makes, or tries to make."""

    kind: str
    objects: tuple[str, ...] = ()
    details: dict[str, str] = field(default_factory=dict)
    object_details: dict[str, Mapping[str, str]] = field(default_factory=dict)  # of one object, only for its record

    def set(self, kind: str = "", *objects: str, **details: str) -> None:
        """Add details; also replace the kind and the objects if they are given. A task that runs again replaces them.

        Args:
            details: empty ones are left out.
        """
        self.kind = kind or self.kind
        self.objects = objects or self.objects
        self.details |= {name: text for name, text in details.items() if text}

    def set_object(self, name: str, details: Mapping[str, str]) -> None:
        """Set the details of one object, which its record has in addition to those of all objects."""
        self.object_details[name] = details


def note_of(policy: str | None, parameters: Mapping[str, str]) -> ChangeNote | None:
    """Return the note of a request; None: it does not change what users see.

    Args:
        policy: of its route.
        parameters: of its path.
    """
    kind = _KINDS.get(policy or "")
    if kind is None:
        return None
    name = next((parameters[each] for each in _OBJECTS if each in parameters), "")
    return ChangeNote(kind=kind, objects=(name,) if name else ())
