"""A study as a list of studies shows it: what was asked, what was answered, what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from advisor.advice import Recommendation
from advisor.engine import digest_of
from advisor.errors import InputError, StudyError
from advisor.model.posterior import Posterior, RunSummary
from advisor.study.study import ANSWER, is_study

SHORT = 8
"""Characters of an id that a list shows, and that name a study where they are unique."""


class StudyRecord(BaseModel):
    """Answer and pilots of one study, without the draws: those stay in its folder.

    Attributes
    ----------
    id : str
        Hash of the answer: one study is the same record however often it is written.
    name : str
        Of its folder, or as given.
    origin : str
        Where its folder lay when it was recorded.
    answer : Recommendation
    pilots : tuple of RunSummary
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    origin: str
    answer: Recommendation
    pilots: tuple[RunSummary, ...]

    @classmethod
    def of_folder(cls, folder: Path, name: str | None = None) -> StudyRecord:
        """Read the record of a saved study.

        Raises
        ------
        StudyError
            It is no study, incomplete, or one of another version.
        """
        from advisor.study.study import Study

        study = Study.load(folder)
        return cls.of(study.posterior, study.recommendation, name or folder.resolve().name, folder)

    @classmethod
    def of(
        cls, posterior: Posterior, answer: Recommendation, name: str, origin: Path
    ) -> StudyRecord:
        """Record of an answer and of the posterior behind it."""
        return cls(
            id=digest_of(answer.model_dump(mode="json")),
            name=name,
            origin=str(origin.resolve()),
            answer=answer,
            pilots=posterior.meta.runs,
        )

    @property
    def row(self) -> dict[str, Any]:
        """What a list shows, filters by, and compares: plain values by name, in reading order."""
        answer, settings = self.answer, self.answer.settings
        return {
            "name": self.name,
            "created": answer.provenance.created,
            "task": answer.target.task,
            "model": answer.target.model,
            "parameters": answer.target.parameters,
            "kind": answer.kind,
            "pilots": answer.pilots,
            "steps": answer.steps,
            "learning_rate": settings.learning_rate,
            "group_size": settings.group_size,
            "minibatches_per_refresh": settings.minibatches_per_refresh,
            "epochs_per_refresh": settings.epochs_per_refresh,
            "reward": answer.reward.mean,
            "p_stable": answer.stability.probability,
            "completions": answer.cost.completions,
            "gpu_hours": answer.cost.gpu_hours,
            "preset": answer.priors,
            "package": answer.provenance.package,
            "data": answer.provenance.data_sha256,
            "seed": answer.seed,
        }

    @property
    def line(self) -> dict[str, Any]:
        """Row with the id and where the folder lay: all that a list needs."""
        return {"id": self.id, **self.row, "origin": self.origin}


def records_under(folders: Sequence[Path]) -> tuple[list[StudyRecord], list[str]]:
    """Records of all study folders, at any depth, and why others cannot be read.

    Parameters
    ----------
    folders : sequence of Path

    Returns
    -------
    records : list of StudyRecord
        Each study once, by path.
    unread : list of str

    Raises
    ------
    InputError
        There is no such folder.
    """
    found, unread = {}, []
    for folder in folders:
        if not folder.is_dir():
            raise InputError(
                "there is no such folder",
                path=folder,
                advice="Give a study, or a folder that holds some",
            )
        for at in _studies(folder):
            try:
                record = StudyRecord.of_folder(at)
            except StudyError as error:
                unread.append(str(error))
                continue
            found[record.id] = record
    return list(found.values()), unread


def _studies(folder: Path) -> Iterator[Path]:
    """Study folders under a folder, itself among them."""
    for answer in sorted(folder.rglob(ANSWER)):
        if is_study(answer.parent):
            yield answer.parent
