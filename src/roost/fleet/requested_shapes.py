"""The shapes of stored requests: what was requested, without who, where and how many."""

from collections.abc import Callable
from itertools import islice

import msgspec

from roost.engine.columns.state import State
from roost.errors import report_corruption
from roost.model.image import Image
from roost.model.request import Request

# Stored requests that are read at most; the reader process reads them.
_REQUESTS_MAX = 2_000


def find_shapes(
    state: State, document: Callable[[int], bytes | None], *, project_id: str | None = None
) -> list[Request]:
    """Return the different shapes of at most 2,000 stored requests, ordered by the name of their flavor.

    A shape has the flavor, the resource groups, the traits, the devices and the image properties of a request. It has
    no hints, zone, hosts, networks or project.

    Args:
        state: the columns.
        document: returns the body of a stored document by its number.
        project_id: only requests of this project; None: of all projects.

    Raises:
        OverBudget: reading took too long.
    """
    numbers = (number for (kind, _), number in state.documents.items() if kind == "request")
    shapes: dict[bytes, Request] = {}
    with report_corruption("a request"):
        for number in islice(numbers, _REQUESTS_MAX):
            state.check()
            body = document(number)
            request = None if body is None else msgspec.json.decode(body, type=Request)
            if request is not None and project_id in {None, request.project_id}:
                shape = shape_of(request)
                shapes[shape.body()] = shape
    return [shape for _, shape in sorted(shapes.items(), key=lambda item: (item[1].flavor.name, item[0]))]


def shape_of(request: Request) -> Request:
    """Return the parts of a request that say how much of which resources it needs."""
    properties = {} if request.image is None else request.image.properties
    return Request(
        flavor=request.flavor,
        image=Image(properties=properties) if properties else None,
        groups=request.groups,
        is_bfv=request.is_bfv,
        pci_requests=request.pci_requests,
        root_required=request.root_required,
        root_forbidden=request.root_forbidden,
        same_subtree=request.same_subtree,
    )
