"""A sampler that costs nothing, for what is decided round it."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.model import compat as _compat


@pytest.fixture
def sampler(monkeypatch):
    """In place of NUTS: draws that do or do not mix."""

    class Sampler:
        passes_at, diverging = None, 0.0
        attempts, densities, starts = [], [], []

        @classmethod
        def sample(cls, log_density, expand, shapes, start, *, draws, tune, chains, seed, **others):
            cls.attempts.append((draws, tune, others["target_accept"], seed))
            cls.densities.append(log_density)
            cls.starts.append(np.array([start(chain) for chain in range(chains)]))
            rng = np.random.default_rng(seed)
            # Started apart, and never mixed.
            mixes = len(cls.attempts) in np.atleast_1d(cls.passes_at or 0)
            apart = 0.5 * np.arange(chains) * (not mixes)
            found = {}
            for name, shape in shapes.items():
                noise = 0.1 * rng.standard_normal((chains, draws, *shape))
                found[name] = noise + apart.reshape(-1, 1, *[1] * len(shape))
            return found, {
                "diverging": (np.arange(chains * draws) < cls.diverging * chains * draws)
                .astype(float)
                .reshape(chains, draws),
                "n_steps": np.full((chains, draws), 7.0),
            }

    Sampler.attempts, Sampler.densities, Sampler.starts = [], [], []
    monkeypatch.setattr(_compat, "sample_density", Sampler.sample)
    return Sampler
