r"""The damped oscillator: from hyperparameters to the closed-form trajectory.

``m u'' + gamma u' + k u = 0`` with ``u = R - R*`` the distance of the expected reward from its
plateau and time in optimizer steps (arXiv:2606.30789; coefficients derived for EMA momentum, the
form of AdamW). Every function takes numbers, numpy arrays or PyTensor variables, and broadcasts.

Stiffness here is always ``k = learning rate x curvature``, per optimizer step, in the EMA
normalisation ``v' = momentum v + (1 - momentum) g``, ``u' = u + v'``. For plain heavy-ball SGD
(no dampening) divide the learning rate by ``1 - momentum`` first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from advisor.theory.arrays import namespace

TAYLOR_RADIUS = 1e-3
"""|z| below which cosh(sqrt z) and sinh(sqrt z)/sqrt z are summed as series.

The first omitted term is z^4/8! and z^4/9!: below 3e-17 here, so the patch is exact in float64.
"""


class Oscillator(NamedTuple):
    """Coefficients of ``mass u'' + damping u' + stiffness u = 0``, time in optimizer steps."""

    mass: Any
    damping: Any
    stiffness: Any


def coefficients(
    stiffness: Any, momentum: Any, mean_age: Any = 0.0, uncorrected_share: Any = 0.0
) -> Oscillator:
    r"""Mass, damping and stiffness from the optimizer's settings.

    Parameters
    ----------
    stiffness : array_like
        k, per optimizer step.
    momentum : array_like
        In [0, 1).
    mean_age : array_like
        A = lag + (K - 1)/2, mean age of a sample when used, in optimizer steps.
    uncorrected_share : array_like
        s in [0, 1], share of the staleness that no importance ratio corrects.

    Returns
    -------
    oscillator : Oscillator
        mass in steps, damping dimensionless, stiffness per step.

    Notes
    -----
    ``m = (1 + momentum) / (2 (1 - momentum)) + s k A^2 / 2``, ``gamma = 1 - s k A``. While
    ``k (1 - momentum) <= 0.02`` and K <= 32, good to 0.01 of the initial distance up to
    ``s k A = 0.12`` (s = 1; 0.06 at s = 0.2) and to 0.03 (0.05) up to 0.25; beyond that iterate the
    refresh map (:mod:`advisor.theory.refresh`). Never judge stability by the sign of ``gamma``:
    at momentum 0.9, K = 16, s = 1 it vanishes at k K = 2.13 while the exact limit is 2.98.

    Examples
    --------
    >>> round(coefficients(0.01, 0.9).mass, 6)
    9.5
    """
    stale = uncorrected_share * stiffness * mean_age
    mass = (1 + momentum) / (2 * (1 - momentum)) + stale * mean_age / 2
    return Oscillator(mass, 1 - stale, stiffness)


def damping_ratio(oscillator: Oscillator) -> Any:
    """Zeta = gamma / (2 sqrt(m k)): above 1 overdamped, 1 critical, below 1 oscillatory.

    Parameters
    ----------
    oscillator : Oscillator

    Returns
    -------
    ratio : array_like
    """
    xp = namespace(*oscillator)
    mass, damping, stiffness = oscillator
    return damping / (2 * xp.sqrt(mass * stiffness))


def oscillatory_onset(momentum: Any) -> Any:
    r"""Largest on-policy stiffness without oscillation, exact for the discrete recursion.

    Parameters
    ----------
    momentum : array_like
        In [0, 1).

    Returns
    -------
    stiffness : array_like
        Per optimizer step: ``k (1 - momentum) = (1 - sqrt(momentum))^2``.
    """
    xp = namespace(momentum)
    return (1 - xp.sqrt(momentum)) ** 2 / (1 - momentum)


def decay(time: Any, oscillator: Oscillator, velocity: Any = 0.0) -> Any:
    r"""Return ``u(t) / u(0)``, the share of the initial distance that is left.

    Parameters
    ----------
    time : array_like
        Optimizer steps, not negative.
    oscillator : Oscillator
        Broadcast against ``time``.
    velocity : array_like
        Initial velocity over initial distance, per step; 0 for a cold start.

    Returns
    -------
    share : array_like
        1 at time 0.

    Notes
    -----
    With ``a = gamma / 2m`` and ``z = t^2 (gamma^2 - 4 m k) / 4 m^2`` the solution is
    ``e^{-a t} [cosh(sqrt z) + (v0 + a) t sinh(sqrt z)/sqrt z]`` in every regime. The three branches
    (two real exponentials, series around z = 0, sine and cosine) are each evaluated at an argument
    that is safe for them, so values and gradients stay finite across critical damping and for
    ``t -> infinity``; the slow root is ``k / (m lambda+)``, not a difference of near-equal numbers.
    """
    mass, damping, stiffness = oscillator
    xp = namespace(time, mass, damping, stiffness, velocity)
    half = damping / (2 * mass)
    discriminant = half**2 - stiffness / mass
    z = time**2 * discriminant

    real = z > TAYLOR_RADIUS
    root = xp.sqrt(xp.where(real, discriminant, 1.0))
    fast = half + root
    slow = xp.where(real, stiffness / (mass * xp.where(real, fast, 1.0)), half)
    # The exponents must not overflow in the branch that is not taken: there time is set to zero.
    safe_time = xp.where(real, time, 0.0)
    slow_left, fast_left = xp.exp(-slow * safe_time), xp.exp(-fast * safe_time)
    overdamped = (slow_left + fast_left) / 2 + (velocity + half) * (slow_left - fast_left) / (
        2 * root
    )

    complex_ = z < -TAYLOR_RADIUS
    frequency = xp.sqrt(xp.where(complex_, -discriminant, 1.0))
    phase = frequency * xp.where(complex_, time, 0.0)
    envelope = xp.exp(-half * time)
    underdamped = envelope * (xp.cos(phase) + (velocity + half) * xp.sin(phase) / frequency)

    near = xp.where(real | complex_, 0.0, z)
    even = 1 + near / 2 * (1 + near / 12 * (1 + near / 30))
    odd = 1 + near / 6 * (1 + near / 20 * (1 + near / 42))
    critical = envelope * (even + (velocity + half) * time * odd)
    return xp.where(real, overdamped, xp.where(complex_, underdamped, critical))


def trajectory(time: Any, start: Any, plateau: Any, oscillator: Oscillator) -> Any:
    """Expected reward after ``time`` optimizer steps from a cold start.

    Parameters
    ----------
    time : array_like
        Optimizer steps done, on the learning-rate clock (:mod:`advisor.theory.clock`).
    start, plateau : array_like
        R0 and R*, in reward units.
    oscillator : Oscillator
        From :func:`coefficients`.

    Returns
    -------
    reward : array_like
        ``R* + (R0 - R*) u(t + 1/2) / u(1/2)``.

    Notes
    -----
    A cold start has ``u[-1] = u[0]``, so the velocity of the continuous solution is zero half a
    step before the first update: time is shifted by 1/2. Dividing by ``u(1/2)`` keeps the curve at
    R0 exactly when no step has been taken; it changes less than 0.004 while
    k (1 - momentum) <= 0.02. There the curve tracks the on-policy recursion to 0.004 for
    momentum <= 0.95 (0.003 up to 0.015) and to 0.009 at momentum 0.99.
    """
    shifted = decay(time + 0.5, oscillator) / decay(0.5, oscillator)
    return plateau + (start - plateau) * shifted


def overdamped_trajectory(time: Any, start: Any, plateau: Any, relaxation: Any) -> Any:
    """Single exponential, the limit of strong damping: ``R* - (R* - R0) e^{-t/T}``.

    Parameters
    ----------
    time : array_like
        Optimizer steps.
    start, plateau : array_like
        R0 and R*, rewards.
    relaxation : array_like
        T in optimizer steps.

    Returns
    -------
    reward : array_like
    """
    xp = namespace(time, start, plateau, relaxation)
    return plateau + (start - plateau) * xp.exp(-time / relaxation)
