"""``advisor plan``: before any pilot, which few to run, as scripts ready to launch."""

from __future__ import annotations

from advisor.cli import flags
from advisor.cli.echo import echo


def plan(
    model: flags.PlannedModel,
    steps: flags.RunSteps,
    settings: flags.Settings = None,
    parameters: flags.Parameters = None,
    pilot_model: flags.PilotModel = None,
    pilot_parameters: flags.PilotParameters = None,
    start_reward: flags.StartReward = None,
    share: flags.PilotShare = 0.2,
    to: flags.PilotTrainer = None,
    devices: flags.Devices = 1,
    priors: flags.Preset = None,
    out: flags.PlanOut = None,
    seed: flags.Seed = 0,
    quiet: flags.Quiet = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Plan a few short pilots before a full run, or say that none is worth its price.

    Give the settings of the run as you would launch it now; the pilots vary its learning rate.

    [bold]Example[/]: advisor plan --model Qwen/Qwen2.5-7B --steps 500 --to verl --out pilots
    --set learning_rate=1e-6 --set group_size=8 --set prompts_per_step=128
    """
    from advisor.advice import PLAN, planned_settings, size_of
    from advisor.advice import plan as plan_pilots
    from advisor.cli.terminal import write_new
    from advisor.errors import InputError
    from advisor.forecast import Target
    from advisor.runs import export_config, exports

    if out is not None and to is None:
        raise InputError(
            "nothing says for which trainer the scripts are", argument="to", advice="Give --to trl"
        )
    if (pilot_model is None) != (pilot_parameters is None) and pilot_parameters is not None:
        raise InputError(
            "the pilots' model has a size and no name", argument="pilot_model", advice="Name it"
        )
    stated, assumed = planned_settings(flags.pairs(settings, "--set"))
    small = None
    if pilot_model is not None:
        small = (pilot_model, size_of(pilot_model, pilot_parameters, "pilot_parameters"))
    found = plan_pilots(
        stated,
        steps,
        Target("task", model, size_of(model, parameters, "parameters"), start_reward),
        pilot_model=small,
        share=share,
        priors=priors,
        seed=seed,
    ).model_copy(update={"trainer": to, "devices": devices})
    scripts = {}
    if to is not None:
        runs = [(one.name, one.settings, one.steps, one.model) for one in found.pilots]
        if found.kind == "run":
            runs = [("run", found.settings, found.steps, found.model)]
        for name, own, length, trained in runs:
            note = f"{name}: {length} steps, planned by advisor plan before {steps} of {model}."
            text = export_config(own, length, to, devices=devices, model=trained, note=note)
            scripts[f"{name}/{exports()[to].file_name}"] = text
    if out is not None:
        for name, text in {**scripts, PLAN: found.model_dump_json(indent=2) + "\n"}.items():
            write_new(out / name, text.encode(), with_folder=True)
    if as_json:
        echo(found.model_dump_json(indent=2))
        return
    echo(found.text)
    if quiet:
        return
    if assumed:
        echo("\nAssumed:\n" + "\n".join(f"  {line}" for line in assumed))
    if out is not None:
        logs = "Let every pilot log into its own folder there, and meanwhile"
        if found.kind == "run":
            logs = "Should you run pilots all the same"
        echo(f"\nScripts in {out}: {', '.join(scripts)}. {logs}: advisor pilots {out}")
