"""The routes of the Placement API: methods, versions, policies and handlers of every path."""

from collections.abc import Mapping
from dataclasses import dataclass

from roost.api.http import Handler, Work
from roost.api.path_tree import Paths
from roost.api.placement.handlers import (
    aggregates,
    allocations,
    candidates,
    inventories,
    providers,
    reshaper,
    resource_classes,
    root,
    traits,
    usages,
)
from roost.model.placement import microversions
from roost.model.placement.microversions import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path."""

    handler: Handler
    policy: str | None  # None: public
    since: Version = microversions.OLDEST
    # Whether the path exists before ``since``, without this method.
    is_method_new: bool = False
    # First version without request and response bodies, so that media types are not checked; None: no such version.
    silent_since: Version | None = None
    # Whether the media type is checked before the version.
    is_media_first: bool = False
    work: Work = "point"

    def is_silent(self, version: Version) -> bool:
        """Return whether a version has neither request nor response body."""
        return self.silent_since is not None and version >= self.silent_since


# The header ``allow`` lists methods in this order.
_TABLE: dict[str, dict[str, Route]] = {
    "/": {"GET": Route(handler=root.versions_document, policy=None, silent_since=microversions.OLDEST)},
    "/resource_providers": {
        "GET": Route(handler=providers.list_providers, policy="placement:resource_providers:list", work="list"),
        "POST": Route(handler=providers.create, policy="placement:resource_providers:create"),
    },
    "/resource_providers/{uuid}": {
        "GET": Route(handler=providers.show, policy="placement:resource_providers:show"),
        "DELETE": Route(handler=providers.delete, policy="placement:resource_providers:delete"),
        "PUT": Route(handler=providers.update, policy="placement:resource_providers:update"),
    },
    "/resource_providers/{uuid}/inventories": {
        "GET": Route(handler=inventories.list_inventories, policy="placement:resource_providers:inventories:list"),
        "POST": Route(handler=inventories.add, policy="placement:resource_providers:inventories:create"),
        "PUT": Route(handler=inventories.replace, policy="placement:resource_providers:inventories:update"),
        "DELETE": Route(
            handler=inventories.clear,
            policy="placement:resource_providers:inventories:delete",
            since=microversions.DELETE_INVENTORIES,
            is_method_new=True,
        ),
    },
    "/resource_providers/{uuid}/inventories/{resource_class}": {
        "GET": Route(handler=inventories.show, policy="placement:resource_providers:inventories:show"),
        "PUT": Route(handler=inventories.change, policy="placement:resource_providers:inventories:update"),
        "DELETE": Route(handler=inventories.remove, policy="placement:resource_providers:inventories:delete"),
    },
    "/resource_providers/{uuid}/aggregates": {
        "GET": Route(
            handler=aggregates.show,
            policy="placement:resource_providers:aggregates:list",
            since=microversions.AGGREGATES,
            is_media_first=True,
        ),
        "PUT": Route(
            handler=aggregates.replace,
            policy="placement:resource_providers:aggregates:update",
            since=microversions.AGGREGATES,
            is_media_first=True,
        ),
    },
    "/resource_providers/{uuid}/traits": {
        "GET": Route(
            handler=traits.show_of_provider,
            policy="placement:resource_providers:traits:list",
            since=microversions.TRAITS,
        ),
        "PUT": Route(
            handler=traits.replace_of_provider,
            policy="placement:resource_providers:traits:update",
            since=microversions.TRAITS,
        ),
        "DELETE": Route(
            handler=traits.clear_of_provider,
            policy="placement:resource_providers:traits:delete",
            since=microversions.TRAITS,
        ),
    },
    "/resource_providers/{uuid}/usages": {
        "GET": Route(handler=usages.show, policy="placement:resource_providers:usages"),
    },
    "/resource_classes": {
        "GET": Route(
            handler=resource_classes.list_classes,
            policy="placement:resource_classes:list",
            since=microversions.RESOURCE_CLASSES,
        ),
        "POST": Route(
            handler=resource_classes.create,
            policy="placement:resource_classes:create",
            since=microversions.RESOURCE_CLASSES,
        ),
    },
    "/resource_classes/{name}": {
        "GET": Route(
            handler=resource_classes.show,
            policy="placement:resource_classes:show",
            since=microversions.RESOURCE_CLASSES,
        ),
        "PUT": Route(
            handler=resource_classes.update,
            policy="placement:resource_classes:update",
            since=microversions.RESOURCE_CLASSES,
            silent_since=microversions.RESOURCE_CLASS_IDEMPOTENT,
        ),
        "DELETE": Route(
            handler=resource_classes.delete,
            policy="placement:resource_classes:delete",
            since=microversions.RESOURCE_CLASSES,
        ),
    },
    "/traits": {
        "GET": Route(handler=traits.list_traits, policy="placement:traits:list", since=microversions.TRAITS),
    },
    "/traits/{name}": {
        "GET": Route(
            handler=traits.show,
            policy="placement:traits:show",
            since=microversions.TRAITS,
            silent_since=microversions.TRAITS,
        ),
        "PUT": Route(
            handler=traits.ensure,
            policy="placement:traits:update",
            since=microversions.TRAITS,
            silent_since=microversions.TRAITS,
        ),
        "DELETE": Route(handler=traits.delete, policy="placement:traits:delete", since=microversions.TRAITS),
    },
    "/usages": {
        "GET": Route(
            handler=usages.show_by_owner,
            policy="placement:usages",
            since=microversions.USAGES_OF_PROJECTS,
            work="list",
        ),
    },
    "/resource_providers/{uuid}/allocations": {
        "GET": Route(
            handler=allocations.list_of_provider,
            policy="placement:resource_providers:allocations:list",
            work="list",
        ),
    },
    "/allocations": {
        "POST": Route(
            handler=allocations.replace_many,
            policy="placement:allocations:manage",
            since=microversions.ALLOCATIONS_OF_MANY,
        ),
    },
    "/allocations/{consumer}": {
        "GET": Route(handler=allocations.show, policy="placement:allocations:list"),
        "PUT": Route(handler=allocations.replace, policy="placement:allocations:update"),
        "DELETE": Route(handler=allocations.delete, policy="placement:allocations:delete"),
    },
    "/reshaper": {
        "POST": Route(handler=reshaper.post, policy="placement:reshaper:reshape", since=microversions.RESHAPER),
    },
    "/allocation_candidates": {
        "GET": Route(
            handler=candidates.list_candidates,
            policy="placement:allocation_candidates:list",
            since=microversions.CANDIDATES,
            work="search",
        ),
    },
}


_PATHS = Paths(_TABLE)
find, path_of = _PATHS.find, _PATHS.path_of


def table() -> Mapping[str, Mapping[str, Route]]:
    """Return the methods of every path."""
    return _TABLE
