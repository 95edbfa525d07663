"""Damage guided by coverage, for the readers of logs: needs `pip install atheris`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

from formats import logs, read_log  # noqa: E402


def run(seconds: float, seed: int) -> None:
    """Fuzz with coverage guidance; ends the process."""
    import atheris

    with atheris.instrument_imports(include=["advisor.runs.logs"]):
        pass
    with tempfile.TemporaryDirectory() as place:
        known = logs(Path(place))
    corpus = Path(tempfile.mkdtemp())
    for number, one in enumerate(known):
        (corpus / str(number)).write_bytes(bytes([number]) + one.files[one.targets[0]])

    def once(data: bytes) -> None:
        if not data:
            return
        one = known[data[0] % len(known)]
        with tempfile.TemporaryDirectory() as folder:
            for name, whole in one.files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data[1:] if name == one.targets[0] else whole)
            read_log(Path(folder))

    options = [f"-max_total_time={seconds:.0f}", f"-seed={seed}", "-max_len=65536", "-timeout=10"]
    options.append("-rss_limit_mb=1500")
    atheris.Setup([sys.argv[0], *options, str(corpus)], once)
    atheris.Fuzz()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    run(given.seconds, given.seed)
