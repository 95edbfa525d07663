"""Settings in the code cells of a notebook, read off the syntax and never run."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from advisor.runs.logfiles import limits

Scalar = str | int | float | bool | None

OTHER_LANGUAGE = re.compile(r"\s*%%(?!capture|time|timeit|prun|python)")
MAGIC = re.compile(
    r"^([ \t]*)(?:[%!?].*|\w[\w, ]*=[ \t]*[%!].*|[\w.]+\?{1,2}[ \t]*)$", re.MULTILINE
)
"""A line that only IPython understands: ``%pip``, ``!ls``, ``files = !ls``, ``help?``."""

CONFIG = re.compile(r"\w*GRPO\w*(?:Config|Arguments|Args)|TrainingArguments")
MODEL_CLASS = re.compile(r"\w*Model\w*")
PLAIN_FORMATS = frozenset({"json", "csv", "parquet", "text", "arrow", "pandas"})
"""First arguments of ``load_dataset`` that name a file format, not a data set."""

NOT_FOR_TRAINING = re.compile(r"test|val|dev", re.IGNORECASE)


class NotebookCode:
    """Takes code cells in their order and keeps what they set."""

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
        if len(source) > 100_000 or OTHER_LANGUAGE.match(source):
            return
        tree = _parsed(source)
        if tree is None:
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
        targets: Sequence[ast.expr] = ()
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = (statement.target,)
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        found = None if value is None else _evaluate(value, self._names)
        for target in targets:
            if found is not None and isinstance(target, ast.Name):
                self._names[target.id] = found[0]

    def _call(self, call: ast.Call) -> None:
        name = _last_name(call.func)
        given = dict(self._keywords(call))
        if CONFIG.fullmatch(name):
            is_grpo = "GRPO" in name
            # Arguments of another training in the same notebook are not those of this one.
            if is_grpo or not self._config_is_grpo:
                self._config, self._config_is_grpo = given, is_grpo
        elif name == "from_pretrained" and isinstance(call.func, ast.Attribute):
            if MODEL_CLASS.fullmatch(_last_name(call.func.value)):
                self._model(call, given)
        elif name in ("get_peft_model", "LoraConfig"):
            self._take("lora_r", given.get("r"), int)
        elif name == "GRPOTrainer":
            self._take("model_name_or_path", given.get("model"), str)
        elif name == "load_dataset":
            self._dataset(call, given)

    def _model(self, call: ast.Call, given: dict[str, Scalar]) -> None:
        named = given.get("model_name", given.get("pretrained_model_name_or_path"))
        self._take("model_name_or_path", named or self._first(call), str)
        self._take("full_finetuning", given.get("full_finetuning"), bool)

    def _dataset(self, call: ast.Call, given: dict[str, Scalar]) -> None:
        name, split = given.get("path") or self._first(call), given.get("split")
        if name in PLAIN_FORMATS or (isinstance(split, str) and NOT_FOR_TRAINING.search(split)):
            return
        self._take("dataset_name", name, str)

    def _take(self, name: str, value: Scalar, kind: type) -> None:
        if isinstance(value, kind) and value != "":
            self._others[name] = value

    def _first(self, call: ast.Call) -> Scalar:
        found = _evaluate(call.args[0], self._names) if call.args else None
        return None if found is None else found[0]

    def _keywords(self, call: ast.Call) -> Iterator[tuple[str, Scalar]]:
        for keyword in call.keywords:
            found = _evaluate(keyword.value, self._names)
            if keyword.arg is not None and found is not None:
                yield keyword.arg, found[0]


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


def _evaluate(node: ast.expr, names: dict[str, Scalar], depth: int = 0) -> tuple[Scalar] | None:
    """Value of a literal, of a name of one, or of plain arithmetic; None of anything else."""
    if depth > 20:
        return None
    if isinstance(node, ast.Constant):
        value = node.value
        if value is None or isinstance(value, str | int | float):
            return (value,) if _is_small(value) else None
        return None
    if isinstance(node, ast.Name):
        return (names[node.id],) if node.id in names else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _number(node.operand, names, depth)
        if inner is None:
            return None
        return (-inner if isinstance(node.op, ast.USub) else inner,)
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, names, depth), _number(node.right, names, depth)
        if left is None or right is None:
            return None
        result = _compute(node.op, left, right)
        return (result,) if result is not None and _is_small(result) else None
    return None


def _number(node: ast.expr, names: dict[str, Scalar], depth: int) -> int | float | None:
    found = _evaluate(node, names, depth + 1)
    value = None if found is None else found[0]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _compute(operator: ast.operator, left: int | float, right: int | float) -> int | float | None:
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv() if right:
            return left // right
        case ast.Div() if right:
            return left / right
    return None


def _is_small(value: Any) -> bool:
    """Whether a number can be the value of a setting, and no text is endless."""
    if isinstance(value, str):
        return len(value) <= limits.MOST_CONFIG_TEXT_CHARACTERS
    return value is None or abs(value) <= 1e15
