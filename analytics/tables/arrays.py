"""Arrays of NumPy by their contents: the types of annotations."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

#: Numbers; NaN if one is not known.
Numbers: TypeAlias = npt.NDArray[np.float64]
#: Whole numbers: places, counts, IDs.
Whole: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Texts: TypeAlias = npt.NDArray[np.str_]
Objects: TypeAlias = npt.NDArray[np.object_]
