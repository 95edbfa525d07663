"""Plant changes of one number or one formula, and see that a test of the default lane fails.

    python scripts/planted.py [FILE ...] [--write]

Each change of ``scripts/planted.toml`` is made in a copy of the package, in which the test that is
named next to it must fail; in an unchanged copy all of them must pass. Prints one line a change
and ends with 1 where a test sees nothing. FILEs restrict it to changes of these files; ``--write``
writes the table of docs/evidence/planted.md, and runs nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CHANGES = ROOT / "scripts" / "planted.toml"
PAGE = ROOT / "docs" / "evidence" / "planted.md"
COPIED = ("advisor", "priors")
FAILED = 1
"""What pytest ends with where tests ran and one of them failed."""


class Change(NamedTuple):
    """One fault that somebody might make, and the test that sees it."""

    fault: str
    file: str
    old: str
    new: str
    seen_by: str

    def planted(self, text: str) -> str:
        """Text of its file with the change; refused where ``old`` is not there once."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.file}: found {count} times, not once: {self.old}")
        return text.replace(self.old, self.new)


def changes(files: Sequence[str] = ()) -> list[Change]:
    """Every change, or those of some files."""
    rows = tomllib.loads(CHANGES.read_text(encoding="utf-8"))["change"]
    found = [Change(**row) for row in rows]
    return [one for one in found if not files or one.file in files]


@contextmanager
def copied(change: Change | None) -> Iterator[Path]:
    """Repository whose package is a copy, with a change or as it is."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for one in ROOT.iterdir():
            if one.name in COPIED:
                shutil.copytree(one, root / one.name, ignore=shutil.ignore_patterns("__pycache__"))
            elif one.name != ".git":
                (root / one.name).symlink_to(one)
        if change is not None:
            file = root / change.file
            file.write_text(change.planted(file.read_text(encoding="utf-8")), encoding="utf-8")
        yield root


def ended(root: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Exit code of some tests in a repository, and what they printed."""
    options = ("-x", "-q", "-n0", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def table(rows: Sequence[Change]) -> str:
    """Page with every change and the test that sees it."""
    lines = [
        "# Planted changes\n",
        "Each row changes one number or one formula of the package. The named test fails with the "
        "change and passes without it.",
        "`python scripts/planted.py` plants them again.\n",
        "| file | change | test |",
        "|---|---|---|",
    ]
    for one in rows:
        file, _, name = one.seen_by.partition("::")
        place = one.file.removeprefix("advisor/")
        lines.append(f"| `{place}` | {one.fault} | `{file.removeprefix('tests/')}`: `{name}` |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Plant the changes; 1 where one is not seen, or a test fails without any."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--write", action="store_true", help="write the table and run nothing")
    given = parser.parse_args(arguments)
    rows = changes(given.files)
    if given.write:
        PAGE.write_text(table(rows), encoding="utf-8")
        return 0
    with copied(None) as root:
        code, printed = ended(root, sorted({one.seen_by for one in rows}))
    if code:
        print(f"A test fails without any change:\n{printed}")
        return 1
    unseen = 0
    for one in rows:
        with copied(one) as root:
            code, printed = ended(root, [one.seen_by])
        unseen += code != FAILED
        print(f"{'seen' if code == FAILED else 'NOT SEEN':<9} {one.file}: {one.fault}", flush=True)
        if code not in (0, FAILED):
            print(printed)
    print(f"{len(rows) - unseen} of {len(rows)} changes are seen")
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main())
