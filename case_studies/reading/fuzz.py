"""Throw damaged logs of every format at the readers: a typed error or a result, nothing else.

    python case_studies/reading/fuzz.py --seconds 300                   # random damage
    python case_studies/reading/fuzz.py --seconds 300 --engine atheris  # coverage-guided

Samples are those of the conformance tests. A finding is kept under --findings, with the name that
the reader saw, and the command exits with 1.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import io
import json
import random
import resource
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULT = HERE / "fuzz.json"
SLOW_SECONDS = 5.0
TOKENS = (
    b"\0", b"\xff", b"\xff\xfe", b"nan", b"inf", b"-", b"1e999", b"9" * 5000, b"{" * 300,
    b"[" * 4000, b'"', b"'", b"\r", b"\n", b"\n" * 50, b",", b":", b" - ", b"\\u0000", b"null",
    b"true", b"1e8", b"-1", b"0", b"step", b"reward", b"{}", b"[]", b"\x1b[36m", b"\xf0\x9f\x98",
)  # fmt: skip


def samples(folder: Path) -> list[tuple[str, list[tuple[str, bytes]], str]]:
    """Sample logs of every reader: (reader, files as (relative name, bytes), file to damage)."""
    from advisor.testing.reader_conformance import REWARDS, ReaderConformance

    found = []
    for path in sorted((ROOT / "tests/logs/readers").glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        for name, kind in vars(module).items():
            if not (isinstance(kind, type) and issubclass(kind, ReaderConformance)):
                continue
            if kind is ReaderConformance:
                continue
            place = folder / f"{path.stem}-{name}"
            place.mkdir()
            log = kind().write_sample(place, REWARDS[:12])
            files = [
                (p.relative_to(place).as_posix(), p.read_bytes())
                for p in sorted(place.rglob("*"))
                if p.is_file()
            ]
            found.append((kind.reader.name, files, log.relative_to(place).as_posix()))
    return found


def damage(whole: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """Bytes with one to six injuries."""
    data = bytearray(whole)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(data) + 1)
        size = chance.choice((1, 2, 5, 20, 100, 1000))
        match chance.randrange(8):
            case 0 if at < len(data):
                data[at] = chance.randrange(256)
            case 1 if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
            case 2:
                del data[at : at + size]
            case 3:
                data[at:at] = data[at : at + size] * chance.choice((1, 2, 30))
            case 4:
                data[at:at] = chance.choice(TOKENS)
            case 5:
                other = chance.choice(others)
                start = chance.randrange(len(other) + 1)
                data[at : at + size] = other[start : start + size]
            case 6:
                del data[at:]
            case _:
                lines = bytes(data).split(b"\n")
                chance.shuffle(lines)
                data = bytearray(b"\n".join(lines))
    return bytes(data[: 1 << 20])


def pack(name: str, data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Now and then a log stands compressed, or in an archive that plays tricks."""
    roll = chance.randrange(20)
    if roll == 0:
        return f"{name}.gz", damage(gzip.compress(data), chance, [data])
    if roll == 1:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr(chance.choice(("../../", "/", "", "a/../", "C:\\")) + name, data)
        whole = stream.getvalue()
        return "logs.zip", whole if chance.randrange(2) else damage(whole, chance, [data])
    return name, data


def try_once(files: list[tuple[str, bytes]], folder: Path) -> str:
    """Inspect a folder with these files; the outcome in a word."""
    from advisor.logs import as_json, inspect

    for name, data in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    found = inspect([folder])
    json.loads(as_json(found))
    return "runs" if found.runs else "refused" if found.unread else "nothing"


def run(seconds: float, seed: int, findings: Path) -> dict[str, object]:
    """Fuzz with random damage for some time."""
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    executions: Counter[str] = Counter()
    found: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        known = samples(Path(place))
        everything = [data for _, files, _ in known for _, data in files]
        started = time.monotonic()
        slowest = 0.0
        while time.monotonic() - started < seconds:
            reader, files, target = chance.choice(known)
            damaged = []
            for name, data in files:
                if name == target or chance.randrange(4) == 0:
                    damaged.append(pack(name, damage(data, chance, everything), chance))
                else:
                    damaged.append((name, data))
            executions[reader] += 1
            begun = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                try:
                    outcome = try_once(damaged, Path(folder))
                except Exception as error:
                    outcome = f"{type(error).__name__}: {error}"[:200]
            took = time.monotonic() - begun
            slowest = max(slowest, took)
            if outcome not in ("runs", "refused", "nothing") or took > SLOW_SECONDS:
                outcomes["findings"] += 1
                found.append(f"{reader}: {outcome} ({took:.1f} s)")
                for name, data in damaged:
                    kept = findings / str(len(found)) / name
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    kept.write_bytes(data)
            else:
                outcomes[outcome] += 1
    return {
        "engine": "random damage",
        "seed": seed,
        "seconds": seconds,
        "executions": dict(sorted(executions.items())),
        "total": sum(executions.values()),
        "outcomes": dict(outcomes),
        "slowest_seconds": round(slowest, 2),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "findings": found[:8],
    }


def run_atheris(seconds: float, seed: int) -> None:
    """Fuzz with coverage guidance; ends the process."""
    import atheris

    with atheris.instrument_imports(include=["advisor.logs"]):
        pass
    place = tempfile.mkdtemp()
    known = samples(Path(place))
    names = [(files, target) for _, files, target in known]
    corpus = Path(tempfile.mkdtemp())
    for number, (files, target) in enumerate(names):
        (corpus / str(number)).write_bytes(bytes([number]) + dict(files)[target])

    def once(data: bytes) -> None:
        if not data:
            return
        files, target = names[data[0] % len(names)]
        with tempfile.TemporaryDirectory() as folder:
            damaged = [(name, data[1:] if name == target else whole) for name, whole in files]
            try_once(damaged, Path(folder))

    options = [f"-max_total_time={seconds:.0f}", f"-seed={seed}", "-max_len=65536", "-timeout=10"]
    options.append("-rss_limit_mb=1500")
    atheris.Setup([sys.argv[0], *options, str(corpus)], once)
    atheris.Fuzz()


def main() -> None:
    """Parse the command line and fuzz."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=("random", "atheris"), default="random")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--write", action="store_true", help=f"keep the result as {RESULT.name}")
    given = parser.parse_args()
    if given.engine == "atheris":
        run_atheris(given.seconds, given.seed)
        return
    result = run(given.seconds, given.seed, given.findings)
    print(json.dumps(result, indent=1))
    if given.write:
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(1 if result["findings"] else 0)


if __name__ == "__main__":
    main()
