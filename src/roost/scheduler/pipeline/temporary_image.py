"""The image of a request that is only tried, so that its documents are not stored."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from roost.engine.columns.state import State
from roost.scheduler.shape.shape import Shape

# No stored document has this number.
_NUMBER = -2


@contextmanager
def temporary_image(state: State, shape: Shape) -> Iterator[None]:
    """Let rules see the image of the request's earlier instances; all must have left at the end of the block."""
    image = shape.spec.request.image
    if shape.flavor_id or image is None:
        yield
        return
    state.images[_NUMBER] = msgspec.json.encode(image)
    shape.image_id = _NUMBER
    try:
        yield
    finally:
        shape.image_id = 0
        state.forget_image(_NUMBER)
