"""Notebooks: progress tables and printed rows in the outputs, settings in the code, never run."""

from __future__ import annotations

import ast
import html
import io
import operator
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.runs.logfiles.config_files import Scalar
from advisor.runs.logfiles.limits import limits
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Columns, Logged, Reader, TableBuilder
from advisor.runs.logfiles.parsing import parse_json
from advisor.runs.trainers.generic import NAME as OWN_LOOP
from advisor.runs.trainers.registry import trainer_readers
from advisor.runs.trainers.trl.settings import PLANNED, PrintedSettings
from advisor.text import compiled, read_toml

PATTERNS = compiled(read_toml(__file__, "trackers.toml")["notebook"])

OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def claims(log: LogFile) -> bool:
    """Whether a file is a notebook in whose outputs rewards stand."""
    blocks = log.blocks(limits.most_notebook_bytes, 2000)
    return log.suffix == ".ipynb" and any(map(PATTERNS["reward_bytes"].search, blocks))


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a notebook."""
    (log,) = logs
    text = log.text(give="Save the notebook with its outputs", limit=limits.most_notebook_bytes)
    notebook = parse_json(text, log.path)
    code = NotebookCode()
    runs: list[Logged] = []
    cells = notebook.get("cells") if isinstance(notebook, dict) else ()
    for cell in (each for each in _listed(cells) if isinstance(each, dict)):
        if cell.get("cell_type") != "code":
            continue
        code.feed(_joined(cell.get("source")))
        outputs = [output for output in _listed(cell.get("outputs")) if isinstance(output, dict)]
        runs += _Outputs(outputs, log, columns, code).runs()
    if not runs:
        problem = "no output of the notebook shows a reward for each step"
        advice = "Save it with the outputs of its training cell, or give the trainer_state.json"
        raise InputError(problem, path=log.path, advice=advice)
    runs = _resumed(runs)
    if len(runs) == 1:
        yield runs[0]
    else:
        yield from (replace(run, label=str(place)) for place, run in enumerate(runs, start=1))


def _resumed(runs: Sequence[Logged]) -> list[Logged]:
    """Runs, with the tables of a training that was resumed from a checkpoint as one."""
    found = [*runs[:1]]
    for later in runs[1:]:
        before, after = found[-1].table.column("Step"), later.table.column("Step")
        spacing = float(np.diff(after[:2]).sum())
        goes_on = before.size > 1 and spacing < after[0] <= np.nanmax(before) + spacing
        if goes_on and later.settings == found[-1].settings:
            found[-1] = replace(found[-1], table=found[-1].table.joined(later.table))
        else:
            found.append(later)
    return found


def _joined(text: Any) -> str:
    """Text that a notebook keeps whole or as a list of lines."""
    if isinstance(text, str):
        return text
    return "".join(part for part in _listed(text) if isinstance(part, str))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


@dataclass
class ProgressTable:
    """A table as drawn last, and the length of the progress bar above it."""

    keys: list[str]
    rows: list[list[str]]
    planned_steps: int | None

    def continues(self, other: ProgressTable) -> bool:
        """Whether it is a later state of another table."""
        return (
            self.keys[: len(other.keys)] == other.keys
            and len(other.rows) <= len(self.rows)
            and all(new[: len(old)] == old for old, new in zip(other.rows, self.rows, strict=False))
        )


def find_tables(text: str) -> list[ProgressTable]:
    """Progress tables of one HTML output; other tables in notebooks show data."""
    before, *drawn = PATTERNS["table"].split(text)
    tables = []
    for table in drawn:
        header, *rows = [
            [html.unescape(cell).strip() for cell in PATTERNS["cell"].findall(row)]
            for row in PATTERNS["row"].split(table.partition("</table")[0])[1:]
        ] or [[]]
        planned = PATTERNS["bar"].findall(before)
        rows = [row for row in rows if row]
        if rows and header and header[0].lower() in ("step", "epoch"):
            steps = int(planned[-1]) if planned else None
            if "Validation Loss" in header:
                # Behind a validation loss ``Reward`` is the trainer's ``eval_reward``.
                header[3:] = [
                    f"eval_{name.lower().replace(' ', '_')}" if name[:1].isupper() else name
                    for name in header[3:]
                ]
            tables.append(ProgressTable(header, rows, steps))
        before = table.partition("</table")[2] or before
    return tables


@dataclass
class _Outputs:
    """Outputs of one code cell, and the settings of the code so far."""

    outputs: list[dict[str, Any]]
    log: LogFile
    columns: Columns
    code: NotebookCode

    def runs(self) -> list[Logged]:
        tables: list[ProgressTable] = []
        for output in self.outputs:
            data = output.get("data")
            shown = data.get("text/html") if isinstance(data, dict) else None
            for table in find_tables(_joined(shown)):
                # The table is drawn again with each row, so only its last state counts.
                older = [i for i, kept in enumerate(tables) if table.continues(kept)]
                if older:
                    tables[older[0]] = table
                elif len(tables) < 50 and not any(t.continues(table) for t in tables):
                    tables.append(table)
        rewards = {"reward", "eval_reward", self.columns.keys.get("reward", "reward").lower()}
        found = [t for t in tables if not rewards.isdisjoint(key.lower() for key in t.keys)]
        if not found:
            return self._from_console()
        printed = PrintedSettings()
        for _, line in self._lines():
            printed.feed(line)
        return [self._from_table(table, printed) for table in found]

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Printed lines; other outputs have texts that only stand in for something richer."""
        streams = (o.get("text") for o in self.outputs if o.get("output_type") == "stream")
        return enumerate((line for text in streams for line in _joined(text).split("\n")), start=1)

    def _from_table(self, table: ProgressTable, printed: PrintedSettings) -> Logged:
        builder = TableBuilder(self.log.path)
        builder.seen(key for key in table.keys if key)
        for place, row in enumerate(table.rows, start=1):
            cells = zip(table.keys, row, strict=False)
            empty = ("", "no log", "none")
            builder.add(place, {k: cell for k, cell in cells if k and cell.lower() not in empty})
        planned = table.planned_steps or printed.planned_steps
        # Outputs are copied between notebooks: a banner of another length is of another run.
        is_own = printed.planned_steps in (None, planned)
        used = dict(printed.settings) if is_own else {}
        if planned is not None:
            used[PLANNED] = planned
        # The table has a column for the KL term where it is computed: its coefficient is not 0.
        has_no_kl = "reward_std" in table.keys and "kl" not in table.keys
        return Logged(
            builder.build(),
            framework="TRL",
            settings={**self.code.settings, **used},
            facts={"kl_coefficient": 0.0} if has_no_kl else {},
            planned_steps=planned,
        )

    def _from_console(self) -> list[Logged]:
        """Runs that a console shows, which the cell may have started."""
        raw = "\n".join(line for _, line in self._lines()).encode("utf-8", "replace")
        # Messages call it by the notebook; without an ending all consoles try it.
        path = self.log.path.with_name(self.log.name.replace(".", "_"))
        console = LogFile(path, lambda: io.BytesIO(raw), len(raw))
        # What a cell may have printed
        printed = (
            reader
            for reader in trainer_readers()
            if reader.claim in (Claim.LINE, Claim.DICT, Claim.PAIRS)
        )
        for reader in sorted(printed, key=lambda reader: reader.claim):
            if raw.strip() and reader.claims(console):
                runs = reader.read([console], self.columns)
                code = self.code.settings_of
                return [replace(r, settings={**code(r.framework), **r.settings}) for r in runs]
        return []


class NotebookCode:
    """Takes code cells in their order and keeps what they set, under the names of TRL."""

    def __init__(self) -> None:
        # Empty where the code sets one to two values, or to one that only running it tells.
        self._names: dict[str, tuple[Scalar, ...]] = {}
        # Of classes and their objects, ``.lr`` of ``cfg.lr``; empty where two of them differ.
        self._fields: dict[str, tuple[Scalar, ...]] = {}
        self._classes = {"Adam", "AdamW", "Adam8bit", "AdamW8bit", "PagedAdamW8bit"}
        self._config: dict[str, Scalar] = {}
        self._config_is_grpo = False
        self._others: dict[str, Scalar] = {}

    @property
    def settings(self) -> dict[str, Scalar]:
        """All that is set so far."""
        return {**self._others, **self._config}

    def settings_of(self, framework: str | None) -> dict[str, Scalar]:
        """All that is set so far, of a hand-written loop also under names of its own."""
        known = {name.strip("."): value for name, value in (self._names | self._fields).items()}
        own = {k: v[0] for k, v in known.items() if v and PATTERNS["of_a_loop"].fullmatch(k)}
        own = {name if name == "G" else name.lower(): value for name, value in own.items()}
        return {**(own if framework == OWN_LOOP else {}), **self.settings}

    def feed(self, source: str) -> None:
        """Take one code cell; what is not valid Python is passed over."""
        if len(source) > 100_000:
            return  # data
        tree = _parsed(source)
        if tree is None and not re.match(r"\s*%%(?!capture|time|timeit|prun|python)", source):
            # A block may consist of nothing but magics, so a statement must stand in their place.
            tree = _parsed(PATTERNS["magic"].sub(r"\1pass", source))
        for statement in tree.body if tree is not None else ():
            bound, local = _bound(statement)
            found, targets = self._assigned(statement)
            self._take_fields(statement)
            named = {name: found if name in targets else () for name in bound}
            same = {name: self._names.get(name, named[name]) == named[name] for name in bound}
            after = {**self._names, **{name: named[name] if same[name] else () for name in bound}}
            # What one assigns to counts from the next statement on, and in a block at once.
            self._names = {**(self._names if targets else after), **dict.fromkeys(local, ())}
            for node in ast.walk(statement):
                if isinstance(node, ast.Call):
                    self._call(node)
            self._names = after

    def _assigned(self, statement: ast.stmt) -> tuple[tuple[Scalar, ...], list[str]]:
        """Value of an assignment, and the names that have it."""
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            return (), []
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        return self._value(statement.value), names

    def _take_fields(self, statement: ast.stmt) -> None:
        """Take what classes set, and what their objects are given."""
        given: list[tuple[str, tuple[Scalar, ...]]] = []
        for node in ast.walk(statement):
            if isinstance(node, ast.ClassDef):
                self._classes.add(node.name)
                for line in node.body:
                    found, targets = self._assigned(line)
                    given += [(target, found) for target in targets]
            elif isinstance(node, ast.Call) and _last_name(node.func) in self._classes:
                given += [(one.arg, self._value(one.value)) for one in node.keywords if one.arg]
            elif isinstance(node, ast.Assign):
                fields = (one.attr for one in node.targets if isinstance(one, ast.Attribute))
                given += [(field, self._value(node.value)) for field in fields]
        for name, value in given:
            same = self._fields.get(f".{name}", value) == value
            self._fields[f".{name}"] = value if same else ()

    def _call(self, call: ast.Call) -> None:
        name = _last_name(call.func)
        given = {
            keyword.arg: found[0]
            for keyword in call.keywords
            if keyword.arg is not None and (found := self._value(keyword.value))
        }
        first = next(iter(self._value(call.args[0])), None) if call.args else None
        if PATTERNS["config"].fullmatch(name):
            is_grpo = "GRPO" in name
            # Arguments of another training in the same notebook are not those of this one.
            if is_grpo or not self._config_is_grpo:
                self._config, self._config_is_grpo = given, is_grpo
        elif name == "from_pretrained" and isinstance(call.func, ast.Attribute):
            if PATTERNS["model"].fullmatch(_last_name(call.func.value)):
                named = given.get("model_name", given.get("pretrained_model_name_or_path"))
                self._take("model_name_or_path", named or first, str)
                self._take("full_finetuning", given.get("full_finetuning"), bool)
        elif name in ("get_peft_model", "LoraConfig"):
            self._take("lora_r", given.get("r"), int)
            self._take("lora_alpha", given.get("lora_alpha"), int)
            modules = {one.arg: one.value for one in call.keywords}.get("target_modules")
            if isinstance(modules, ast.List | ast.Constant):
                self._take("lora_target_modules", ast.unparse(modules), str)
        elif name == "GRPOTrainer":
            self._take("model_name_or_path", given.get("model"), str)
        elif name == "load_dataset":
            is_test = re.search("test|val|dev", str(given.get("split")), re.IGNORECASE)
            data = given.get("path") or first
            if not PATTERNS["plain_format"].fullmatch(str(data)) and not is_test:
                self._take("dataset_name", data, str)

    def _take(self, name: str, value: Scalar, kind: type) -> None:
        if isinstance(value, kind) and value != "":
            self._others[name] = value

    def _value(self, node: ast.expr) -> tuple[Scalar, ...]:
        """Value of an expression, if it is one that a setting can have."""
        try:
            value = _evaluate(node, self._names | self._fields)
        except (ValueError, TypeError, ArithmeticError, RecursionError):
            return ()
        if isinstance(value, str):
            return (value,) if len(value) <= limits.most_config_text_characters else ()
        return (value,) if value is None or abs(value) <= 1e15 else ()


def _parsed(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in texts that are not ours
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _bound(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """Names that a statement sets, and names that are others within it."""
    nodes = list(ast.walk(statement))
    local = {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        return shared, names | local
    loops = (node.target for node in nodes if isinstance(node, ast.comprehension))
    local |= {one.id for loop in loops for one in ast.walk(loop) if isinstance(one, ast.Name)}
    return names - local, local


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _evaluate(node: ast.expr, names: Mapping[str, tuple[Scalar, ...]]) -> Any:
    """Value of a literal, of a name of one, or of plain arithmetic with numbers."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
        return node.value
    name = f".{node.attr}" if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    if names.get(name):
        return names[name][0]
    if isinstance(node, ast.UnaryOp | ast.BinOp) and type(node.op) in OPERATORS:
        parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        values = [_evaluate(part, names) for part in parts]
        if all(type(value) in (int, float) and abs(value) <= 1e15 for value in values):
            return OPERATORS[type(node.op)](*values)
    raise ValueError("not a value that can be read without running it")


READER = Reader("notebook with progress tables", claims, read)
