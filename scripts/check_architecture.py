"""Check the drawing of the house against the code, from the code itself; nothing is imported.

``python scripts/check_architecture.py`` prints every room with its share of the code, then every
violation, and ends with 1 where there is one.

========  =========================================================================================
rule      what must hold
========  =========================================================================================
rooms     every top-level room stands in the import contract and, in the same order, in the table
          of ARCHITECTURE.md with its purpose; nothing stands there that does not exist
paths     every path and every ``advisor.`` name in backticks in ARCHITECTURE.md exists
arrows    no import circle between files, no import from a lower floor of a higher one, but for
          ``DOORS``; imports within functions and for type checkers count
size      at most 22 entries in ``advisor/``
length    no function with a body of more than 60 lines, unless its docstring has a line
          ``Long because: ...``
parameters
          no function with more than 8 parameters outside ``advisor/cli``, unless its docstring has
          a line ``Many parameters because: ...``
budget    no room has more lines, and the package no more modules, modules with one sibling as
          only importer, imports past a room's face (of tests and studies, too), module constants,
          class names taken twice, rooms and floors, than ``scripts/budget.toml`` allows;
          ``--tighten`` lowers it to what is there, never raises it
docs      what users get from ``advisor`` and ``advisor.theory``, older names left out,
          is documented in numpydoc, parameter by parameter, with what it returns
========  =========================================================================================
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

MOST_ENTRIES = 22
LONGEST_BODY = 60
MOST_PARAMETERS = 8
BUDGET = Path("scripts", "budget.toml")
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
DOORS = {("advisor.model.posterior", "advisor.forecast")}
"""Imports that lead up on purpose, when they are called: `posterior.predict`."""

PUBLIC_ROOMS = ("theory",)
"""Rooms whose faces users import from, besides the package's own."""

LONG = re.compile(r"^\s*Long because: \S", re.MULTILINE)
SECTION = re.compile(r"^([A-Z]\w+)\n-{3,}\n((?:(?!^\w+\n-{3,}$).)*)", re.MULTILINE | re.DOTALL)
RESULTS = {"Returns", "Yields"}
NOTHING = ("None", "NoReturn", "Never")
MANY = re.compile(r"^\s*Many parameters because: \S", re.MULTILINE)

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Violation(NamedTuple):
    """What breaks which rule, and where."""

    rule: str
    where: str
    what: str


class Located(NamedTuple):
    """A function, the file it stands in, and its name with those of its classes."""

    file: Path
    name: str
    node: Function


@dataclass(frozen=True)
class House:
    """A repository: its package, the studies beside it, its import contract and its description."""

    root: Path
    package: str = "advisor"

    @cached_property
    def modules(self) -> dict[str, tuple[Path, ast.Module]]:
        """Every module of the package by its dotted name."""
        found = {}
        for file in sorted((self.root / self.package).rglob("*.py")):
            parts = file.relative_to(self.root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = file, ast.parse(file.read_text(encoding="utf-8"))
        return found

    @cached_property
    def entries(self) -> list[str]:
        """Top-level entries of the package; caches and the marker of types are none."""
        return sorted(
            path.name
            for path in (self.root / self.package).iterdir()
            if path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py")))
        )

    @cached_property
    def rooms(self) -> list[str]:
        """Top-level packages and modules; the package's own faces are none."""
        faces = ("__init__.py", "__main__.py")
        return [entry.removesuffix(".py") for entry in self.entries if entry not in faces]

    @cached_property
    def budget(self) -> dict[str, dict[str, int]]:
        """Most lines of each room, and most of what else is counted; empty without the file."""
        file = self.root / BUDGET
        return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    @cached_property
    def measured(self) -> dict[str, dict[str, int]]:
        """What the budget bounds, as it is now."""
        lines = {room: self.lines[room] for room in sorted(self.rooms)}
        return {"package": dict(self._counts()), "lines": lines}

    def _counts(self) -> Iterator[tuple[str, int]]:
        yield "lines", sum(self.lines.values()) - self.lines["case_studies"]
        yield "modules", len(self.modules)
        yield "only_imported_by_one_sibling", len(self.only_for_a_sibling)
        yield "imports_past_a_face", len(self.past_faces)
        trees = [tree for _, tree in self.modules.values()]
        yield "constants", sum(len(list(_constants(tree))) for tree in trees)
        yield "rooms", len(self.rooms)
        yield "floors", len(self.floors)
        yield "conditions_on_sentences", len(self.read_back)
        nodes = (node for tree in trees for node in ast.walk(tree))
        classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
        yield "class_names_taken_twice", len(classes) - len(set(classes))
        yield "imports_of_tests_past_a_face", self._past_faces_of("tests")
        yield "imports_of_studies_past_a_face", self._past_faces_of("case_studies")

    def _past_faces_of(self, folder: str) -> int:
        """Import statements of a folder beside the package that name a module inside a room."""
        trees = (
            ast.parse(f.read_text(encoding="utf-8")) for f in (self.root / folder).rglob("*.py")
        )
        inside = re.compile(rf"{self.package}\.\w+\.")
        named = (getattr(node, "module", "") or "" for tree in trees for node in ast.walk(tree))
        return sum(inside.match(module) is not None for module in named)

    @cached_property
    def read_back(self) -> list[tuple[str, int]]:
        """Modules and lines where the program decides by reading a sentence."""
        trees = {name: tree for name, (_, tree) in self.modules.items()}
        named = {name for tree in trees.values() for name in _sentences(tree)}
        return [(name, line) for name, tree in trees.items() for line in _read_back(tree, named)]

    @cached_property
    def past_faces(self) -> list[tuple[str, str]]:
        """Imports of a module inside another room: of each module, what it names there."""
        faces = {f"{self.package}.{room}" for room in self.rooms}
        # A module that a face lists is one name of it.
        faces |= {
            f"{face}.{name}"
            for face in faces & self.modules.keys()
            for name in exported(self.face(face))
        }
        return [
            (name, target)
            for name, targets in self.arrows.items()
            for target in sorted(targets - faces - {self.package})
            if self.room(name) != self.room(target)
        ]

    @cached_property
    def only_for_a_sibling(self) -> list[str]:
        """Modules that one other module imports, which stands in the same room."""
        importers: dict[str, set[str]] = {name: set() for name in self.modules}
        for name, targets in self.arrows.items():
            for target in targets:
                importers[target].add(name)
        return [
            name
            for name, by in importers.items()
            # A face that passes names on is no reader of its own.
            if len(by) == 1 and next(iter(by)).count(".") > 1
            if self.room(next(iter(by))) == self.room(name)
        ]

    @cached_property
    def floors(self) -> list[list[str]]:
        """Rooms of the import contract, floor by floor from the top."""
        with (self.root / "pyproject.toml").open("rb") as file:
            contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
        whole = [self.package]
        (layers,) = [one["layers"] for one in contracts if one.get("containers") == whole]
        return [[room.strip() for room in re.split(r"[|:]", floor)] for floor in layers]

    @cached_property
    def described(self) -> list[tuple[str, str]]:
        """Rooms of the table of ARCHITECTURE.md with their purposes, in its order."""
        row = re.compile(rf"^\| *`{self.package}/(\w+?)(?:\.py|/)?` *\|([^|]*)\|", re.MULTILINE)
        return [(room, purpose.strip()) for room, purpose in row.findall(self.text)]

    @cached_property
    def text(self) -> str:
        """ARCHITECTURE.md."""
        return (self.root / "ARCHITECTURE.md").read_text(encoding="utf-8")

    @cached_property
    def studies(self) -> dict[str, tuple[Path, ast.Module]]:
        """Modules of the case studies, by their paths."""
        return {
            str(file.relative_to(self.root)): (file, ast.parse(file.read_text(encoding="utf-8")))
            for file in sorted((self.root / "case_studies").rglob("*.py"))
        }

    @cached_property
    def lines(self) -> Counter[str]:
        """Lines of each room, of the package's face (empty name) and of ``case_studies``."""
        found: Counter[str] = Counter()
        for name, (file, _) in self.modules.items():
            found[self.room(name)] += len(file.read_text(encoding="utf-8").splitlines())
        for file, _ in self.studies.values():
            found["case_studies"] += len(file.read_text(encoding="utf-8").splitlines())
        return found

    @cached_property
    def functions(self) -> list[Located]:
        """Every function and method of the package and of the studies."""
        found = []
        for file, tree in [*self.modules.values(), *self.studies.values()]:
            place = file.relative_to(self.root)
            found += [Located(place, name, node) for name, node in _functions(tree)]
        return found

    @cached_property
    def arrows(self) -> dict[str, set[str]]:
        """Modules that each module imports, anywhere in its text."""
        return {
            name: {to for to in self._imported(name, file, tree) if (name, to) not in DOORS}
            - {name}
            for name, (file, tree) in self.modules.items()
        }

    def face(self, package: str) -> ast.Module:
        """What a package gives away: its stub where it imports lazily, else its ``__init__``."""
        file, tree = self.modules[package]
        stub = file.with_suffix(".pyi")
        return ast.parse(stub.read_text(encoding="utf-8")) if stub.is_file() else tree

    @cached_property
    def older(self) -> set[str]:
        """Names that the package's ``_OLDER`` keeps within reach and no page of the docs lists."""
        tree = self.modules[self.package][1]
        named = [node for node in tree.body if "_OLDER" in ast.unparse(node).partition(" = ")[0]]
        texts = (one.value for node in named for one in ast.walk(node) if hasattr(one, "value"))
        return {word for text in texts if isinstance(text, str) for word in text.split()}

    def room(self, module: str) -> str:
        """Room of a module; empty for the package's face."""
        return module.split(".")[1] if "." in module else ""

    def _imported(self, name: str, file: Path, tree: ast.Module) -> Iterator[str]:
        """Modules of the package that one of them names in imports."""
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*(parents if node.level else []), *filter(None, [node.module])])
                targets = [f"{base}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Call) and _is_import_call(node):
                targets = [str(node.args[0].value)]  # type: ignore[attr-defined]
            else:
                continue
            for target in targets:
                # A name of a module, or a name within one.
                for known in (target, target.rpartition(".")[0]):
                    if known in self.modules:
                        yield known
                        break


def _is_import_call(node: ast.Call) -> bool:
    """Whether this is ``import_module("...")``."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    constant = node.args[0] if node.args else None
    return (
        name == "import_module"
        and isinstance(constant, ast.Constant)
        and isinstance(constant.value, str)
    )


def _functions(tree: ast.AST, outer: str = "") -> Iterator[tuple[str, Function]]:
    """All functions below a node, with dotted names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield f"{outer}{node.name}", node
            yield from _functions(node, f"{outer}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{outer}{node.name}.")
        else:
            yield from _functions(node, outer)


def _constants(tree: ast.Module) -> Iterator[str]:
    """Names in capitals that a module assigns at its top."""
    for node in tree.body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            for name in names:
                if isinstance(name, ast.Name) and CONSTANT.fullmatch(name.id):
                    yield name.id


PROSE = re.compile(r"\w+,? \w+ [\w(.]|^, $")
"""What a text of three words has, or of a list."""

READS = {"startswith", "endswith", "match", "search", "fullmatch", "findall"}


def _is_prose(node: ast.expr, named: set[str]) -> bool:
    """Whether an expression is a sentence, or the name or the tuple of some."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(PROSE.search(node.value))
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_is_prose(one, named) for one in node.elts)
    name = getattr(node, "id", getattr(node, "attr", ""))
    return isinstance(node, ast.Name | ast.Attribute) and name in named


def _sentences(tree: ast.Module) -> Iterator[str]:
    """Names in capitals to which a module gives a sentence."""
    for node in tree.body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        value = getattr(node, "value", None)
        if value is not None and not isinstance(node, ast.Expr) and _is_prose(value, set()):
            yield from (one.id for one in targets if isinstance(one, ast.Name))


def _read_back(tree: ast.Module, named: set[str]) -> Iterator[int]:
    """Lines that compare something with a sentence, or search one in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in READS:
            asked = [*node.args, node.func.value]  # type: ignore[attr-defined]
        else:
            continue
        if any(_is_prose(one, named) for one in asked):
            yield node.lineno


def check_budget(house: House) -> Iterator[Violation]:
    """Compare what is counted with what is allowed; a room without a budget has none."""
    for part, measured in house.measured.items():
        allowed = house.budget.get(part, measured)
        for name, now in measured.items():
            most = allowed.get(name, 0)
            if now > most:
                what = f"{now:,} of {part if part == 'lines' else name}, above {most:,}"
                yield Violation("budget", name if part == "lines" else house.package, what)


def tightened(house: House) -> str:
    """Text of the budget, lowered to what is there; what is above it stays as it is."""
    rows = ["# Most of each: lowered by `python scripts/check_architecture.py --tighten`."]
    for part, measured in house.measured.items():
        allowed = house.budget.get(part, measured)
        rows += ["", f"[{part}]"]
        rows += [f"{name} = {min(now, allowed.get(name, now))}" for name, now in measured.items()]
    # Counted by scripts/check_words.py.
    if words := house.budget.get("words"):
        rows += ["", "[words]", *(f"{name} = {most}" for name, most in words.items())]
    return "\n".join(rows) + "\n"


def check_rooms(house: House) -> Iterator[Violation]:
    """Compare the rooms with the contract and with the table that describes them."""
    layered = [room for floor in house.floors for room in floor]
    told = [room for room, _ in house.described]
    for title, listed in (("import contract", layered), ("table of ARCHITECTURE.md", told)):
        for room in sorted(set(house.rooms) - set(listed)):
            yield Violation("rooms", room, f"is missing in the {title}")
        for room in sorted(set(listed) - set(house.rooms)):
            yield Violation("rooms", room, f"stands in the {title} and does not exist")
        for room, count in Counter(listed).items():
            if count > 1:
                yield Violation("rooms", room, f"stands {count} times in the {title}")
    for room, purpose in house.described:
        if len(purpose.split()) < 3:
            yield Violation("rooms", room, "has no purpose in ARCHITECTURE.md")
    if set(told) == set(layered) and told != layered:
        yield Violation("rooms", "ARCHITECTURE.md", "its table has another order than the contract")


def check_paths(house: House) -> Iterator[Violation]:
    """Look for every path and every dotted name that ARCHITECTURE.md mentions."""
    for quoted in sorted(set(re.findall(r"`([^`\n]+)`", house.text))):
        if re.fullmatch(r"\.?[A-Za-z][\w-]*(/[\w.*-]+)+/?", quoted):
            if not any(house.root.glob(quoted.rstrip("/"))):
                yield Violation("paths", "ARCHITECTURE.md", f"'{quoted}' does not exist")
        elif re.fullmatch(rf"{house.package}(\.\w+)+(\(.*\))?", quoted):
            name = quoted.partition("(")[0]
            if not _is_defined(house, name):
                yield Violation("paths", "ARCHITECTURE.md", f"'{name}' is defined nowhere")


def _is_defined(house: House, name: str) -> bool:
    """Whether a dotted name is a module, or defined or exported at the top of one."""
    module, _, last = name.rpartition(".")
    if name in house.modules:
        return True
    if module not in house.modules:
        return False
    tree = house.modules[module][1]
    own = {node.name for node in tree.body if isinstance(node, Function | ast.ClassDef)}
    own |= {
        target.id
        for node in tree.body
        for target in getattr(node, "targets", [getattr(node, "target", None)])
        if isinstance(target, ast.Name)
    }
    return last in own | exported(house.face(module))


def check_arrows(house: House) -> Iterator[Violation]:
    """Find circles between files, and imports of a higher floor."""
    for circle in circles(house.arrows):
        yield Violation("arrows", circle[0], "is in a circle: " + " -> ".join(circle))
    level = {room: place for place, floor in enumerate(house.floors) for room in floor}
    for name, targets in house.arrows.items():
        here = house.room(name)
        for target in sorted(targets):
            there = house.room(target)
            if here == there or here not in level or there not in level:
                continue
            if level[there] <= level[here]:
                kind = "up" if level[there] < level[here] else "across"
                yield Violation("arrows", name, f"imports {kind}: {target}")


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """One shortest closed path for each knot of modules that reach each other."""
    reach = {name: _reached(name, arrows) for name in arrows}
    found, known = [], set()
    for name in sorted(arrows):
        knot = frozenset(other for other in reach[name] if name in reach.get(other, ()))
        if name in reach[name] and knot not in known:
            known.add(knot)
            found.append(_shortest_circle(name, arrows))
    return found


def _reached(start: str, arrows: dict[str, set[str]]) -> set[str]:
    """Modules that a module reaches, itself only through a circle."""
    seen: set[str] = set()
    front = list(arrows.get(start, ()))
    while front:
        name = front.pop()
        if name not in seen:
            seen.add(name)
            front.extend(arrows.get(name, ()))
    return seen


def _shortest_circle(start: str, arrows: dict[str, set[str]]) -> list[str]:
    """Shortest path from a module back to itself."""
    paths = [[start]]
    seen = set()
    for path in paths:  # grows while it is walked
        for name in sorted(arrows.get(path[-1], ())):
            if name == start:
                return [*path, start]
            if name not in seen:
                seen.add(name)
                paths.append([*path, name])
    raise ValueError(f"{start} is in no circle")


def check_size(house: House) -> Iterator[Violation]:
    """Count the entries of the package."""
    if len(house.entries) > MOST_ENTRIES:
        count = len(house.entries)
        yield Violation("size", house.package, f"{count} top-level entries, above {MOST_ENTRIES}")


def check_length(house: House) -> Iterator[Violation]:
    """Measure bodies: all lines below the docstring."""
    for file, name, node in house.functions:
        length = body_length(node)
        if length > LONGEST_BODY and not LONG.search(ast.get_docstring(node) or ""):
            what = f"{name} has a body of {length} lines, above {LONGEST_BODY}"
            yield Violation("length", f"{file}:{node.lineno}", what)


def body_length(node: Function) -> int:
    """Lines from the first statement after the docstring to the end."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return 0 if not body else int(body[-1].end_lineno or 0) - body[0].lineno + 1


def check_parameters(house: House) -> Iterator[Violation]:
    """Count parameters outside the command line."""
    for file, name, node in house.functions:
        count = len(parameters(node))
        if Path(house.package, "cli") in file.parents or count <= MOST_PARAMETERS:
            continue
        if not MANY.search(ast.get_docstring(node) or ""):
            what = f"{name} has {count} parameters, above {MOST_PARAMETERS}"
            yield Violation("parameters", f"{file}:{node.lineno}", what)


def parameters(node: Function) -> list[str]:
    """Names of parameters without ``self`` and ``cls``."""
    given = node.args
    names = [one.arg for one in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
    names += [one.arg for one in (given.vararg, given.kwarg) if one is not None]
    return [name for name in names if name not in ("self", "cls")]


def exported(tree: ast.Module) -> set[str]:
    """Names in ``__all__`` of a module; of a stub those that it imports under their own names."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            return {
                one.value
                for one in ast.walk(node.value)
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            }
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {one.name for node in imports for one in node.names if one.name == one.asname}


def check_docs(house: House) -> Iterator[Violation]:
    """Read the docstrings of functions, classes and methods that users are given."""
    for face in (house.package, *(f"{house.package}.{room}" for room in PUBLIC_ROOMS)):
        given = exported(house.face(face)) - house.older if face in house.modules else set()
        for name in sorted(given):
            found = home(house, face, name)
            if found is None:
                continue
            file, node = found
            place = f"{file.relative_to(house.root)}:{node.lineno}"
            for what in undocumented(node):
                yield Violation("docs", place, f"{node.name} {what}")


def home(house: House, module: str, name: str) -> tuple[Path, Function | ast.ClassDef] | None:
    """Definition of a name that a module defines or passes on; None where it is a value."""
    tree = house.face(module)
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef) and node.name == name and node in tree.body:
            return house.modules[module][0], node
        if isinstance(node, ast.ImportFrom) and node.module in house.modules:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return home(house, str(node.module), alias.name)
    return None


def undocumented(node: Function | ast.ClassDef) -> Iterator[str]:
    """Say what a docstring lacks as numpydoc; methods need a docstring only."""
    text = ast.get_docstring(node)
    if text is None:
        yield "has no docstring"
        return
    if isinstance(node, ast.ClassDef):
        for method in node.body:
            is_public = isinstance(method, Function) and not method.name.startswith("_")
            if is_public and ast.get_docstring(method) is None:  # type: ignore[arg-type]
                yield f".{method.name} has no docstring"  # type: ignore[attr-defined]
        return
    sections = dict(SECTION.findall(text))
    documented = re.findall(r"^([\w*][\w*, ]*?)(?: *:.*)?$", sections.get("Parameters", ""), re.M)
    names = {name.strip(" *") for line in documented for name in line.split(",")}
    for parameter in parameters(node):
        if parameter not in names:
            yield f"does not document its parameter '{parameter}'"
    returns = node.returns is not None and ast.unparse(node.returns) not in NOTHING
    if returns and parameters(node) and not sections.keys() & RESULTS:
        yield "does not document what it returns"


CHECKS = (
    check_rooms,
    check_paths,
    check_arrows,
    check_size,
    check_budget,
    check_length,
    check_parameters,
    check_docs,
)


def violations(house: House) -> list[Violation]:
    """Everything that breaks a rule."""
    return [found for check in CHECKS for found in check(house)]


def drawing(house: House) -> str:
    """Every room by floor, with its files, lines and share of the code."""
    total = sum(house.lines.values())
    files = Counter(house.room(name) for name in house.modules)
    rows = [f"{'floor':>5}  {'room':<14} {'files':>5} {'lines':>7} {'share':>6}"]
    for place, floor in enumerate(house.floors):
        for room in floor:
            lines = house.lines[room]
            height = len(house.floors) - place
            rows.append(
                f"{height:>5}  {room:<14} {files[room]:>5} {lines:>7,} {lines / total:6.1%}"
            )
    own = total - house.lines["case_studies"]
    rows.append(
        f"{house.package}: {len(house.modules)} files, {own:,} lines; {len(house.rooms)} rooms,"
    )
    rows.append(f"{len(house.entries)} top-level entries; case_studies: {total - own:,} lines")
    return "\n".join(rows)


def main(arguments: list[str] | None = None) -> int:
    """Print the drawing and the violations; 1 where there is one."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--tighten", action="store_true", help="lower the budget to what is there")
    given = parser.parse_args(arguments)
    house = House(given.root)
    if given.tighten:
        (house.root / BUDGET).write_text(tightened(house), encoding="utf-8")
        house = House(given.root)
    print(drawing(house))
    found = violations(house)
    for one in found:
        print(f"{one.rule:<11} {one.where}: {one.what}")
    counts = Counter(one.rule for one in found)
    told = ", ".join(f"{count} of {rule}" for rule, count in counts.items())
    print(f"{len(found)} violations: {told}" if found else "No violations.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
