"""``advisor export``: the advised settings as a trainer's configuration."""

from __future__ import annotations

from advisor.cli import flags
from advisor.cli.echo import echo


def export(
    study: flags.StudyFolder,
    to: flags.Trainer = None,
    devices: flags.DevicesAsAdvised = None,
    out: flags.ConfigOut = None,
    quiet: flags.Quiet = False,
    debug: flags.Debug = False,
) -> None:
    """Write the advised settings as a trainer's configuration.

    [bold]Example[/]: advisor export study --to trl --devices 8 --out grpo.yaml
    """
    from advisor.cli.terminal import load, write_new

    text = load(study, quiet=quiet).export(to, devices)
    if out is None:
        echo(text, nl=False)
        return
    write_new(out, text.encode())
    if not quiet:
        echo(f"Wrote {out}", err=True)
