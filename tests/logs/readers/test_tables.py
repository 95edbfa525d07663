"""Tables and tables of runs against what every reader must do."""

import json

from reader_conformance import LogFormat, ReaderConformance

TABLE = LogFormat("table")


class TestCsv(ReaderConformance):
    reader = TABLE.reader

    def write_sample(self, folder, rewards):
        path = folder / "metrics.csv"
        rows = [f"{n},{r},0.1" for n, r in enumerate(rewards, 1)]
        path.write_text("\n".join(["step,reward,loss", *rows]) + "\n")
        return path


class TestMarkdown(ReaderConformance):
    reader = TABLE.reader

    def write_sample(self, folder, rewards):
        path = folder / "issue.md"
        rows = [f"| {n} | **{r}** | `0.1` |" for n, r in enumerate(rewards, 1)]
        settings = "| setting | value |\n|---|---|\n| G | 8 |\n"
        top = f"# My run\n\n{settings}\n| Step | reward | loss |\n|---:|:--|---|\n"
        path.write_text(top + "\n".join(rows) + "\n")
        return path


class TestPairs(ReaderConformance):
    reader = TABLE.reader

    def write_sample(self, folder, rewards):
        path = folder / "curve.jsonl"
        path.write_text("".join(f"[{n}, {float(r)}]\n" for n, r in enumerate(rewards, 1)))
        return path


class TestJsonLines(ReaderConformance):
    reader = TABLE.reader

    def write_sample(self, folder, rewards):
        path = folder / "metrics.jsonl"
        rows = [{"step": n, "metrics": {"reward": r}} for n, r in enumerate(rewards, 1)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path


class TestJsonList(ReaderConformance):
    test_memory_is_bounded = None  # a list is parsed as a whole, up to its limit

    reader = TABLE.reader

    def write_sample(self, folder, rewards):
        path = folder / "log.json"
        rows = [{"step": n, "reward": r} for n, r in enumerate(rewards, 1)]
        path.write_text(json.dumps(rows))
        return path


class TestRunsJsonLines(ReaderConformance):
    reader = LogFormat("JSONL").reader

    def write_sample(self, folder, rewards):
        path = folder / "runs.jsonl"
        path.write_text(json.dumps({"id": "a", "lr": 1e-3, "reward": list(rewards)}) + "\n")
        return path
