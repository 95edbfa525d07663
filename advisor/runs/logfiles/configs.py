"""Settings from files next to a log and above it, nearest first: configs, and launch commands.

Commands that launch a training stand in scripts, or are printed in a log. Of the shell, variables
that a line sets once are followed; any other is unknown, and so is every setting in which it is.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from advisor.errors import InputError
from advisor.runs.logfiles.config_files import (
    NAMES,
    PATTERNS,
    UNKNOWN,
    ConfigSource,
    Scalar,
    flatten,
    parse_command_line,
    parse_config,
)
from advisor.runs.logfiles.limits import limits
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.parsing import SUFFIXES
from advisor.runs.logfiles.records import stored_config

ENDINGS = NAMES["endings"]
IN_A_FOLDER = (
    *NAMES["overrides"],
    *(word + ending for word in NAMES["words"] for ending in ENDINGS),
    *NAMES["of_trainers"],
)
PLACES = (*NAMES["hydra"], *IN_A_FOLDER, *NAMES["wandb"])
OF_ONE_LOG = {f"{joint}{name}": name for name in IN_A_FOLDER for joint in "._"}
BARE = {ending: f"config{ending}" for ending in (*ENDINGS, ".toml")}
"""What follows the name of a log that a file describes -> the kind of that file."""


def settings_beside(
    log: LogFile,
    top: Path,
    shared_by: Callable[[Path], int],
    names_in: Callable[[LogFile, Path], frozenset[str]] = LogFile.names_in,
) -> list[ConfigSource]:
    """Settings from files in a log's own folder and above it; each folder may be listed once."""
    own, names = log.path.parent, set[str]()
    near = names_in(log, own)
    sources = [*_of_this_log(log, near), *_of_its_prefix(log, near), *_of_its_store(log)]
    for folder in (own, *(above for above in own.parents if above.is_relative_to(top))):
        taken = {source.path for source in sources}
        listed = names_in(log, folder)
        named: list[str] = []
        if folder == own:
            named = _named_configs((name for name in listed if "__" not in name), log.path.name)
        there = _files(log, folder, (*PLACES, *named), listed)
        files = [f for f in there.values() if f.path not in taken and f.path.name not in names]
        runs = shared_by(folder) if files else 0
        sources += [_source(f, PATTERNS["infix"].sub("", f.path.name), runs) for f in files]
        names |= {file.path.name for file in files}
    launched = launch_settings(log, top, shared_by, names_in)
    # Of a config that a command names, the command changes some settings.
    changed = {Path(str(source.settings.get("config"))).name for source in launched}
    is_over = any(source.path.name in changed for source in sources)
    sources = [*launched, *sources] if is_over else [*sources, *launched]
    return [source for source in sources if source.settings or source.note]


def _files(
    log: LogFile, folder: Path, names: Iterable[str], listed: frozenset[str]
) -> dict[str, LogFile]:
    """Which of some names are files of a folder other than the log; in the order given."""
    near = [name for name in names if name.partition("/")[0] in listed]
    files = {name: log.at(folder / name) for name in near if folder / name != log.path}
    return {name: file for name, file in files.items() if file is not None}


def _of_this_log(log: LogFile, listed: frozenset[str]) -> list[ConfigSource]:
    """Files that differ from the log's name in their ending only."""
    sources = []
    folder = log.path.parent
    for stem in _stems(log.path.name.removesuffix(".gz")):
        kinds = {stem + ending: kind for ending, kind in (*OF_ONE_LOG.items(), *BARE.items())}
        kinds = {name: kind for name, kind in kinds.items() if name not in IN_A_FOLDER}
        for name, owner in _configs_among(listed).items():
            if owner == stem:
                kinds.setdefault(name, name.removeprefix(stem)[1:])
        for name, file in _files(log, folder, kinds, listed).items():
            source = _source(file, kinds[name])
            # A file of the very same name may as well be another log of the run.
            is_bare = name.removeprefix(stem) in BARE
            if not is_bare or (source.settings and not _holds_metrics(source.settings)):
                sources.append(source)
    return sources


def _stems(name: str) -> list[str]:
    stems = [Path(name).stem]
    while Path(stems[-1]).suffix in NAMES["words_of_logs"]:
        stems.append(Path(stems[-1]).stem)
    return stems


def _holds_metrics(settings: Mapping[str, Scalar]) -> bool:
    return any(key.rpartition(".")[2] in NAMES["metrics"] for key in settings)


def _of_its_prefix(log: LogFile, listed: frozenset[str]) -> list[ConfigSource]:
    """Files with the log's prefix, where ``__`` in names stands for folders."""
    prefix, joint, _ = log.path.name.rpartition("__")
    if not joint:
        return []
    start, folder = prefix + joint, log.path.parent
    kinds = {start + place.replace("/", "__"): Path(place).name for place in PLACES}
    rests = [name.removeprefix(start) for name in listed if name.startswith(start)]
    own = [rest for rest in rests if "__" not in rest]
    for rest in _named_configs(own, log.name):
        kinds.setdefault(start + rest, PATTERNS["infix"].sub("", rest))
    ending = Path(log.name).suffix
    runs = sum(rest.removesuffix(".gz").endswith(ending) for rest in own)
    # A checkpoint has a dozen files that end in .json, of which one is a log.
    runs = 1 if ending == ".json" else runs
    files = _files(log, folder, kinds, listed)
    return [_source(file, kinds[name], runs) for name, file in files.items()]


def _named_configs(names: Iterable[str], log: str) -> list[str]:
    """Names of configs that are not known ones, by their words; none where they are many."""
    found = _configs_among(frozenset(names))
    others = [name for name, owner in found.items() if not owner and name != log]
    # Configs by the words of their names that may together describe one run
    return others if len(others) <= 2 else []


@lru_cache(maxsize=64)
def _configs_among(names: frozenset[str]) -> dict[str, str]:
    """Configs by the words of their names -> the name of the one log that they begin with."""
    found = [name for name in sorted(names) if PATTERNS["named_config"].fullmatch(name)]
    logs = {stem for name in names.difference(found) for stem in _stems(name)}
    owners = {}
    for name in found:
        plain = PATTERNS["infix"].sub("", name).rpartition(".")[0]
        if name not in IN_A_FOLDER and not PATTERNS["of_other_things"].fullmatch(plain):
            starts = [name[:at] for at in range(1, len(name)) if name[at] in "._-"]
            owners[name] = next((start for start in reversed(starts) if start in logs), "")
    return owners


def _of_its_store(log: LogFile) -> list[ConfigSource]:
    """Settings in W&B's own file of the run whose console this is (``files/output.log``)."""
    folder = log.path.parent.parent
    if log.path.parent.name != "files" or log.name != "output.log":
        return []
    names = sorted(filter(PATTERNS["store"].fullmatch, log.names_in(folder)))
    stores = (log.at(folder / name) for name in names)
    return [ConfigSource(file.path, flatten(stored_config(file))) for file in stores if file]


def _source(file: LogFile, kind: str, runs: int = 1) -> ConfigSource:
    """Settings of a config, if it describes no more than one run."""
    name = file.path.name
    if runs > 1:
        what = f"put a copy next to each that it describes: LOG.{name} next to LOG.csv"
        line = f"{name} is read for none of {runs} logs; {what}"
        return ConfigSource(file.path, note=line, is_of_several=True)
    try:
        source = parse_config(file, kind)
    except InputError as error:
        return ConfigSource(file.path, note=f"{name} was left out: {error.problem}")
    settings = source.settings
    parts = {key: key.partition(".") for key in settings}
    inside = {
        inner: settings[key]
        for key, (section, dot, inner) in parts.items()
        if dot and section in NAMES["sections"]
    }
    if inside and ("summary" in kind or _holds_metrics(settings)):
        return replace(source, settings=inside)
    if "summary" in kind and kind not in IN_A_FOLDER and _holds_metrics(settings):
        return replace(source, settings={})
    return source


# Commands that launch a training ------------------------------------------------------------------

LAUNCH = NAMES["launch"]

ENDS = {"&&", "||", "|", "&"}


@dataclass(frozen=True)
class LaunchCommand:
    """A command that launches a training: where it stands, what it sets, how it calls the run."""

    line: int
    settings: dict[str, Scalar]
    names: frozenset[str]


def launch_settings(
    log: LogFile,
    top: Path,
    shared_by: Callable[[Path], int],
    names_in: Callable[[LogFile, Path], frozenset[str]],
) -> list[ConfigSource]:
    """Settings of the one command that launched a run: printed in its log, or in a script near."""
    found = [ConfigSource(log.path, one.settings, line=one.line) for one in printed_launches(log)]
    found = found if len(found) == 1 else []
    names = (log.name.partition(".")[0], Path(log.name).stem, log.path.parent.name)
    called = set(map(_plain, names)) - {"", *LAUNCH["of_no_run"]}
    above = [folder for folder in log.path.parents[1:3] if folder.is_relative_to(top)]
    for folder in (log.path.parent, *above):
        scripts = _scripts_among(names_in(log, folder))
        files = filter(None, (log.at(folder / name) for name in scripts))
        launches = [(f, one) for f in files if f.path != log.path for one in launches_of(f)]
        stems = {f.path: _plain(Path(f.name).stem) for f, _ in launches}
        named = [(f, one) for f, one in launches if called & {*one.names, stems[f.path]}]
        runs = shared_by(folder) if launches and not named else 0
        chosen = named or (launches if runs <= 1 else [])
        if len({repr(one.settings) for _, one in chosen}) == 1:
            file, one = chosen[0]
            return [*found, ConfigSource(file.path, one.settings, line=one.line)]
        if launches:
            file = launches[0][0]
            what = f"{file.path.name} is read for none of {max(runs, 1)} logs"
            advice = "give its experiment_name or output_dir the name of the log or of its folder"
            return [*found, ConfigSource(file.path, note=f"{what}; {advice}")]
    return found


@lru_cache(maxsize=64)
def _scripts_among(names: frozenset[str]) -> list[str]:
    """Names of scripts, in order: once for all logs of a folder."""
    script = re.compile("|".join(map(translate, LAUNCH["scripts"])))
    return sorted(filter(script.fullmatch, names))


def launches_of(script: LogFile) -> tuple[LaunchCommand, ...]:
    """Launch commands of a script; none of a file that is none."""
    head = script.readable_head()
    if len(head) >= limits.head_bytes or b"\0" in head:
        return ()
    return _launches(head.decode("utf-8", "replace").replace("\r\n", "\n"))


def printed_launches(log: LogFile) -> tuple[LaunchCommand, ...]:
    """Launch commands that a console prints (``+ python3 -m ...``, ``CMD: ...``), each once."""
    if log.suffix not in SUFFIXES and not log.suffix[1:2].isdigit():
        return ()
    text = log.readable_head().decode("utf-8", "replace")
    lines, found = iter(enumerate(text.split("\n"), start=1)), dict[str, LaunchCommand]()
    for number, line in lines:
        sign = PATTERNS["printed"].search(line.rstrip()) if len(line) < limits.head_bytes else None
        if sign is None:
            continue
        command = sign.group(1)
        while command.endswith("\\"):
            command = command[:-1] + next(lines, (0, ""))[1].strip()
        for one in _launches(command):
            found.setdefault(repr(one.settings), LaunchCommand(number, one.settings, one.names))
    return tuple(found.values())


@lru_cache(maxsize=256)
def _launches(text: str) -> tuple[LaunchCommand, ...]:
    """Launch commands of a script, a line each; continued lines are joined."""
    # As the package's own scripts hold their settings.
    for array in PATTERNS["array"].finditer(text):
        inner = " ".join(PATTERNS["comment"].sub("", line) for line in array[2].splitlines())
        text = text.replace(array[0], "\n" * array[0].count("\n"))
        text = text.replace(f'"${{{array[1]}[@]}}"', inner)
    variables: dict[str, str] = {}
    found, number = list[LaunchCommand](), 1
    for line in text.replace("\\\n", "\f").split("\n"):
        first, number = number, number + 1 + line.count("\f")
        line = PATTERNS["comment"].sub("", PATTERNS["output"].sub(UNKNOWN, line.replace("\f", " ")))
        written = [_expanded(a or b, variables) for a, b in PATTERNS["written"].findall(line)]
        words = _words(PATTERNS["written"].sub("", line))
        pairs, is_command = [], False
        for word in words:
            is_command = word != ";" and (is_command or not PATTERNS["assigned"].fullmatch(word))
            is_command = is_command and word != "export"
            pairs += [word.partition("=")[::2]] if not is_command and "=" in word else []
        # Under a condition or in a loop the shell alone knows what is set.
        is_sure = bool(line[:1].strip()) and ENDS.isdisjoint(words[:-1])
        for name in filter(None, itertools.chain(*PATTERNS["set"].findall(line))):
            values = [_expanded(value, variables) for own, value in pairs if own == name]
            value = values[0] if is_sure and len(values) == 1 else UNKNOWN
            variables[name] = value if variables.setdefault(name, value) == value else UNKNOWN
        own: list[str] = []
        for word in (*words, ";"):
            if word not in (";", *ENDS):
                value = _expanded(word, variables)
                own += value.split() if word != value and value.startswith("--") else [value]
                continue
            for flag, inner in itertools.pairwise(own):
                if re.fullmatch(r"-\w{0,3}c", flag) and " " in inner:
                    found += [replace(one, line=first) for one in _launches(inner)]
            found += _launch(first, own, written, variables)
            own = []
    return tuple(found)


def _words(line: str) -> list[str]:
    """Words of a line without quotes; in single ones stand no variables."""
    line = re.sub(r"'[^']*'", lambda quoted: quoted[0].replace("$", "\0"), line)
    words = shlex.shlex(line, posix=True, punctuation_chars=";&|")
    words.whitespace_split, words.commenters = True, ""
    try:
        return list(words)
    except ValueError:  # a quote that is left open
        return []


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        return variables.get(found[1] or found[2] or "", found[3] or "") or UNKNOWN

    return PATTERNS["variable"].sub(value, text).replace("\0", "$")


def _launch(
    line: int, words: list[str], written: Sequence[str], variables: Mapping[str, str]
) -> list[LaunchCommand]:
    """The launch that a command is; none of another command."""
    words = [*itertools.dropwhile(PATTERNS["assigned"].fullmatch, words)]
    stated = parse_command_line(words)
    sure = {key: UNKNOWN if UNKNOWN in str(cell) else cell for key, cell in stated.items()}
    settings = {key: cell for key, cell in sure.items() if UNKNOWN not in key}
    if not _is_training(words, settings):
        return []
    # torchrun counts the processes of one machine.
    own, machines = settings.get("nproc_per_node"), settings.get("nnodes", 1)
    if isinstance(own, int) and isinstance(machines, int):
        settings.setdefault("num_processes", own * machines)
    is_of_several = not set(words).isdisjoint((*LAUNCH["of_several"], *LAUNCH["launchers"]))
    if is_of_several and settings.keys().isdisjoint(("num_processes", "num_gpus")):
        settings.pop("per_device_train_batch_size", None)  # on how many is not known
    known = {**{key.lower(): value for key, value in variables.items()}, **settings}
    names = [str(known.get(name, "")) for name in LAUNCH["run_names"]]
    names += [file.rpartition(".")[0] for file in written]
    ends = {_plain(Path(name).name) for name in names if UNKNOWN not in name}
    return [LaunchCommand(line, settings, frozenset(ends))]


def _is_training(words: Sequence[str], settings: Mapping[str, Scalar]) -> bool:
    """Whether a command starts a training with groups of completions."""
    starts = [place for place, word in enumerate(words) if PATTERNS["starter"].fullmatch(word)]
    if not starts or not settings:
        return False
    ahead = words[starts[0] :]
    programs = [
        word
        for before, word in itertools.pairwise(ahead)
        if word not in LAUNCH["launchers"] and (before == "-m" or word.endswith(".py"))
    ]
    program = programs[0] if programs else " ".join(ahead[:2]).rpartition("/")[2]
    is_grouped = not settings.keys().isdisjoint(LAUNCH["settings"])
    is_other = PATTERNS["other"].fullmatch(program.rpartition("/")[2]) is not None
    return not is_other and (is_grouped or PATTERNS["program"].fullmatch(program) is not None)


def _plain(name: str) -> str:
    """Name of a run or a script, as they are compared."""
    plain = re.sub(r"[\W_]+", "_", name.lower()).strip("_")
    return re.sub(r"^(?:run|train|launch|submit)_|_(?:log|train|run)$", "", plain)
