"""Names of the types of NumPy arrays that columns become."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Flags", "Floats", "Objects", "Places", "Texts"]

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]
Places = npt.NDArray[np.int64]
Texts = npt.NDArray[np.str_]
