"""How exactly a log prints its numbers."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from advisor.theory.arrays import FloatArray


def print_error(values: FloatArray) -> FloatArray:
    """Half of the last digit printed, in fixed decimals or in significant digits.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite numbers of one column.

    Returns
    -------
    error : ndarray of shape (n,)
        The larger of the two, for which of them holds is not known.
    """
    if not values.size:
        return values
    printed = [Decimal(repr(float(value))).normalize().as_tuple() for value in values]
    decimals = max(0, *(-int(number.exponent) for number in printed), 0)
    digits = max(len(number.digits) for number in printed)
    with np.errstate(divide="ignore"):
        leading = np.floor(np.log10(np.abs(values)))
    leading = np.where(np.isfinite(leading), leading, -np.inf)
    return np.maximum(0.5 * 10.0**-decimals, 0.5 * 10.0 ** (leading + 1 - digits))
