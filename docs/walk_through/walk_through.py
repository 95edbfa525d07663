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

LOGS = advisor.demo_folder()  # twelve real pilots of tiny transformers, 60 steps each
OUT = Path("walk-through")
STEPS = 180  # optimizer steps of the full run
LEVEL = 0.9  # P(stable) that the advice must reach
IS_QUICK = "--quick" in sys.argv


# %% [markdown]
# ## Read
#
# Settings that a log does not contain are in `pilots.toml` next to it. `derivations` shows where
# each setting comes from, `assumptions` what was assumed.

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
# Is one of the pilots broken? A collapsed pilot is not thrown away. The model learns the collapse
# rate from it, and the speed from its curve up to the fall.

# %%
verdicts = [advisor.diagnose(run) for run in runs]
for verdict in verdicts:
    if verdict.verdict == "FAIL":
        worst = verdict.cards[0]
        print(f"{verdict.id}: {worst.title}. {worst.headline} {worst.change}")

# %% [markdown]
# ## Fit
#
# One hierarchical model of all pilots. A fit that does not converge raises an error instead of
# returning numbers. `progress=True` prints each stage.

# %%
posterior = advisor.fit(runs, progress=True)
posterior.save("posterior.nc")

# %% [markdown]
# ## Look
#
# Plateau and stiffness at the pilots' mean configuration, and the exponents by which the stiffness
# follows the settings. The text states what the pilots show and what they leave open.

# %%
print(posterior.table.round(3).to_string())
print(advisor.describe(posterior))

# %% [markdown]
# ## Advise
#
# The configuration with the highest reward after `STEPS` steps among those that stay stable with
# probability `LEVEL`. Where these pilots are not enough, the next pilot.

# %%
advice = advisor.advise(
    posterior, steps=STEPS, level=LEVEL, trials=100 if IS_QUICK else 300, progress=True
)
print(advice.text)
print(advice.table.to_string())

# %% [markdown]
# ## What if?
#
# A study has the posterior and the answer. Other settings use the same posterior, price and seed
# noise as the answer, so the first row repeats its numbers. What is not named stays as
# advised.

# %%
study = advisor.Study(posterior, advice, tuple(verdicts))
rate = advice.settings.learning_rate
others = study.what_if(learning_rate=[rate, 2 * rate, 10 * rate])
columns = ["reward", "reward_low", "reward_high", "p_stable"]
print(others.set_index("learning_rate")[columns].round(4))

# %% [markdown]
# ## Export
#
# A config for the trainer, and the study as a folder: posterior, answer, figures and report.
# `advisor.Study.load`, `advisor what-if` and `advisor compare` read it later.

# %%
Path("grpo.yaml").write_text(study.export("trl"), encoding="utf-8")
study = study.save(OUT, progress=True)
print(f"{len(study.files)} files in {OUT}/, a config in grpo.yaml; open {OUT}/report.html")
