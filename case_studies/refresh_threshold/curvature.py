"""Curvature of expected GRPO by Hessian-vector products, whole and by what staleness leaves old.

What relaxes towards the optimum is the expected gradient with samples drawn anew, g(theta); the
theory's h is minus its Jacobian. An answer here is right in one way only, so a prompt's chance of
success p is known without sampling, and a group's expected gradient is c(p) grad p, where c comes
of how groups of G turn out. That is the gradient of a scalar, mean C(p) with C' = c: the Jacobian
is its Hessian, symmetric, and Lanczos' method may be used. (The number of tokens, by which the loss
is divided, is taken as the constant that it nearly is.)

With samples held and no ratio the gradient is that of fixed-sample log-likelihoods,
``E[c p (grad log p - E_y grad log pi(y))]`` with c p and y of the snapshot. Its own Jacobian
follows the policy at once: the *fresh* part, zero in a bandit. The rest, the whole less the fresh
part, is *stale*: it follows the policy of the snapshot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

FLOOR = 1e-4  # what the trainer adds to the spread within a group before it divides by it


def advantage_gap(group: int) -> Tensor:
    """Advantage of a right answer less that of a wrong one, by how many others are right.

    Parameters
    ----------
    group : int
        Group size G.

    Returns
    -------
    gap : Tensor of shape (G,)
        For 0 to G - 1 right answers among the others.
    """
    right = torch.arange(group + 1, dtype=torch.float64)
    spread = (right * (group - right) / (group * (group - 1))).sqrt() + FLOOR
    of_right, of_wrong = (1 - right / group) / spread, -right / group / spread
    return of_right[1:] - of_wrong[:-1]


def _bernstein(share: Tensor, weights: Tensor) -> Tensor:
    """Mean of weights[number of successes] over a binomial with the chances in `share`."""
    degree = len(weights) - 1
    terms = [
        math.comb(degree, j) * float(weights[j]) * share**j * (1 - share) ** (degree - j)
        for j in range(degree + 1)
    ]
    return torch.stack(terms).sum(dim=0)


def pull(chance: Tensor, group: int) -> Tensor:
    """c(p): what a group's expected gradient gives per unit of grad p."""
    return _bernstein(chance, advantage_gap(group))


def objective(log_chance: Tensor, group: int) -> Tensor:
    """Scalar whose gradient is the expected GRPO gradient per completion: the mean of C(p).

    Parameters
    ----------
    log_chance : Tensor of shape (prompts,)
        Log-probability of the right answer.
    group : int
        Group size.

    Returns
    -------
    value : Tensor
    """
    steps = torch.cat([torch.zeros(1, dtype=torch.float64), advantage_gap(group).cumsum(0)]) / group
    return _bernstein(log_chance.exp(), steps).mean()


def held_objective(log_chance: Tensor, cross_entropy: Tensor, group: int) -> Tensor:
    """Scalar whose gradient is the expected one on samples of the present policy, held.

    Parameters
    ----------
    log_chance : Tensor of shape (prompts,)
    cross_entropy : Tensor of shape (prompts,)
        Of the policy against its own held probabilities, summed over the tokens of a sample. Its
        gradient is zero here, its Hessian the Fisher matrix of the samples.
    group : int

    Returns
    -------
    value : Tensor
    """
    chance = log_chance.detach().exp()
    return (pull(chance, group) * chance * (log_chance + cross_entropy)).mean()


Operator = Callable[[Tensor], Tensor]
"""A symmetric matrix, by its product with a vector."""


def hessian(value: Tensor, parameters: Sequence[Tensor]) -> Operator:
    """Hessian of a scalar by double backward passes."""
    first = torch.autograd.grad(value, parameters, create_graph=True)
    flat = torch.cat([part.reshape(-1) for part in first])

    def product(vector: Tensor) -> Tensor:
        second = torch.autograd.grad(flat @ vector, parameters, retain_graph=True)
        return torch.cat([part.reshape(-1) for part in second])

    return product


def gradient(value: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """Gradient of a scalar as one vector; the graph is kept."""
    parts = torch.autograd.grad(value, parameters, retain_graph=True)
    return torch.cat([part.reshape(-1) for part in parts])


def preconditioned(operator: Operator, scale: Tensor) -> Operator:
    """``D^-1/2 A D^-1/2``: similar to D^-1 A, so of the same eigenvalues, and symmetric."""
    root = scale.rsqrt()
    return lambda vector: root * operator(root * vector)


@dataclass(frozen=True)
class Extreme:
    """The most negative eigenvalue of an operator, as a curvature h = -lambda.

    Attributes
    ----------
    curvature : float
        Of the stiffest mode that pulls back.
    residual : float
        Norm of A x - lambda x over lambda: an eigenvalue lies within that share of it.
    vector : Tensor
        Of length 1.
    """

    curvature: float
    residual: float
    vector: Tensor


def stiffest(operator: Operator, size: int, steps: int = 12, seed: int = 0) -> Extreme:
    """Find the most negative eigenvalue by Lanczos' method with full reorthogonalisation.

    Parameters
    ----------
    operator : callable
        Symmetric.
    size : int
        Its dimension.
    steps : int
        Products with it.
    seed : int
        Of the starting vector.

    Returns
    -------
    extreme : Extreme
    """
    generator = torch.Generator().manual_seed(seed)
    vector = torch.randn(size, generator=generator)
    vector = vector / vector.norm()
    basis: list[Tensor] = []
    diagonal: list[Tensor] = []
    beside: list[Tensor] = []
    for _ in range(min(steps, size)):
        basis.append(vector)
        image = operator(vector)
        diagonal.append(image @ vector)
        kept = torch.stack(basis)
        # Twice, since once leaves in single precision what later shows as copies of eigenvalues.
        for _ in range(2):
            image = image - kept.T @ (kept @ image)
        beside.append(image.norm())
        if beside[-1] < 1e-6 * max(abs(d) for d in diagonal):
            break
        vector = image / beside[-1]
    inner = torch.diag(torch.stack(diagonal))
    if len(basis) > 1:
        off = torch.stack(beside[:-1])
        inner = inner + torch.diag(off, 1) + torch.diag(off, -1)
    values, vectors = torch.linalg.eigh(inner.double())
    found = torch.stack(basis).T @ vectors[:, 0].to(basis[0].dtype)
    lowest = float(values[0])
    residual = float((operator(found) - lowest * found).norm()) / max(abs(lowest), 1e-30)
    return Extreme(-lowest, residual, found)


def along(operator: Operator, direction: Tensor) -> float:
    """Curvature along a direction: minus the Rayleigh quotient."""
    return float(-(direction @ operator(direction)) / (direction @ direction))
