"""Config files beside a log and above it, nearest first."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from advisor.errors import InputError
from advisor.runs.logfiles.configs.literal import Scalar
from advisor.runs.logfiles.configs.parse import ADAPTER, COMMAND_LINE, Parsed, flatten, parse_config
from advisor.runs.logfiles.log_file import LogFile, on_disk
from advisor.runs.logfiles.wandb_records import stored_config

WORDS = (
    "config",
    "args",
    "hparams",
    "training_config",
    "train_config",
    "training_args",
    "run_config",
    "params",
    "training_summary",
    "hparams_from_notebook",
)
ENDINGS = (".yaml", ".yml", ".json")
OF_PRIME_RL = ("rl.toml", "orch.toml", "orchestrator.toml", "train.toml", "trainer.toml")
IN_A_FOLDER = (
    "overrides.yaml",
    *(word + ending for word in WORDS for ending in ENDINGS),
    *OF_PRIME_RL,
    ADAPTER,
    COMMAND_LINE,
)
"""Names of config files; overrides come first, for they were given on top of a config."""

PLACES = (
    ".hydra/overrides.yaml",
    ".hydra/config.yaml",
    *IN_A_FOLDER,
    "files/config.yaml",
    f"files/{COMMAND_LINE}",
)
"""Those, and where Hydra and W&B keep theirs below the folder of a run."""

OF_ONE_LOG = {f"{joint}{name}": name for name in IN_A_FOLDER for joint in "._"}
BARE = {ending: f"config{ending}" for ending in (*ENDINGS, ".toml")}
"""What follows the name of a log that a file describes -> the kind of that file."""

WORDS_OF_LOGS = (".metrics", ".history", ".log", ".output", ".steps", ".train")
"""Words before the ending of a log that its config may lack."""

NAMED_CONFIG = re.compile(
    r"(?:.*[._-])?(?:config|cfg|args|arguments|hparams|hyperparams|hyperparameters|params|settings"
    r"|summary)(?:[._-].*)?\.(?:ya?ml|json)",
    re.IGNORECASE,
)
"""Any other config by the words of its name: ``grpo_lora_config.json``, ``run_3_summary.json``."""

OF_OTHER_THINGS = re.compile(
    r"(?:.*[._-])?(?:generation|tokenizer|processor|preprocessor|image|ds|deepspeed|zero\d?|fsdp"
    r"|accelerate|quantization|quantize|special|data|dataset|eval|evaluation|wandb|index|sft)"
    r"(?:[._-].*)?",
    re.IGNORECASE,
)
"""Configs of what is no training by rewards."""

INFIX = re.compile(r"\.config(?=\.(?:ya?ml|json)$)")
"""What some collections put into the names of configs, so that none is taken for a log."""

SECTIONS = frozenset(
    {"config", "args", "arguments", "hparams", "hyperparameters", "params", "settings", "cfg"}
)
"""Keys under which a summary keeps the settings, beside what came of them."""

STORE = re.compile(r"run-\w{1,80}\.wandb")

BESIDE_SEVERAL = "is read for none of"
"""What a note says of a config that may describe several logs."""

MOST_NAMED = 2
"""Configs by the words of their names that may together describe one run."""

PICKLES = ("training_args.bin", "args.pkl", "config.pkl")
OF_THE_MODEL = frozenset(
    {"model_name_or_path", "adapter", "lora_r", "lora_alpha", "lora_target_modules"}
)
METRICS = frozenset({"loss", "train_loss", "reward", "rewards", "kl", "entropy", "grad_norm"})


@dataclass(frozen=True)
class ConfigSource:
    """Settings of one file beside a log."""

    path: Path
    settings: dict[str, Scalar] = field(default_factory=dict)
    note: str = ""


def settings_beside(
    log: LogFile, top: Path, shared_by: Callable[[Path], int]
) -> list[ConfigSource]:
    """Settings from files in a log's own folder and above it."""
    sources = [*_of_this_log(log), *_of_its_prefix(log), *_of_its_store(log)]
    names: set[str] = set()
    for folder in _folders(log, top):
        taken = {source.path for source in sources}
        listed = _listed(log, folder)
        named: list[str] = []
        if folder == log.path.parent:
            named = _named_configs((name for name in listed if "__" not in name), log.path.name)
        there = _files(log, folder, (*PLACES, *named), listed)
        files = [f for f in there.values() if f.path not in taken and f.path.name not in names]
        runs = shared_by(folder) if files else 0
        sources += [_shared(f, runs) if runs > 1 else _source(f, _kind(f.path.name)) for f in files]
        names |= {file.path.name for file in files}
    told = [source for source in sources if source.settings or source.note]
    return told + _pickle(log, told)


def _folders(log: LogFile, top: Path) -> Iterator[Path]:
    folder = log.path.parent
    yield folder
    while folder != top and folder.is_relative_to(top):
        folder = folder.parent
        yield folder


def _listed(log: LogFile, folder: Path) -> set[str]:
    """First parts of what lies in a folder, on disk or in the log's archive."""
    archive = log.member_of
    if archive is not None and folder.is_relative_to(archive.path):
        depth = len(folder.parts)
        below = (path.parts for path in archive.members if path.is_relative_to(folder))
        return {parts[depth] for parts in below}
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _files(
    log: LogFile, folder: Path, names: Iterable[str], listed: set[str] | None = None
) -> dict[str, LogFile]:
    """Which of some names are files of a folder other than the log; in the order given."""
    listed = _listed(log, folder) if listed is None else listed
    near = [name for name in names if name.partition("/")[0] in listed]
    files = {name: _file_at(log, folder / name) for name in near if folder / name != log.path}
    return {name: file for name, file in files.items() if file is not None}


def _file_at(log: LogFile, path: Path) -> LogFile | None:
    if log.member_of is None or path.is_relative_to(log.member_of.path):
        return log.at(path)
    try:
        return on_disk(path) if path.is_file() else None  # beside or above the archive
    except OSError:
        return None


def _of_this_log(log: LogFile) -> list[ConfigSource]:
    """Files that differ from the log's name in their ending only."""
    sources = []
    folder = log.path.parent
    listed = _listed(log, folder)
    for stem in _stems(log.name):
        kinds = {stem + ending: kind for ending, kind in (*OF_ONE_LOG.items(), *BARE.items())}
        names = [name for name in kinds if name not in IN_A_FOLDER]
        for name in _named_after(stem, listed):
            kinds.setdefault(name, name.removeprefix(stem)[1:])
            names.append(name)
        for name, file in _files(log, folder, names, listed).items():
            source = _source(file, kinds[name])
            # A file of the very same name may as well be another log of the run.
            is_bare = name.removeprefix(stem) in BARE
            if not is_bare or (source.settings and not _holds_metrics(source.settings)):
                sources.append(source)
    return sources


def _named_after(stem: str, listed: set[str]) -> list[str]:
    """Configs by the words of their names that begin with this log's name and no longer one's."""
    found, logs = _configs_among(frozenset(listed))
    joints = {
        name: [at for at in range(1, len(name)) if name[at] in "._-" and name[:at] in logs]
        for name in found
    }
    return [name for name, ends in joints.items() if ends and name[: ends[-1]] == stem]


def _stems(name: str) -> list[str]:
    stem = Path(name).stem
    stems = [stem]
    while Path(stem).suffix in WORDS_OF_LOGS:
        stem = Path(stem).stem
        stems.append(stem)
    return stems


def _holds_metrics(settings: Mapping[str, Scalar]) -> bool:
    return any(key.rpartition(".")[2] in METRICS for key in settings)


def _of_its_prefix(log: LogFile) -> list[ConfigSource]:
    """Files with the log's prefix, where ``__`` in names stands for folders."""
    prefix, joint, _ = log.name.rpartition("__")
    if not joint:
        return []
    kinds = {f"{prefix}__{place.replace('/', '__')}": Path(place).name for place in PLACES}
    start = f"{prefix}__"
    rests = [n.removeprefix(start) for n in _listed(log, log.path.parent) if n.startswith(start)]
    for rest in _named_configs([rest for rest in rests if "__" not in rest], log.name):
        kinds.setdefault(start + rest, _kind(rest))
    files = _files(log, log.path.parent, kinds)
    runs = _logs_with_prefix(log, f"{prefix}__") if files else 0
    return [
        _shared(file, runs) if runs > 1 else _source(file, kinds[name])
        for name, file in files.items()
    ]


def _named_configs(names: Iterable[str], log: str) -> list[str]:
    """Names of configs that are not known ones, by their words; none where they are many."""
    found, logs = _configs_among(frozenset(names))
    others = [name for name in found if name != log and not _is_of_one(name, logs)]
    return others if len(others) <= MOST_NAMED else []


@lru_cache(maxsize=64)
def _configs_among(names: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Names of configs by their words, and what the names of other files begin with."""
    found = [name for name in sorted(names) if NAMED_CONFIG.fullmatch(name)]
    stems = frozenset(stem for name in names.difference(found) for stem in _stems(name))
    kept = [
        name
        for name in found
        if name not in IN_A_FOLDER and not OF_OTHER_THINGS.fullmatch(_kind(name).rpartition(".")[0])
    ]
    return tuple(kept), stems


def _is_of_one(name: str, logs: frozenset[str]) -> bool:
    """Whether a config begins with the name of a log, which it then describes alone."""
    return any(name[at] in "._-" and name[:at] in logs for at in range(1, len(name)))


def _kind(name: str) -> str:
    return INFIX.sub("", name)


def _of_its_store(log: LogFile) -> list[ConfigSource]:
    """Settings in W&B's own file of the run whose console this is (``files/output.log``)."""
    folder = log.path.parent.parent
    if (log.path.parent.name, log.name) != ("files", "output.log"):
        return []
    names = [name for name in sorted(_listed(log, folder)) if STORE.fullmatch(name)]
    files = _files(log, folder, names)
    settings = {file.path: flatten(stored_config(file)) for file in files.values()}
    return [ConfigSource(path, told) for path, told in settings.items() if told]


def _logs_with_prefix(log: LogFile, prefix: str) -> int:
    """Files of the log's kind that share its prefix."""
    ending = Path(log.name).suffix
    if ending == ".json":
        return 1  # a checkpoint has a dozen files of this kind, of which one is a log
    listed = _listed(log, log.path.parent)
    rests = [name.removeprefix(prefix) for name in listed if name.startswith(prefix)]
    return sum(rest.removesuffix(".gz").endswith(ending) and "__" not in rest for rest in rests)


def _shared(file: LogFile, runs: int) -> ConfigSource:
    name = file.path.name
    what = f"put a copy beside each that it describes: LOG.{name} beside LOG.csv"
    return ConfigSource(file.path, note=f"{name} {BESIDE_SEVERAL} {runs} logs; {what}")


def _source(file: LogFile, kind: str) -> ConfigSource:
    try:
        parsed: Parsed = parse_config(file, kind)
    except InputError as error:
        return ConfigSource(file.path, note=f"{file.path.name} was left out: {error.problem}")
    note = f"{file.path.name}: {parsed.note}" if parsed.note else ""
    settings = parsed.settings
    inside = {
        key.partition(".")[2]: value
        for key, value in settings.items()
        if "." in key and key.partition(".")[0] in SECTIONS
    }
    if inside and ("summary" in kind or _holds_metrics(settings)):
        settings = inside
    elif "summary" in kind and kind not in IN_A_FOLDER and _holds_metrics(settings):
        settings = {}
    return ConfigSource(file.path, settings, note)


def _pickle(log: LogFile, sources: list[ConfigSource]) -> list[ConfigSource]:
    """Say that a pickle is there, where nothing else tells how the run was trained."""
    if any(set(source.settings) - OF_THE_MODEL for source in sources):
        return []
    prefix, joint, _ = log.name.rpartition("__")
    names = (*PICKLES, *(f"{prefix}{joint}{name}" for name in PICKLES if joint))
    found = list(_files(log, log.path.parent, names).values())[:1]
    why = "is a pickle, which can run code, and is not opened; give its settings in pilots.toml"
    return [ConfigSource(file.path, note=f"{file.path.name} {why}") for file in found]
