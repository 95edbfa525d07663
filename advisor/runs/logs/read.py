"""Files and folders become pilot runs: strictly, or with a list of what cannot be read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from advisor.errors import BrokenRewardError, InputError, NoRewardError, SourceError
from advisor.runs.logfiles.config_files import ConfigSource
from advisor.runs.logfiles.configs import settings_beside
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import LogCandidate, Reader, Unread, find_files, parse_columns
from advisor.runs.logs.assemble import assemble
from advisor.runs.logs.inspected import Inspection
from advisor.runs.logs.located_run import LocatedRun, Place, family, fold_checkpoints, name_places
from advisor.runs.logs.merge import merge_run
from advisor.runs.logs.readers import choose_reader, is_settings, passed_over
from advisor.runs.logs.row_kinds import split_by_column
from advisor.runs.logs.sidecar import SIDECAR, SidecarIndex
from advisor.runs.logs.sources import candidates, is_source
from advisor.runs.logs.stated_settings import check_settings, stated_settings
from advisor.runs.logs.trackers import wandb
from advisor.runs.pilot_run import PilotRun
from advisor.runs.several_runs import evaluations_as_rewards, mark_copies, warn_of_starts
from advisor.runs.trainers.keys import choose_framework, count_fractions, restore_slashes
from advisor.text import counted

PathLike = str | os.PathLike[str]


def read_runs(
    paths: PathLike | Iterable[PathLike],
    *,
    sidecar: PathLike | None = None,
    overrides: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> list[PilotRun]:
    """Read pilot runs from logs.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        Files, or folders and zip archives searched for logs at every depth; or text that names
        what a tracker's own client hands out: ``wandb:ENTITY/PROJECT[/SWEEP]``,
        ``mlflow:[TRACKING_URI#]EXPERIMENT``, ``trackio:PROJECT``.
    sidecar : path-like, optional
        ``pilots.toml`` with the settings that logs do not hold. By default the nearest one next
        to a log or above it, up to two folders above what is given.
    overrides : mapping, optional
        Settings for all runs; they come before the sidecar's, which come before those of config
        files next to a log and before what its metrics show.
    columns : mapping, optional
        Column map for all files, for keys that no reader knows:
        ``{"reward": "train/acc", "step": "iteration", "step_unit": "refresh"}``.

    Returns
    -------
    runs : list of PilotRun
        Sorted by path, with unique ids.

    Raises
    ------
    InputError
        A log that was named, a sidecar entry or an override is wrong. Or no log was found.
        A tracker's client that is missing, not logged in or without an answer is a `SourceError`.
        What cannot be read in a folder is passed over. So is a run with too few rewards, where
        others have enough. ``left_out`` of the first run names it, and `advisor.inspect` lists it.
    """
    given = _paths(paths)
    found = LogSearch(sidecar, overrides, columns, is_strict=True).run(given)
    if not found.runs:
        raise found.refused(given, "no run was found", "a folder that holds")
    return found.runs


def inspect(
    paths: PathLike | Iterable[PathLike],
    *,
    sidecar: PathLike | None = None,
    overrides: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Inspection:
    """Look through files and folders for runs, noting what cannot be read.

    Parameters
    ----------
    paths, sidecar, overrides, columns
        As in `read_runs`.

    Returns
    -------
    inspection : Inspection
        The runs, and the files that gave none with the reason.

    Raises
    ------
    InputError
        A path does not exist, a tracker's client gives no runs, or a sidecar, override or column
        map is wrong. A log that is wrong is listed instead.
    """
    return LogSearch(sidecar, overrides, columns, is_strict=False).run(_paths(paths))


def _paths(paths: PathLike | Iterable[PathLike]) -> list[Path | str]:
    """Paths, and as text what a tracker's client is asked for."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given or not all(os.fspath(path) for path in given):
        raise InputError("no path was given", advice="Give at least one pilot log or a folder")
    return [path if is_source(path) else Path(path) for path in given]


class LogSearch:
    """Reads all runs below some paths; strictly, or noting what cannot be read."""

    def __init__(
        self,
        sidecar: PathLike | None,
        overrides: Mapping[str, Any] | None,
        columns: Mapping[str, str] | None,
        *,
        is_strict: bool,
    ) -> None:
        self.flags = check_settings(overrides or {})
        self.columns = parse_columns(columns) if columns else None
        self.sidecars = SidecarIndex(None if sidecar is None else Path(sidecar))
        self.is_strict = is_strict
        self.unread: list[Unread] = []
        self._failed: list[InputError] = []
        self._listed: dict[Path, frozenset[str]] = {}
        self.configs: dict[Path, set[Path]] = {}
        self._unused: dict[str, None] = {}

    def run(self, paths: Sequence[Path | str]) -> Inspection:
        """Read all runs below the paths, and those that clients of trackers hand out."""
        on_disk = [path for path in paths if isinstance(path, Path)]
        files = find_files(on_disk, self.unread)
        for path, reason, _ in self.unread if self.is_strict else ():
            self._failed.append(InputError(reason, path=path))
            if path in on_disk:
                raise self._failed[-1]
        for place in (path for path in paths if isinstance(path, str)):
            files += candidates(place)
        groups = self._groups(files)
        counts = _runs_below(groups)
        located_runs: list[LocatedRun] = []
        for (reader, _), members in groups.items():
            try:
                located_runs += self._read(reader, members, counts)
            except SourceError:
                raise
            except InputError as error:
                self._pass_over(members[0], error)
        for candidate in files:
            is_alone = not (located_runs and candidate.whole_path in self.sidecars.read)
            if candidate.is_named and self.sidecars.is_sidecar(candidate.path) and is_alone:
                raise is_settings(candidate.path)
        runs = self._merge(located_runs)
        without = [one for one in self._failed if isinstance(one, NoRewardError)]
        if not without and (self.is_strict or not self._failed):
            self.sidecars.refuse_unmatched(files, [run.id for run in runs])
        # `Path.resolve` of Python 3.11 stops at a link to itself.
        listed = {Path(os.path.realpath(item.path)) for item in self.unread}
        above = [path for path in self.sidecars.read if path not in listed]
        self.unread += [Unread(path, SIDECAR, "sidecar") for path in above]
        runs = self._warned(evaluations_as_rewards(runs, is_fit=self.is_strict))
        found = {path: len(logs) for path, logs in self.configs.items()}
        runs = warn_of_starts(mark_copies(runs))
        return Inspection(runs, sorted(self.unread), found, list(self._unused))

    def _pass_over(
        self, candidate: LogCandidate, error: InputError, *, is_asked: bool | None = None
    ) -> None:
        """Leave out what cannot be read, which stops nothing else unless the user named it."""
        if is_asked is None:
            is_asked = candidate.is_named or self.sidecars.names(candidate)
        is_asked = is_asked and not isinstance(error, NoRewardError)  # others show a curve
        # What is wrong with a sidecar is no fault of the logs that it speaks of.
        is_of_sidecar = error.path is not None and self.sidecars.is_sidecar(Path(error.path))
        if (self.is_strict and is_asked) or (is_of_sidecar and not self.is_strict):
            raise error
        self._failed.append(error)
        place = "" if error.row is None else f"row {error.row}: "
        advice = f". {error.advice}" if error.advice else ""
        kind: Literal["broken", "log"] = "broken" if isinstance(error, BrokenRewardError) else "log"
        self.unread.append(Unread(candidate.path, f"{place}{error.problem}{advice}", kind))

    def _warned(self, runs: list[PilotRun]) -> list[PilotRun]:
        """Runs of which the first says what was passed over; raises where there is nothing else."""
        if not self.is_strict or not self._failed:
            return runs
        if not runs:
            raise self._failed[0]
        lines = [f"Not read: {error.path}: {error.problem}." for error in self._failed[:5]]
        more = len(self._failed) - len(lines)
        lines += [f"Not read: {counted(more, 'more log')}."] * bool(more)
        return [runs[0].with_updates(left_out=tuple(lines)), *runs[1:]]

    def _groups(
        self, files: Sequence[LogCandidate]
    ) -> dict[tuple[Reader, Path], list[LogCandidate]]:
        """Logs by who reads them and which belong together."""
        groups: dict[tuple[Reader, Path], list[LogCandidate]] = {}
        for candidate in files:
            if self.sidecars.is_sidecar(candidate.path):
                self.unread.append(Unread(candidate.path, SIDECAR, "sidecar"))
                continue
            try:
                columns = self.columns or self.sidecars.columns_of(candidate)
                is_named = candidate.is_named or self.sidecars.names(candidate)
                reader = candidate.reader or choose_reader(candidate, columns, is_named=is_named)
            except InputError as error:
                self._pass_over(candidate, error)
                continue
            if reader is None:
                self.unread.append(passed_over(candidate))
            else:
                groups.setdefault((reader, _group(reader, candidate)), []).append(candidate)
        # A table of runs tells the settings of those in the chart beside it, and is no log.
        charts = {folder for reader, folder in groups if reader is wandb.CHART}
        for file in (each for each in files if each.path.parent in charts):
            if wandb.is_runs_table(file.log):
                groups = {key: logs for key, logs in groups.items() if file not in logs}
                self.unread = [item for item in self.unread if item.path != file.path]
                self.unread.append(Unread(file.path, SIDECAR, "sidecar"))
        return groups

    def _read(
        self, reader: Reader, members: Sequence[LogCandidate], counts: Mapping[Path, int]
    ) -> list[LocatedRun]:
        logs = {member.path: member for member in members}
        columns = self.columns or self.sidecars.columns_of(members[0])
        read = [
            part
            for logged in reader.read([member.log for member in members], columns)
            for part in split_by_column(logged, columns, members[0].path)
        ]
        # Of several runs that stand in one folder a config may describe any.
        more = max(0, len({logged.source for logged, _ in read}) - 1)
        configs: dict[Path, list[ConfigSource]] = {}
        located_runs, without = [], list[InputError]()
        for logged, columns in read:
            candidate = logs[logged.source or members[0].path]
            path = candidate.path
            given = self.sidecars.settings_of(candidate) | self.flags
            known = {key: setting.value for key, setting in given.items()}
            if path not in configs:
                configs[path] = settings_beside(
                    candidate.log,
                    candidate.sidecar_top,
                    lambda folder: counts.get(folder.resolve(), 0) + more,
                    self._names_in,
                )
                for source in configs[path]:
                    if source.settings:
                        self.configs.setdefault(source.path, set()).add(path)
                    elif source.is_of_several:
                        self._unused[source.note] = None
            table, remark = restore_slashes(logged.table, logged.table.keys)
            if remark is not None:
                logged = replace(logged, table=table, assumptions=(*logged.assumptions, remark))
            table, planned = count_fractions(table)
            if planned is not None:
                logged = replace(logged, table=table, planned_steps=planned)
            framework = choose_framework(table.keys, logged.framework)
            group = known.get("group_size")
            stated = stated_settings(logged, configs[path], framework, path, group)
            try:
                found = assemble(logged, framework, path, columns, {**stated.facts, **known})
            except InputError as error:
                # A project holds runs of other kinds beside those that were trained by rewards.
                if not more and (logged.label is None or not isinstance(error, NoRewardError)):
                    raise
                run = f"run '{logged.label}': " if logged.label else ""
                own: dict[str, Any] = {k: getattr(error, k) for k in ("path", "row", "key")}
                without.append(type(error)(run + error.problem, **own, advice=error.advice))
            else:
                for raw in found:
                    is_own = logged.source is not None
                    located_runs.append(LocatedRun(candidate, reader, raw, stated, is_own))
        for one in without:
            is_asked = False if located_runs else None
            self._pass_over(logs[Path(str(one.path))], one, is_asked=is_asked)
        return located_runs

    def _names_in(self, log: LogFile, folder: Path) -> frozenset[str]:
        """What lies in a folder, listed once for all logs that look into it."""
        if folder not in self._listed:
            self._listed[folder] = log.names_in(folder)
        return self._listed[folder]

    def _merge(self, located_runs: Sequence[LocatedRun]) -> list[PilotRun]:
        folded = fold_checkpoints(located_runs)
        places = {_place(located): None for located, _ in folded}
        names = dict(zip(places, name_places(list(places)), strict=True))
        runs: dict[str, PilotRun] = {}
        for located, shorter in folded:
            try:
                run = self._merge_one(located, shorter, names[_place(located)], runs)
                if run.id in runs:
                    raise InputError(
                        f"two runs have the id '{run.id}'; the other is in {runs[run.id].path}",
                        path=located.candidate.path,
                        key="id",
                        advice="Give each run another id",
                    )
            except InputError as error:
                self._pass_over(located.candidate, error, is_asked=True)
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
            is_own = raw.has_own_id and (twin is None or twin.path == raw.path)
            run_id = raw.label if is_own else f"{run_id}:{raw.label}"
        others = [short.candidate.path for short in shorter]
        settings, run_id = self.sidecars.for_run(located.candidate, raw, run_id, others)
        return merge_run(located, run_id, {**settings, **self.flags})


def _group(reader: Reader, candidate: LogCandidate) -> Path:
    """What the files of one log have in common: their folder, say, or each file itself."""
    return candidate.path if reader.group is None else reader.group(candidate.log)


def _place(located: LocatedRun) -> Place:
    candidate = located.candidate
    group = candidate.path if located.is_own_file else _group(located.reader, candidate)
    return Place(group, candidate.root, is_folder=group != candidate.path)


def _runs_below(groups: Mapping[tuple[Reader, Path], Sequence[LogCandidate]]) -> dict[Path, int]:
    """How many logs each folder holds, at every depth."""
    # The checkpoints of a run are one, and so are W&B's file and its console.
    heads = {family(members[0].path): members[0] for members in groups.values()}
    stores = [own[0] for (reader, _), own in groups.items() if reader is wandb.STORE]
    consoles = {wandb.console_of(store.whole_path) for store in stores}
    paths = [head.whole_path for head in heads.values()]
    return Counter(folder for path in paths if path not in consoles for folder in path.parents)
