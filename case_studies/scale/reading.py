"""Time and memory of reading large logs, each in a process of its own.

    python case_studies/scale/reading.py            # about three minutes; 2 GB of disk for a moment
    python case_studies/scale/reading.py --quick    # a tenth of the size

Prints one line per case and keeps the result as reading.json beside this file (not with --quick).
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULT = HERE / "reading.json"
MB = 1 << 20
CHILD = """
import json, resource, sys, time
from pathlib import Path
started = time.perf_counter()
from advisor.runs.logs import inspect
ready = time.perf_counter()
found = inspect([Path(sys.argv[1])])
done = time.perf_counter()
print(json.dumps({
    "runs": len(found.runs),
    "rows": int(sum(run.step.size for run in found.runs)),
    "reasons": sorted({reason for _, reason, _ in found.unread})[:3],
    "seconds": round(done - ready, 2),
    "import_seconds": round(ready - started, 2),
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
}))
"""


def verl_line(step: int, chance: random.Random) -> str:
    """One console line as verl prints it: 100 metrics, half of them numpy scalars."""
    keys = [
        "actor/entropy", "actor/pg_clipfrac", "actor/ppo_kl", "actor/pg_loss", "actor/grad_norm",
        "actor/lr", "critic/score/mean", "critic/score/max", "critic/score/min",
        "critic/rewards/mean", "critic/advantages/mean", "response_length/mean",
        "response_length/clip_ratio", "timing_s/step", "training/global_step",
    ]  # fmt: skip
    keys += [f"timing_s/part_{n}" for n in range(85)]
    cells = []
    for place, key in enumerate(keys):
        value = chance.random()
        cells.append(f"{key}:np.float64({value})" if place % 2 else f"{key}:{value}")
    return f"\x1b[36m(TaskRunner pid=4711)\x1b[0m step:{step} - " + " - ".join(cells) + "\n"


def write_verl(path: Path, size: int) -> None:
    """A verl console log of a size, with other output between its lines."""
    chance = random.Random(1)
    noise = "(WorkerDict pid=4712) INFO loading shard " + "x" * 400 + "\n"
    written = step = 0
    with path.open("w") as stream:
        while written < size:
            step += 1
            written += stream.write(verl_line(step, chance) + noise)


def write_jsonl(path: Path, size: int) -> None:
    """JSON lines with 40 metrics each."""
    chance = random.Random(1)
    written = step = 0
    with path.open("w") as stream:
        while written < size:
            step += 1
            row = {"step": step, "reward": chance.random(), "entropy": chance.random()}
            row |= {f"time/part_{n}": chance.random() for n in range(37)}
            written += stream.write(json.dumps(row) + "\n")


def write_samples(path: Path, size: int) -> None:
    """JSON lines of which nine in ten are sampled texts, as loops write that log completions."""
    written = step = 0
    text = {"type": "sample_rollout", "text": "The answer is " + "word " * 2000}
    with path.open("w") as stream:
        while written < size:
            step += 1
            row = {"type": "train", "step": step, "reward": step % 97 / 97}
            written += stream.write(json.dumps(row) + "\n")
            written += stream.write((json.dumps({**text, "step": step}) + "\n") * 9)


def write_csv(path: Path, size: int) -> None:
    """A CSV with 12 columns."""
    chance = random.Random(1)
    written = step = 0
    with path.open("w") as stream:
        stream.write("step,reward,entropy,grad_norm," + ",".join("abcdefgh") + "\n")
        while written < size:
            step += 1
            cells = ",".join(f"{chance.random():.6f}" for _ in range(11))
            written += stream.write(f"{step},{cells}\n")


def write_noise(path: Path, size: int) -> None:
    """A console log without one metric, as a server leaves it."""
    line = "INFO 04-19 06:27:38 engine.py:99] Avg prompt throughput: 0.0 tokens/s, Running: 1\n"
    with path.open("w") as stream:
        for _ in range(size // len(line)):
            stream.write(line)


def crc_table() -> list[int]:
    """Table of CRC-32C."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


def masked(data: bytes, table: list[int]) -> bytes:
    """Masked CRC-32C of a TFRecord part."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(number: int) -> bytes:
    """Protobuf's variable-length integer."""
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def write_scalars(path: Path, size: int) -> None:
    """A TensorBoard event file of ``size`` scalars, one event each, fifty tags."""
    table = crc_table()
    tags = ["train/reward", "train/entropy", "train/grad_norm", "train/learning_rate"]
    tags += [f"train/completions/part_{n}" for n in range(46)]
    with path.open("wb") as stream:
        for number in range(size):
            step, place = divmod(number, len(tags))
            tag = tags[place].encode()
            value = b"\x0a" + varint(len(tag)) + tag + b"\x15" + struct.pack("<f", step % 97 / 97)
            summary = b"\x0a" + varint(len(value)) + value
            event = b"\x09" + struct.pack("<d", 1.7e9 + step) + b"\x10" + varint(step + 1)
            event += b"\x2a" + varint(len(summary)) + summary
            length = struct.pack("<Q", len(event))
            stream.write(length + masked(length, table) + event + masked(event, table))


def write_folder(path: Path, size: int) -> None:
    """``size`` logs of 40 rows each, a fifth of every common kind, each in a folder of its own."""
    chance = random.Random(1)
    for number in range(size):
        folder = path.parent / f"run-{number}"
        folder.mkdir()
        rewards = [round(chance.random(), 4) for _ in range(40)]
        rows = [
            {"step": n, "loss": 0.1, "reward": r, "reward_std": 0.2, "learning_rate": 1e-6 * n,
             "completions/mean_length": 100.0, "entropy": 0.5, "kl": 0.01}
            for n, r in enumerate(rewards, 1)
        ]  # fmt: skip
        match number % 5:
            case 0:
                state = {"log_history": rows, "logging_steps": 1, "max_steps": 40}
                (folder / "trainer_state.json").write_text(json.dumps(state, indent=1))
            case 1:
                text = "".join(verl_line(n, chance) for n in range(1, 41))
                (folder / "run.log").write_text(text)
            case 2:
                text = "".join(json.dumps(row) + "\n" for row in rows)
                (folder / "metrics.jsonl").write_text(text)
            case 3:
                (folder / "console.log").write_text("".join(f"{row}\n" for row in rows))
            case _:
                lines = [",".join(map(str, row.values())) for row in rows]
                (folder / "log.csv").write_text("\n".join([",".join(rows[0]), *lines]) + "\n")
    path.unlink(missing_ok=True)


Case = tuple[str, str, Callable[[Path, int], None], int, float]


def cases(scale: int) -> list[Case]:
    """Name, file, writer, size, and seconds promised (0: only the memory is)."""
    return [
        ("folder of 200 logs", "none", write_folder, 200 // scale, 1.0),
        ("verl console, 100 MB", "run.log", write_verl, 100 * MB // scale, 10.0),
        ("verl console, 50 MB", "run.log", write_verl, 50 * MB // scale, 0.0),
        ("TensorBoard, 1,000,000 scalars", "events.out.tfevents.1.x", write_scalars,
         1_000_000 // scale, 10.0),
        ("TensorBoard, 500,000 scalars", "events.out.tfevents.1.x", write_scalars,
         500_000 // scale, 0.0),
        ("verl console, 1 GB", "run.log", write_verl, 1024 * MB // scale, 0.0),
        ("JSONL, 1 GB", "metrics.jsonl", write_jsonl, 1024 * MB // scale, 0.0),
        ("JSONL with texts, 1 GB", "metrics.jsonl", write_samples, 1024 * MB // scale, 0.0),
        ("CSV, 1 GB", "metrics.csv", write_csv, 1024 * MB // scale, 0.0),
        ("console without metrics, 1 GB", "server.log", write_noise, 1024 * MB // scale, 0.0),
    ]  # fmt: skip


def main() -> None:
    """Write each log, read it in a fresh process, print what it cost."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, nothing kept")
    given = parser.parse_args()
    results, failed = [], False
    for name, file, write, size, promised in cases(10 if given.quick else 1):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / file
            write(path, size)
            started = time.perf_counter()
            child = subprocess.run(
                [sys.executable, "-c", CHILD, str(path.parent)],
                capture_output=True, text=True, timeout=600,
            )  # fmt: skip
            wall = time.perf_counter() - started
            if child.returncode:
                sys.exit(child.stderr)
            size = sum(p.stat().st_size for p in path.parent.rglob("*") if p.is_file())
            cost = {"case": name, "bytes": size, **json.loads(child.stdout)}
        results.append(cost)
        cost["total_seconds"] = round(cost["seconds"] + cost["import_seconds"], 2)
        broken = (promised and cost["total_seconds"] > promised) or cost["peak_mb"] > 500
        failed = failed or bool(broken)
        print(
            f"{name:<32} {cost['bytes'] / MB:7.0f} MB  {cost['total_seconds']:6.2f} s  "
            f"{cost['peak_mb']:4d} MB peak  {cost['runs']} runs, {cost['rows']:,} rows  "
            f"{wall:5.1f} s wall{'  BROKEN PROMISE' if broken else ''} {cost['reasons'] or ''}",
            flush=True,
        )
    if not given.quick:
        document = {"python": platform.python_version(), "cases": results}
        RESULT.write_text(json.dumps(document, indent=1) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
