"""Names of the array types."""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]  # one verdict per row
Amounts = npt.NDArray[np.int64]  # in the unit of a resource class, or counts
Scores = npt.NDArray[np.float64]  # weights, and the host facts behind them
Rows = npt.NDArray[np.intp]  # row numbers
AnyArray = npt.NDArray[Any]
if TYPE_CHECKING:  # Only type checkers know memoryview to be generic.
    Cells: TypeAlias = memoryview[Any]  # access to an array row by row
else:
    Cells = memoryview

# The free amount of a provider without inventory: below any request, and far from overflow.
NO_INVENTORY = -(2**62)
