"""TRL itself: exports become a real ``GRPOConfig``, and one of them is trained. Needs the extra."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from launched import changed

from advisor.runs import Trainer
from advisor.theory import schedule_factors

pytestmark = pytest.mark.filterwarnings("default")  # TRL's own warnings are not ours to mend

LATTICE = [
    (prompts, group, minibatches, epochs, devices)
    for prompts, group in ((1, 8), (2, 8), (6, 4), (7, 16))
    for minibatches in (1, 3, 8)
    for epochs in (1, 2)
    for devices in (1, 2, 8)
    if prompts * group % devices == 0
]


@pytest.fixture(scope="module")
def trl():
    return pytest.importorskip("trl")


@pytest.fixture
def build(trl, monkeypatch, tmp_path):
    """A `GRPOConfig` from an export, as each of some processes would see it."""

    def construct(settings, steps, devices=1):
        arguments = yaml.safe_load(Trainer.export_config(settings, steps, "trl", devices=devices))
        monkeypatch.setattr(trl.GRPOConfig, "world_size", property(lambda _: devices))
        where = {"output_dir": str(tmp_path), "use_cpu": True, "bf16": False, "report_to": "none"}
        return trl.GRPOConfig(**arguments, **where)

    return construct


@pytest.mark.parametrize(("prompts", "group", "minibatches", "epochs", "devices"), LATTICE)
def test_batches_and_refresh_interval(build, prompts, group, minibatches, epochs, devices):
    settings = changed(
        prompts_per_step=prompts,
        group_size=group,
        minibatches_per_refresh=minibatches,
        epochs_per_refresh=epochs,
    )
    config = build(settings, 50, devices)
    step = config.per_device_train_batch_size * config.gradient_accumulation_steps * devices
    assert step == prompts * group
    # TRL works this one out: completions of one batch of rollouts over all devices.
    assert config.generation_batch_size == prompts * group * minibatches
    assert config.num_generations == group
    passes = config.num_iterations * config.steps_per_generation
    assert passes == epochs * minibatches * config.gradient_accumulation_steps
    assert config.learning_rate == settings.learning_rate
    assert config.max_steps == 50


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
@pytest.mark.parametrize("warmup", [0, 1, 7])
def test_the_learning_rate_follows_the_schedule_of_the_theory(build, schedule, warmup):
    import torch
    from transformers import get_scheduler

    config = build(changed(schedule=schedule, warmup_steps=warmup), 40)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=config.learning_rate)
    scheduler = get_scheduler(
        config.lr_scheduler_type,
        optimizer,
        num_warmup_steps=config.get_warmup_steps(config.max_steps),
        num_training_steps=config.max_steps,
    )
    rates = []
    for _ in range(config.max_steps):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    expected = schedule_factors(schedule, 40, warmup_steps=warmup) * config.learning_rate
    np.testing.assert_allclose(rates, expected, rtol=1e-12, atol=1e-20)


@pytest.mark.parametrize(
    ("optimizer", "name", "key"),
    [("adamw", "AdamW", "betas"), ("adam", "AdamW", "betas"), ("sgd", "SGD", "momentum")],
)
def test_the_optimizer_has_its_momentum(build, optimizer, name, key):
    from transformers import Trainer

    config = build(changed(optimizer=optimizer, momentum=0.85), 40)
    kind, arguments = Trainer.get_optimizer_cls_and_kwargs(config)
    assert kind.__name__ == name
    assert np.atleast_1d(arguments[key])[0] == 0.85
    assert optimizer != "adam" or config.weight_decay == 0


def test_loss_settings(build):
    config = build(
        changed(kl_coefficient=1e-3, clip_low=0.2, clip_high=0.28, advantage_scaling="batch"), 40
    )
    assert (config.beta, config.epsilon, config.epsilon_high) == (1e-3, 0.2, 0.28)
    assert config.scale_rewards == "batch"


@pytest.mark.parametrize(("minibatches", "epochs"), [(1, 1), (2, 2), (3, 1), (1, 3)])
def test_a_run_starts_and_refreshes_every_k_steps(build, tiny_trainer, minibatches, epochs):
    interval = minibatches * epochs
    settings = changed(
        prompts_per_step=2,
        group_size=4,
        minibatches_per_refresh=minibatches,
        epochs_per_refresh=epochs,
        max_completion_length=4,
        schedule="linear",
    )
    config = build(settings, 3 * interval)
    seen = []

    def reward(completions, trainer_state, **_):
        seen.append((trainer_state.global_step, len(completions)))
        return [float(place % 3) for place in range(len(completions))]

    trainer = tiny_trainer(reward, config)
    trainer.train()
    assert [step for step, _ in seen] == [0, interval, 2 * interval]
    assert {count for _, count in seen} == {2 * 4 * minibatches}
    logged = [row for row in trainer.state.log_history if "learning_rate" in row]
    assert [row["step"] for row in logged] == list(range(1, 3 * interval + 1))
    # What is logged after a step is the rate of that step.
    expected = schedule_factors("linear", 3 * interval) * config.learning_rate
    np.testing.assert_allclose([row["learning_rate"] for row in logged], expected, rtol=1e-12)
