"""The callback in a real ``GRPOTrainer``. Needs the extra."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from simulated_runs import Plan, made_up_posterior

trl = pytest.importorskip("trl")

from advisor.monitoring.trl_callback import AdvisorCallback, scalars  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # TRL's own warnings are not ours to mend

STEPS = 12
PLAN = Plan(1e-3, 4, 2, prompts=2.0, steps=STEPS)


@pytest.fixture(scope="module")
def posterior():
    return made_up_posterior([PLAN], draws=200)


@pytest.fixture
def make(tiny_trainer, tmp_path):
    """A trainer of a random model whose reward is what a test says, by step."""

    def build(reward, callbacks=(), interval=2, steps=STEPS):
        def rewarded(completions, trainer_state, **_):
            level = reward(trainer_state.global_step)
            return [float(place % 8 < 8 * level) for place in range(len(completions))]

        return tiny_trainer(
            rewarded,
            trl.GRPOConfig(
                output_dir=str(tmp_path),
                use_cpu=True,
                bf16=False,
                report_to="none",
                learning_rate=1e-3,
                lr_scheduler_type="constant",
                per_device_train_batch_size=8,
                num_generations=4,
                steps_per_generation=interval,
                max_completion_length=4,
                max_steps=steps,
                logging_steps=1,
                save_strategy="no",
                disable_tqdm=True,
            ),
            callbacks=list(callbacks),
        )

    return build


def rising(step):
    return 0.25 + 0.5 * min(step, 6) / 6


def test_its_numbers_stand_in_the_trainers_own_log(make, posterior):
    callback = AdvisorCallback(posterior, task="sort", model="tiny-s", target_reward=0.7)
    trainer = make(rising, [callback])
    started = time.perf_counter()
    trainer.train()
    took = time.perf_counter() - started
    rows = [row for row in trainer.state.log_history if "reward" in row]
    # TRL logs rewards where it samples, once per refresh.
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1, 2))
    assert "advisor/final_reward" not in rows[1]
    for row in rows[2:]:
        assert 0 <= row["advisor/final_reward_low"] <= row["advisor/final_reward_high"] <= 1
        assert 0 <= row["advisor/p_unstable"] <= 1
        assert 0 <= row["advisor/p_reach"] <= 1
    assert 0 < sum(row["advisor/seconds"] for row in rows[2:]) < took
    update = callback.last.update
    assert update.step == STEPS - 1
    # Settings come from the trainer's own arguments, none from the user.
    assert update.settings.learning_rate == 1e-3
    assert update.settings.group_size == 4
    assert update.settings.prompts_per_step == 2
    assert update.settings.minibatches_per_refresh == 2
    assert update.planned_steps == STEPS
    assert rows[-1]["advisor/final_reward"] == scalars(callback.last)["advisor/final_reward"]


def test_attached_it_comes_before_those_that_report(make, posterior):
    from transformers import TrainerCallback

    class Tracker(TrainerCallback):
        def __init__(self):
            self.rows = []

        def on_log(self, args, state, control, logs=None, **kwargs):
            self.rows.append(dict(logs))

    tracker = Tracker()
    trainer = make(rising, [tracker])
    AdvisorCallback.attach(trainer, posterior, task="sort", model="tiny-s", every=3)
    trainer.train()
    told = [row for row in tracker.rows if "advisor/final_reward" in row]
    assert [row["reward"] for row in told] == [0.625, 0.75]
    assert len(tracker.rows) > STEPS


def falling(step):
    return 0.75 if step < 3 else 0.0


@pytest.mark.parametrize("stop", [True, False])
def test_it_stops_a_run_only_where_it_may(make, posterior, stop):
    callback = AdvisorCallback(posterior, task="sort", model="tiny-s", stop=stop)
    trainer = make(falling, [callback], interval=1, steps=15)
    with pytest.warns(UserWarning, match="advisor, step"):
        trainer.train()
    assert callback.last.decision.action == "stop"
    assert callback.last.decision.rule == "fallen"
    assert (trainer.state.global_step < 15) == stop


def test_a_healthy_run_is_not_stopped(make, posterior):
    callback = AdvisorCallback(posterior, task="sort", model="tiny-s", stop=True)
    trainer = make(rising, [callback])
    trainer.train()
    assert trainer.state.global_step == STEPS


def test_a_posterior_of_another_task_is_said_once_and_survived(make, posterior):
    callback = AdvisorCallback(posterior, task="chess")
    trainer = make(rising, [callback])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        trainer.train()
    assert sum("no forecast" in str(warning.message) for warning in said) == 1
    assert trainer.state.global_step == STEPS
    assert np.all(["advisor/final_reward" not in row for row in trainer.state.log_history])
