"""Settings that the metrics of a run give away; silent wherever they could be chance."""

from __future__ import annotations

from typing import NamedTuple

from advisor.logs.settings.shared_ratio import shared_ratio
from advisor.logs.settings.smallest_step import least_count
from advisor.theory.arrays import FloatArray


class Guess(NamedTuple):
    """A value that nobody stated, and what gives it away.

    Attributes
    ----------
    value : float
    why : str
        A sentence without full stop.
    """

    value: float
    why: str


def kl_coefficient_from_loss(loss: FloatArray, kl: FloatArray) -> Guess | None:
    r"""Weight of the KL penalty, from rows whose loss is nothing but that penalty.

    Parameters
    ----------
    loss, kl : ndarray of shape (rows,)
        As logged; NaN where a cell is missing.

    Returns
    -------
    guess : Guess or None
        None where the ratio scatters, as it does when the policy term is in the loss, or where
        fewer than five rows show it with enough digits.

    Notes
    -----
    With one update per batch of rollouts the policy term is
    :math:`\frac{1}{G} \sum_i A_i = 0` whatever is learnt, and the loss is
    :math:`\beta\,\mathrm{KL}`. Where tokens rather than completions are averaged the two differ,
    but for rows in which no group had any spread. So either nearly all rows share one ratio, or
    some share one far more sharply than ratios near it are dense.
    """
    found = shared_ratio(loss, kl)
    if found is None:
        return None
    why = f"loss / kl is {found.value:g} in {found.rows} of {found.of} rows that tell"
    return Guess(found.value, why)


def completions_per_row(reward: FloatArray, window: int = 1) -> Guess | None:
    """How many completions a row averages, from the smallest step between rewards.

    Parameters
    ----------
    reward : ndarray of shape (rows,)
        Mean rewards of completions that score 0 or 1 each. Of a reward with parts of credit the
        smallest step is a part of one completion, which the means do not tell.
    window : int
        Optimizer steps that a row averages.

    Returns
    -------
    guess : Guess or None
        Over the whole window. None where rewards leave [0, 1], are no multiples of 1/n for an n
        up to 4096, are too few to exclude chance, or where n is a multiple of 5 in each step:
        credit of 0.1 or 0.2 shows so, batches hardly ever do.
    """
    count = least_count(reward)
    if count is None or count % window or not count // window % 5:
        return None
    return Guess(count, f"every reward is a multiple of 1/{count}, if a completion scores 0 or 1")


def groups_per_row(silent_share: FloatArray) -> Guess | None:
    """How many groups a row counts, from the smallest step between shares of silent groups.

    Parameters
    ----------
    silent_share : ndarray of shape (rows,)
        Share of groups whose rewards are all equal.

    Returns
    -------
    guess : Guess or None
        Over all optimizer steps that a row averages; None as for `completions_per_row`.
    """
    count = least_count(silent_share)
    if count is None:
        return None
    return Guess(count, f"every share of silent groups is a multiple of 1/{count}")


def group_size(completions: Guess | None, groups: Guess | None) -> Guess | None:
    """Completions per group, where both counts speak and the one divides the other."""
    if completions is None or groups is None:
        return None
    size, rest = divmod(completions.value, groups.value)
    if rest or size < 2:
        return None
    why = f"{completions.value:g} completions / {groups.value:g} groups in a row"
    return Guess(size, f"{why}: {completions.why}; {groups.why}")
