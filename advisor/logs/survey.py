"""Every run in a tree of files, and every file that was not read, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.logfiles.columns import Columns, parse_columns
from advisor.logfiles.configs import settings_beside
from advisor.logfiles.find import LogCandidate, Unread, find_files
from advisor.logfiles.log_file import check_text
from advisor.logfiles.logged import Reader
from advisor.logs.located_run import LocatedRun, Place, family, fold_checkpoints, name_places
from advisor.logs.readers import readers
from advisor.logs.rows.assemble import assemble
from advisor.logs.settings.merge import merge_run
from advisor.logs.settings.setting_keys import check_settings
from advisor.logs.settings.sidecar_index import SidecarIndex
from advisor.logs.settings.stated_settings import settings_of
from advisor.logs.trackers import wandb_store
from advisor.run.copies import mark_copies
from advisor.run.pilot_run import PilotRun
from advisor.trainers.keys import choose_framework


@dataclass(frozen=True)
class Survey:
    """What a tree of files holds.

    Attributes
    ----------
    runs : list of PilotRun
        Sorted by path, with unique ids; copies of a run are there and say so.
    unread : list of Unread
        Files that gave no run, and why.
    """

    runs: list[PilotRun]
    unread: list[Unread]


class Surveyor:
    """Reads paths; strictly, or noting what cannot be read.

    Parameters
    ----------
    sidecar : Path or None
    overrides, columns : mapping or None
        As in `advisor.logs.read_runs`.
    is_strict : bool
        Raise at the first log that cannot be read.
    """

    def __init__(
        self,
        sidecar: Path | None,
        overrides: Mapping[str, Any] | None,
        columns: Mapping[str, str] | None,
        *,
        is_strict: bool,
    ) -> None:
        self.flags = check_settings(overrides or {})
        self.columns = parse_columns(columns)
        self.sidecars = SidecarIndex(sidecar)
        self.is_strict = is_strict
        self.unread: list[Unread] = []

    def survey(self, paths: Sequence[Path]) -> Survey:
        """Read all runs below the paths."""
        files = find_files(paths, None if self.is_strict else self.unread)
        groups = self._groups(files)
        counts = _runs_below(groups)
        located_runs: list[LocatedRun] = []
        for (reader, _), members in groups.items():
            try:
                located_runs += self._read(reader, members, counts)
            except InputError as error:
                self._leave_out(members[0].path, error)
        for candidate in files:
            is_alone = not (located_runs and self.sidecars.is_used(candidate.path))
            if candidate.is_named and self.sidecars.is_sidecar(candidate.path) and is_alone:
                raise is_settings(candidate.path)
        runs = self._merge(located_runs)
        if self.is_strict:
            self.sidecars.refuse_unmatched(files, [run.id for run in runs])
        return Survey(mark_copies(runs), sorted(self.unread))

    def _leave_out(self, path: Path, error: InputError) -> None:
        if self.is_strict:
            raise error
        place = "" if error.row is None else f"row {error.row}: "
        self.unread.append(Unread(path, f"{place}{error.problem}"))

    def _groups(
        self, files: Sequence[LogCandidate]
    ) -> dict[tuple[Reader, Path], list[LogCandidate]]:
        """Logs by who reads them and which belong together."""
        groups: dict[tuple[Reader, Path], list[LogCandidate]] = {}
        for candidate in files:
            if self.sidecars.is_sidecar(candidate.path):
                self.unread.append(Unread(candidate.path, "settings of the runs (sidecar)"))
                continue
            try:
                columns = self.columns or self.sidecars.columns_of(candidate)
                is_named = candidate.is_named or self.sidecars.names(candidate)
                reader = choose_reader(candidate, columns, is_named=is_named)
            except InputError as error:
                self._leave_out(candidate.path, error)
                continue
            if reader is None:
                self.unread.append(Unread(candidate.path, why_no_log(candidate)))
            else:
                groups.setdefault((reader, reader.group(candidate.log)), []).append(candidate)
        return groups

    def _read(
        self, reader: Reader, members: Sequence[LogCandidate], counts: Mapping[Path, int]
    ) -> list[LocatedRun]:
        candidate = members[0]
        columns = self.columns or self.sidecars.columns_of(candidate)
        given = self.sidecars.settings_of(candidate) | self.flags
        known = {key: setting.value for key, setting in given.items()}
        logs = [member.log for member in members]
        sources = settings_beside(
            candidate.log, candidate.sidecar_top, lambda folder: counts.get(folder.resolve(), 0)
        )
        located_runs = []
        for logged in reader.read(logs, columns):
            framework = choose_framework(logged.table.keys, logged.framework)
            stated = settings_of(logged, sources, framework, candidate.path)
            known_here = {**stated.facts, **known}
            located_runs += [
                LocatedRun(candidate, reader, raw, stated)
                for raw in assemble(logged, framework, candidate.path, columns, known_here)
            ]
        return located_runs

    def _merge(self, located_runs: Sequence[LocatedRun]) -> list[PilotRun]:
        folded = fold_checkpoints(located_runs)
        places = {_place(located): None for located, _ in folded}
        names = dict(zip(places, name_places(list(places)), strict=True))
        runs: dict[str, PilotRun] = {}
        for located, shorter in folded:
            try:
                name = names[_place(located)]
                run = self._merge_one(located, shorter, name, runs)
                if run.id in runs:
                    raise InputError(
                        f"two runs have the id '{run.id}'; the other is in {runs[run.id].path}",
                        path=located.candidate.path,
                        key="id",
                        advice="Give each run another id",
                    )
            except InputError as error:
                self._leave_out(located.candidate.path, error)
            else:
                runs[run.id] = run
        return list(runs.values())

    def _merge_one(
        self,
        located: LocatedRun,
        shorter: Sequence[LocatedRun],
        run_id: str,
        taken: Mapping[str, PilotRun],
    ) -> PilotRun:
        raw = located.raw
        if raw.label is not None:
            # Two files may use one name; within a file that is a mistake.
            twin = taken.get(raw.label)
            is_own = raw.has_own_id and (twin is None or twin.path == str(raw.path))
            run_id = raw.label if is_own else f"{run_id}:{raw.label}"
        others = [short.candidate.path for short in shorter]
        settings, run_id = self.sidecars.for_run(located.candidate, raw, run_id, others)
        return merge_run(located, run_id, {**settings, **self.flags})


def choose_reader(candidate: LogCandidate, columns: Columns, *, is_named: bool) -> Reader | None:
    """Reader of a file.

    Parameters
    ----------
    candidate : LogCandidate
        The file.
    columns : Columns
        Its column map: a table that holds the mapped reward is a log.
    is_named : bool
        Whether the user named the file; then something must read it.

    Returns
    -------
    reader : Reader or None
        None for a file of a folder that is no log.

    Raises
    ------
    InputError
        A named file is empty, binary, or of no known format.
    """
    log = candidate.log
    for reader in readers():
        if reader.claims(log):
            return reader
    mapped = columns.keys.get("reward", "").encode()
    if not is_named and not (mapped and mapped in log.head_text()):
        return None
    fallback = next((r for r in readers() if log.suffix in r.suffixes), None)
    if fallback is None and is_named:
        check_text(log.head(), candidate.path)
        if log.suffix == ".toml":
            raise is_settings(candidate.path)
        raise InputError(
            "this is not a log that any reader knows",
            path=candidate.path,
            advice=f"Give one of: {known_formats()}",
        )
    return fallback


def why_no_log(candidate: LogCandidate) -> str:
    """Reason for which a file of a folder was passed over."""
    try:
        head = candidate.log.head_text()
    except InputError as error:
        return error.problem
    if not head.strip():
        return "the file is empty"
    log = candidate.log
    if log.suffix in (".yaml", ".yml", ".toml") or log.name.endswith("config.json"):
        return "settings, not a log"
    if log.suffix in (".csv", ".tsv"):
        return "a table without a column that is known to hold a reward"
    return "not a log that any reader knows"


def is_settings(path: Path) -> InputError:
    """Error for a sidecar given where a log belongs."""
    return InputError(
        "this holds settings (a sidecar), not a log",
        path=path,
        advice="Give the logs, and this file with --sidecar (sidecar= in Python)",
    )


def known_formats() -> str:
    """Names of all formats, for messages."""
    names = (reader.name.partition(" (")[0] for reader in readers())
    return ", ".join(dict.fromkeys(names))


def survey(
    paths: Iterable[Path],
    *,
    sidecar: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Survey:
    """Look through files and folders for runs, noting what cannot be read.

    Parameters
    ----------
    paths : iterable of Path
        Files, or folders searched at every depth.
    sidecar, overrides, columns
        As in `advisor.logs.read_runs`.

    Returns
    -------
    survey : Survey

    Raises
    ------
    InputError
        A path does not exist, or a sidecar, flag or column map is wrong. A log that is wrong is
        listed instead.
    """
    return Surveyor(sidecar, overrides, columns, is_strict=False).survey(list(paths))


def _place(located: LocatedRun) -> Place:
    group = located.reader.group(located.candidate.log)
    is_folder = group != located.candidate.path
    return Place(group if is_folder else located.candidate.path, located.candidate.root, is_folder)


def _runs_below(groups: Mapping[tuple[Reader, Path], Sequence[LogCandidate]]) -> dict[Path, int]:
    """How many logs each folder holds, at every depth."""
    counts: dict[Path, int] = {}
    # The checkpoints of a run are one, and so are W&B's file and its console.
    heads = {family(members[0].path): members[0] for members in groups.values()}
    stores = [own[0] for (reader, _), own in groups.items() if reader is wandb_store.READER]
    consoles = {wandb_store.console_of(store.whole_path) for store in stores}
    for candidate in heads.values():
        if candidate.whole_path in consoles:
            continue
        for folder in candidate.whole_path.parents:
            counts[folder] = counts.get(folder, 0) + 1
    return counts
