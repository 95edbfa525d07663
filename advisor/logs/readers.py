"""Readers of all log formats; the first that claims a file reads it."""

from __future__ import annotations

from advisor.logfiles.logged import Reader
from advisor.logs.tables import json_runs, parquet, runs_jsonl, table
from advisor.logs.trackers import (
    mlflow,
    mlflow_db,
    notebook,
    tensorboard,
    trackio,
    wandb_csv,
    wandb_history,
    wandb_store,
)
from advisor.trainers.registry import trainer_readers

OWN: tuple[Reader, ...] = (
    tensorboard.READER,
    mlflow.READER,
    mlflow_db.READER,
    trackio.READER,
    parquet.READER,
    notebook.READER,
    wandb_store.READER,
    wandb_history.READER,
    runs_jsonl.READER,
    wandb_csv.READER,
    table.READER,
    json_runs.READER,
)
"""Formats of trackers, and tables that any program may write."""


def readers() -> list[Reader]:
    """Readers in the order in which they are asked: the surest claims first."""
    return sorted((*trainer_readers(), *OWN), key=lambda reader: reader.claim)
