"""From pilot logs to a config for the trainer, step by step in Python.

Runs as a script, and cell by cell wherever `# %%` marks a cell (VS Code, PyCharm, Spyder; Jupyter
by way of jupytext). In a notebook the last line of a cell may be just `runs[0]`, `verdicts[0]`,
`posterior` or `advice`: each shows itself as a table.
"""

# %% [markdown]
# # Which settings should the full run use?
#
# Point `LOGS` at your own pilots. `--quick` takes seven pilots and fewer trials.

# %%
import sys
from pathlib import Path

import advisor
from advisor.diagnosis import diagnose

LOGS = advisor.demo_folder()  # twelve real pilots of tiny transformers, 60 steps each
OUT = Path("walk-through")
STEPS = 180  # optimizer steps of the full run
LEVEL = 0.9  # P(stable) that the advice must reach
IS_QUICK = "--quick" in sys.argv


told = []


def tell(stage, share, detail):
    """Print each stage once; ``share`` of it is done, ``detail`` says more."""
    if stage not in told[-1:]:
        told.append(stage)
        print(f"  ... {stage}")


# %% [markdown]
# ## Read
#
# Settings that a log does not hold stand in `pilots.toml` beside it. `derivations` says where each
# setting came from, `assumptions` what was assumed.

# %%
runs = advisor.read_runs(LOGS)[: 7 if IS_QUICK else None]
for run in runs:
    settings = run.hyperparameters
    print(
        f"{run.id:20} {run.model}  lr {settings.learning_rate:g}, G {settings.group_size}, "
        f"K {settings.refresh_interval}: reward {run.reward[:5].mean():.2f} -> "
        f"{run.reward[-5:].mean():.2f}"
    )

# %% [markdown]
# ## Diagnose
#
# Before anything is fitted: is one of them sick? A collapsed pilot is not thrown away. It teaches
# the collapse rate, and its curve up to the fall teaches the speed.

# %%
verdicts = [diagnose(run) for run in runs]
for verdict in verdicts:
    if verdict.verdict == "FAIL":
        worst = verdict.cards[0]
        print(f"{verdict.id}: {worst.title}. {worst.headline} {worst.change}")

# %% [markdown]
# ## Fit
#
# One hierarchical model of all pilots. A fit that does not converge raises an error instead of
# returning numbers.

# %%
posterior = advisor.fit(runs, sampling=advisor.Sampling(seed=1), progress=tell)
posterior.save("posterior.nc")

# %% [markdown]
# ## Look
#
# Plateau and stiffness at the pilots' mean configuration, and by which exponents the stiffness
# follows the settings. The text says what the pilots tell and what they leave open.

# %%
print(posterior.table.round(3).to_string())
print(advisor.describe(posterior))

# %% [markdown]
# ## Recommend
#
# The configuration with the highest reward after `STEPS` steps among those that stay stable with
# probability `LEVEL`; or the next pilot, where these pilots cannot tell.

# %%
advice = advisor.recommend(
    posterior, steps=STEPS, level=LEVEL, trials=100 if IS_QUICK else 300, seed=1, progress=tell
)
print(advice.text)
print(advice.table.to_string())

# %% [markdown]
# ## What if?
#
# Other settings under the same posterior, and under the same luck (`seed`) as the answer, so that
# the first row repeats its numbers. What is not named stays as in the target's first pilot.

# %%
own = advice.settings
others = advisor.what_if(
    advisor.Forecaster(posterior, advice.target, seed=advice.seed),
    learning_rate=[own.learning_rate, 2 * own.learning_rate, 10 * own.learning_rate],
    group_size=own.group_size,
    minibatches_per_refresh=own.minibatches_per_refresh,
    epochs_per_refresh=own.epochs_per_refresh,
    steps=STEPS,
)
print(others[["learning_rate", "reward", "reward_low", "reward_high", "p_stable"]].round(4))

# %% [markdown]
# ## Export
#
# A config for the trainer, and a study: posterior, answer, figures and report in one folder, which
# `advisor what-if`, `advisor next-pilot` and `advisor compare` can be asked about later.

# %%
config = advisor.export_config(own, advice.steps, "trl", model=advice.target.model)
Path("grpo.yaml").write_text(config, encoding="utf-8")
files = advisor.write_study(OUT, posterior, advice, tell)
print(f"{len(files)} files in {OUT}/, a config in grpo.yaml; open {OUT}/report.html")
