"""Types of NumPy arrays, by their contents."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
"""An array of floats."""

IntArray = npt.NDArray[np.intp]
"""An array of integers: indices, counts, signs."""

BoolArray = npt.NDArray[np.bool_]
"""An array of truth values: a mask."""

ComplexArray = npt.NDArray[np.complex128]
"""An array of complex numbers."""
