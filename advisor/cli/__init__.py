"""The command line: all commands, one file per group; errors as sentences, exit codes."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from advisor.cli import advise, compare, flags, logs, mcp, pilots, priors, study
from advisor.cli.flags import echo
from advisor.common import VERSION, harmless
from advisor.errors import AdvisorError

STOPPED = 130  # Exit code where Ctrl-C stopped a command

app = typer.Typer(
    name="advisor",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Advice on group size, learning rate and refresh interval of a GRPO run, from short pilot "
        "logs, before the full run is launched."
    ),
    epilog="[bold]Example[/]: advisor demo, then advisor advise runs/ --steps 500 --out study\n\n"
    "Exit codes: 0 done, 1 our fault, 2 bad input or usage, 3 infeasible or not enough pilots, "
    "4 not converged, 5 something is wrong with a run (diagnose, watch). 130 stopped by Ctrl-C, "
    "143 stopped by SIGTERM.",
)

PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Start": (advise.demo,),
    "Logs": (logs.inspect, logs.diagnose, compare.backtest),
    "Pilots": (pilots.plan, pilots.pilots, study.next_pilot),
    "Answer": (advise.advise, advise.fit),
    "After the answer: of a study": (
        advise.show,
        study.export,
        study.what_if,
        study.report,
        study.plot,
        compare.compare,
    ),
    "The full run": (logs.watch,),
    "For agents": (mcp.mcp,),
}
"""Commands by what is at hand."""

priors_app = typer.Typer(
    name="priors",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Look at the priors before any log.",
)


for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(flags.command(command))
priors_app.command()(flags.command(priors.show))
app.add_typer(priors_app, rich_help_panel="Priors")


def _print_version(is_asked: bool) -> None:
    """Print the version and stop, where the flag was given."""
    if is_asked:
        echo(f"advisor {VERSION}")
        raise typer.Exit


@app.callback()
def shared(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; after any command.")
    ] = False,
) -> None:
    """Take the flags that come before any command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; a traceback only with ``--debug``."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    argv = [word for word in given if word != "--debug"] or ["--help"]
    # What it says of its fonts and folders is no note for a user.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        with _stopped_in_order() as signals:
            code = _called(argv)
        if code == STOPPED:
            _complain(
                "Stopped: what was being written is as it was before.", 128 + max([2, *signals])
            )
        sys.exit(code)
    except AdvisorError as error:
        if "--debug" in given:
            raise
        _complain(f"Error: {with_flags(str(error), _parameters(argv))}", error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe went away: nothing to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if "--debug" in given:
            raise
        _complain(
            f"Internal error ({type(error).__name__}: {error}). This is our fault: please report "
            "it with the output of the same command and --debug.",
            1,
        )


def _called(argv: Sequence[str]) -> int:
    """Exit code of a call; usage that is wrong is shown without what would steer a terminal."""
    command = typer.main.get_command(app)
    try:
        code = command(args=argv, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.Abort as error:
        # Typer takes an end of file, wherever it is met, for the user's.
        raise (error.__cause__ or error) from None
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        from typer.rich_utils import rich_format_error

        message = harmless(str(error.message)).replace("Value error, ", "")  # type: ignore[attr-defined]
        # Typer suggests what is spelt much the same, and for `next` no `next-pilot`.
        typed = next((word for word in argv if not word.startswith("-")), "")
        known = command.commands  # type: ignore[attr-defined]
        if typed and typed not in known and (meant := flags.meant(typed, known)):
            message = harmless(f"No such command '{typed}'. Did you mean '{meant}'?")
        error.message = message  # type: ignore[attr-defined]
        rich_format_error(error)  # type: ignore[arg-type]
        return int(error.exit_code)  # type: ignore[attr-defined]


@contextmanager
def _stopped_in_order() -> Iterator[list[int]]:
    """Take a request to end as Ctrl-C is taken: drafts are removed; yields which signals came."""
    came: list[int] = []

    def stop(number: int, frame: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def again(unraisable: sys.UnraisableHookArgs) -> None:
        """A signal that came within a destructor stops nothing: it is sent once more."""
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            if not came:  # what was stopped while it was made may fail to be unmade
                hook(unraisable)
            return
        number = came[-1] if came else signal.SIGINT
        # Later than this hook ends on any machine: raised in it, a signal prints a traceback.
        once_more = threading.Timer(0.5, os.kill, (os.getpid(), number))
        once_more.daemon = True
        once_more.start()

    before, hook = signal.getsignal(signal.SIGTERM), sys.unraisablehook
    signal.signal(signal.SIGTERM, stop)
    sys.unraisablehook = again
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)
        sys.unraisablehook = hook


def _parameters(argv: Sequence[str]) -> set[str]:
    """Flags and positional arguments of the command that was called."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found: set[str] = set()
    for word in argv:
        command = commands.get(word)
        if command is None:
            break
        commands = getattr(command, "commands", {})
        found = {name for one in command.params for name in one.opts}
    return found


def _complain(text: str, code: int) -> None:
    """Print to standard error and exit."""
    echo(text, err=True)
    sys.exit(code)


# Flags in place of arguments ---------------------------------------------------------------------


def argument_to_flag(argument: str, parameters: Collection[str] = ()) -> str:
    """Flag, or ``--set task=...``, that gives an argument to a command of these parameters."""
    if argument in parameters:
        return argument.upper()
    flag = f"--{argument.replace('_', '-')}"
    if flag not in parameters:
        flag = flags.words()["renamed"].get(argument, flag)
    if parameters and flag not in parameters and "--set" in parameters:
        return f"--set {argument}=..."
    return flag


def with_flags(text: str, parameters: Collection[str] = ()) -> str:
    """Text of a library's error with flags in place of the arguments that it names in backticks."""
    text = text.replace(", `path`", "")  # the file itself is named before it
    named = re.sub("`([a-z_]+)`", lambda found: argument_to_flag(found[1], parameters), text)
    return re.sub("key '(--[^']*)'", r"\1", re.sub("`(--[a-z-]+)`", r"\1", named))
