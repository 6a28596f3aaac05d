"""The array types, named once."""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]  # a verdict a row
Amounts = npt.NDArray[np.int64]  # in the unit of a resource class, or counts
Scores = npt.NDArray[np.float64]  # weights, and host facts that weights are made of
Rows = npt.NDArray[np.intp]  # row numbers
AnyArray = npt.NDArray[Any]
if TYPE_CHECKING:  # Only type checkers know memoryview to be generic.
    Cells: TypeAlias = memoryview[Any]  # an array for one row at a time
else:
    Cells = memoryview

# What a provider without inventory of a class has free: less than any amount asked, and far from overflow.
NO_INVENTORY = -(2**62)
