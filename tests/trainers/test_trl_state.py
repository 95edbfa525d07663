"""trainer_state.json against what every reader must do."""

import json

from reader_conformance import LogFormat, ReaderConformance


class TestTrainerState(ReaderConformance):
    reader = LogFormat("TRL trainer_state").reader

    def write_sample(self, folder, rewards):
        path = folder / "trainer_state.json"
        rows = [{"step": n, "reward": r, "loss": 0.1} for n, r in enumerate(rewards, 1)]
        state = {"global_step": len(rows), "log_history": rows, "max_steps": len(rows)}
        path.write_text(json.dumps({**state, "logging_steps": 1}, indent=1))
        return path
