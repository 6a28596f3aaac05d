"""The fields of a request that rules can read: encode them as a key, and normalize their order."""

import msgspec

from roost.errors import BadRequest
from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.request import Destination, Hints, Move, Network, Request, ResourceGroup, Retry


def request_key(request: Request) -> bytes:
    """Return all fields that rules can read, as bytes.

    Raises:
        BadRequest: a value cannot be encoded.
    """
    try:
        return msgspec.msgpack.encode(
            (
                request.flavor,
                request.image,
                request.hints,
                request.group,
                request.project_id,
                request.availability_zone,
                request.ignore_hosts,
                request.force_hosts,
                request.force_nodes,
                request.destination,
                request.groups,
                request.retry,
                request.is_bfv,
                request.networks,
                request.root_required,
                request.root_forbidden,
                request.same_subtree,
                request.pci_requests,
                request.move,
            ),
            order="sorted",
        )
    except (OverflowError, UnicodeEncodeError) as error:
        raise BadRequest(f"the request cannot be stored: {error}") from None


# The fields of ``request_key``, with the types that a request must have.
_DECODER = msgspec.msgpack.Decoder(
    tuple[
        Flavor,
        Image | None,
        Hints,
        str | None,
        str,
        str | None,
        tuple[str, ...],
        tuple[str, ...],
        tuple[str, ...],
        Destination | None,
        tuple[ResourceGroup, ...],
        Retry | None,
        bool,
        tuple[Network, ...],
        frozenset[str],
        frozenset[str],
        tuple[frozenset[str], ...],
        tuple[PciRequest, ...],
        Move | None,
    ]
)


def normalize_request(request: Request, key: bytes) -> Request:
    """Return a request as if it were read from the database, with all names sorted.

    The original order of extra specs must not matter, because neither stored requests nor keys preserve it.

    Raises:
        BadRequest: a value has the wrong type; Python does not check types.
    """
    try:
        flavor, image, hints, *_, destination, groups, _, _, networks, required, forbidden, subtrees, devices, _ = (
            _DECODER.decode(key)
        )
    except msgspec.ValidationError as error:
        raise BadRequest(f"the request cannot be stored: {error}") from None
    return msgspec.structs.replace(
        request,
        flavor=flavor,
        image=image,
        hints=hints,
        destination=destination,
        groups=groups,
        networks=networks,
        root_required=required,
        root_forbidden=forbidden,
        same_subtree=subtrees,
        pci_requests=devices,
    )
