"""One log format per file; the first that claims a file reads it, so the particular come first."""

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
from advisor.trainers.openrlhf import console as openrlhf_console
from advisor.trainers.tinker import console as tinker_console
from advisor.trainers.trl import console as trl_console
from advisor.trainers.trl import swift
from advisor.trainers.trl import trainer_state as trl
from advisor.trainers.verl import console as verl_console
from advisor.trainers.verl import jsonl as verl_jsonl

READERS: tuple[Reader, ...] = (
    trl.READER,
    tensorboard.READER,
    mlflow.READER,
    mlflow_db.READER,
    trackio.READER,
    parquet.READER,
    notebook.READER,
    wandb_store.READER,
    wandb_history.READER,
    verl_jsonl.READER,
    swift.READER,
    runs_jsonl.READER,
    wandb_csv.READER,
    verl_console.READER,
    openrlhf_console.READER,
    trl_console.READER,
    tinker_console.READER,
    table.READER,
    json_runs.READER,
)
