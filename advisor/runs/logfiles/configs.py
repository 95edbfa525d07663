"""Config files next to a log and above it, nearest first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from advisor.errors import InputError
from advisor.runs.logfiles.config_files import NAMES, ConfigSource, Scalar, flatten, parse_config
from advisor.runs.logfiles.launch_commands import launch_settings
from advisor.runs.logfiles.log_file import LogFile
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

NAMED_CONFIG = re.compile(
    rf"(?:.*[._-])?(?:{'|'.join(NAMES['named'])})(?:[._-].*)?\.(?:ya?ml|json)", re.IGNORECASE
)
OF_OTHER_THINGS = re.compile(
    rf"(?:.*[._-])?(?:{'|'.join(NAMES['of_other_things'])})(?:[._-].*)?", re.IGNORECASE
)
INFIX = re.compile(r"\.config(?=\.(?:ya?ml|json)$)")
"""What some collections put into the names of configs, so that none is taken for a log."""

STORE = re.compile(r"run-\w{1,80}\.wandb")

BESIDE_SEVERAL = "is read for none of"
"""What a note says of a config that may describe several logs."""


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
        sources += [_source(f, INFIX.sub("", f.path.name), runs) for f in files]
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
        kinds.setdefault(start + rest, INFIX.sub("", rest))
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
    found = [name for name in sorted(names) if NAMED_CONFIG.fullmatch(name)]
    logs = {stem for name in names.difference(found) for stem in _stems(name)}
    owners = {}
    for name in found:
        plain = INFIX.sub("", name).rpartition(".")[0]
        if name not in IN_A_FOLDER and not OF_OTHER_THINGS.fullmatch(plain):
            starts = [name[:at] for at in range(1, len(name)) if name[at] in "._-"]
            owners[name] = next((start for start in reversed(starts) if start in logs), "")
    return owners


def _of_its_store(log: LogFile) -> list[ConfigSource]:
    """Settings in W&B's own file of the run whose console this is (``files/output.log``)."""
    folder = log.path.parent.parent
    if log.path.parent.name != "files" or log.name != "output.log":
        return []
    names = sorted(filter(STORE.fullmatch, log.names_in(folder)))
    stores = (log.at(folder / name) for name in names)
    return [ConfigSource(file.path, flatten(stored_config(file))) for file in stores if file]


def _source(file: LogFile, kind: str, runs: int = 1) -> ConfigSource:
    """Settings of a config, if it describes no more than one run."""
    name = file.path.name
    if runs > 1:
        what = f"put a copy next to each that it describes: LOG.{name} next to LOG.csv"
        return ConfigSource(file.path, note=f"{name} {BESIDE_SEVERAL} {runs} logs; {what}")
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
