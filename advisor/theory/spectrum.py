r"""Many modes: the reward curve of a spectrum of stiffnesses.

A policy does not relax along one mode: easy prompts are learned early, hard ones late. Averaging
the overdamped exponential over a Gamma spectrum of stiffness with mean k and squared coefficient of
variation ``dispersion`` gives a closed form with a heavy tail; dispersion 0 is the single
exponential of arXiv:2606.30789. On 66 stable runs of tiny transformers the one-mode oscillator
overshoots where no run does; this form has the smallest residual.
"""

from __future__ import annotations

from typing import Any

from advisor.theory.arrays import namespace

SMALLEST_MOMENTUM = 1e-9
"""Stands for momentum 0, whose logarithm does not exist; the result differs by less than 1e-8."""

MOST_LOG_POWER = 600.0
"""Log of the power of a time beyond which nothing is left to gain: exp must not overflow."""


def inertial_time(time: Any, momentum: Any, xp: Any = None) -> Any:
    """Steps of progress after ``time`` optimizer steps while the velocity builds up.

    Parameters
    ----------
    time : array_like
        Optimizer steps (on the learning-rate clock).
    momentum : array_like
        In [0, 1), EMA form.
    xp : module, optional
        Of array functions; by default that of `namespace`.

    Returns
    -------
    time : array_like
        ``t - mu (1 - mu^t) / (1 - mu)``: exact for the discrete recursion to first order in the
        stiffness; lags raw time by ``mu / (1 - mu)`` steps (9 at momentum 0.9) in the end.
    """
    xp = xp or namespace(time, momentum)
    safe = xp.maximum(momentum, SMALLEST_MOMENTUM)
    return time - safe * (1 - xp.exp(time * xp.log(safe))) / (1 - safe)


def spectrum_decay(
    time: Any,
    stiffness: Any,
    damping: Any,
    momentum: Any,
    dispersion: Any,
    onset: Any = 1.0,
    xp: Any = None,
) -> Any:
    r"""Share of the initial distance left, averaged over a Gamma spectrum of stiffness.

    Parameters
    ----------
    time : array_like
        Optimizer steps, not negative.
    stiffness : array_like
        Mean stiffness k, per step.
    damping : array_like
        gamma = 1 - s k A, positive.
    momentum : array_like
        In [0, 1).
    dispersion : array_like
        Squared coefficient of variation of the stiffness over modes, positive.
    onset : array_like
        Exponent of a slow start, positive; 1 starts at full slope, as the theory has it.
    xp : module, optional
        As in :func:`inertial_time`.

    Returns
    -------
    share : array_like
        ``(1 + dispersion x^onset)^(-1/dispersion)`` with ``x = k / gamma * inertial time``: the
        stretched exponential as dispersion falls to 0, the Hill curve at dispersion 1.

    Notes
    -----
    ``E[exp(-w x)]`` for ``w ~ Gamma`` with mean 1 and variance ``dispersion``. Valid where every
    mode that carries reward is overdamped; stability is decided by the refresh map, never here.
    """
    xp = xp or namespace(time, stiffness, damping, momentum, dispersion, onset)
    x = stiffness / damping * inertial_time(time, momentum, xp)
    # The power of 0 is left out of the graph: its derivative by the exponent is no number.
    begun = x > 0
    log_power = onset * xp.log(xp.where(begun, x, 1.0))
    x = xp.where(begun, xp.exp(xp.minimum(log_power, MOST_LOG_POWER)), 0.0)
    return xp.exp(-xp.log1p(dispersion * x) / dispersion)
