"""Settings in the code cells of a notebook, read off the syntax and never run."""

from __future__ import annotations

import ast
import operator
import re
import warnings
from typing import Any

from advisor.runs.logfiles import limits

Scalar = str | int | float | bool | None

MAGIC = re.compile(
    r"^([ \t]*)(?:[%!?].*|\w[\w, ]*=[ \t]*[%!].*|[\w.]+\?{1,2}[ \t]*)$", re.MULTILINE
)
"""A line that only IPython understands: ``%pip``, ``!ls``, ``files = !ls``, ``help?``."""

CONFIG = re.compile(r"\w*GRPO\w*(?:Config|Arguments|Args)|TrainingArguments")
PLAIN_FORMATS = frozenset({"json", "csv", "parquet", "text", "arrow", "pandas"})
"""First arguments of ``load_dataset`` that name a file format, not a data set."""

OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


class NotebookCode:
    """Takes code cells in their order and keeps what they set, under the names of TRL."""

    def __init__(self) -> None:
        self._names: dict[str, Scalar] = {}
        self._config: dict[str, Scalar] = {}
        self._config_is_grpo = False
        self._others: dict[str, Scalar] = {}

    @property
    def settings(self) -> dict[str, Scalar]:
        """All that is set so far."""
        return {**self._others, **self._config}

    def feed(self, source: str) -> None:
        """Take one code cell; what is not valid Python is passed over."""
        if len(source) > 100_000:
            return  # data
        tree = _parsed(source)
        if tree is None and not re.match(r"\s*%%(?!capture|time|timeit|prun|python)", source):
            # A block may consist of nothing but magics, so a statement must stand in their place.
            tree = _parsed(MAGIC.sub(r"\1pass", source))
        for statement in tree.body if tree is not None else ():
            for node in ast.walk(statement):
                if isinstance(node, ast.Call):
                    self._call(node)
            self._assign(statement)

    def _assign(self, statement: ast.stmt) -> None:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._names.pop(node.id, None)
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            return
        found = self._value(statement.value)
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if found and isinstance(target, ast.Name):
                self._names[target.id] = found[0]

    def _call(self, call: ast.Call) -> None:
        name = _last_name(call.func)
        given = {
            keyword.arg: found[0]
            for keyword in call.keywords
            if keyword.arg is not None and (found := self._value(keyword.value))
        }
        first = next(iter(self._value(call.args[0])), None) if call.args else None
        if CONFIG.fullmatch(name):
            is_grpo = "GRPO" in name
            # Arguments of another training in the same notebook are not those of this one.
            if is_grpo or not self._config_is_grpo:
                self._config, self._config_is_grpo = given, is_grpo
        elif name == "from_pretrained" and isinstance(call.func, ast.Attribute):
            if "Model" in _last_name(call.func.value):
                named = given.get("model_name", given.get("pretrained_model_name_or_path"))
                self._take("model_name_or_path", named or first, str)
                self._take("full_finetuning", given.get("full_finetuning"), bool)
        elif name in ("get_peft_model", "LoraConfig"):
            self._take("lora_r", given.get("r"), int)
        elif name == "GRPOTrainer":
            self._take("model_name_or_path", given.get("model"), str)
        elif name == "load_dataset":
            is_test = re.search("test|val|dev", str(given.get("split")), re.IGNORECASE)
            data = given.get("path") or first
            if data not in PLAIN_FORMATS and not is_test:
                self._take("dataset_name", data, str)

    def _take(self, name: str, value: Scalar, kind: type) -> None:
        if isinstance(value, kind) and value != "":
            self._others[name] = value

    def _value(self, node: ast.expr) -> tuple[Scalar, ...]:
        """Value of an expression, if it is one that a setting can have."""
        try:
            value = _evaluate(node, self._names)
        except (ValueError, TypeError, ArithmeticError, RecursionError):
            return ()
        if isinstance(value, str):
            return (value,) if len(value) <= limits.MOST_CONFIG_TEXT_CHARACTERS else ()
        return (value,) if value is None or abs(value) <= 1e15 else ()


def _parsed(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in texts that are not ours
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _evaluate(node: ast.expr, names: dict[str, Scalar]) -> Any:
    """Value of a literal, of a name of one, or of plain arithmetic with numbers."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.UnaryOp | ast.BinOp) and type(node.op) in OPERATORS:
        parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        values = [_evaluate(part, names) for part in parts]
        if all(type(value) in (int, float) and abs(value) <= 1e15 for value in values):
            return OPERATORS[type(node.op)](*values)
    raise ValueError("not a value that can be read without running it")
