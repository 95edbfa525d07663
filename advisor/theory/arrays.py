"""Types of arrays, and the functions that fit them; PyTensor is imported by its users alone."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def namespace(*values: Any) -> Any:
    """Module whose functions fit the arguments: numpy, or PyTensor's tensors.

    Parameters
    ----------
    *values : float, array or tensor

    Returns
    -------
    module
        ``pytensor.tensor`` where one of them is a tensor, else ``numpy``.
    """
    if any(type(value).__module__.startswith("pytensor") for value in values):
        return sys.modules["pytensor.tensor"]
    return np
