"""Describe a BERT sentence encoder and its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Precision = Literal["int8", "fp32"]


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """An encoder's dimensions from its config.json. Defaults to all-MiniLM-L6-v2."""

    layers: int = 6
    heads: int = 12
    width: int = 384
    inner: int = 1536
    vocabulary: int = 30522
    positions: int = 512
    token_types: int = 2
    epsilon: float = 1e-12
    pooling: Literal["mean", "cls"] = "mean"
    given_words: bool = False
    """True if the caller passes word vectors (`words`) instead of `input_ids`."""

    @classmethod
    def of(cls, config: Mapping[str, Any], pooling: Mapping[str, Any]) -> EncoderShape:
        """Return the shape described by config.json and 1_Pooling/config.json.

        An empty `pooling` means mean pooling. Raises ValueError for unsupported encoders.
        """
        for key, supported in (("model_type", "bert"), ("hidden_act", "gelu"), ("position_embedding_type", "absolute")):
            if config.get(key, supported) != supported:
                raise ValueError(f"{key} is {config[key]!r}; only {supported!r} is supported")
        modes = [key.removeprefix("pooling_mode_") for key, value in pooling.items() if key.startswith("pooling_mode_") and value is True]
        if modes not in ([], ["mean_tokens"], ["cls_token"]):
            raise ValueError(f"pooling {'+'.join(modes)} is not supported; only mean_tokens and cls_token are")
        try:
            return cls(
                layers=int(config["num_hidden_layers"]),
                heads=int(config["num_attention_heads"]),
                width=int(config["hidden_size"]),
                inner=int(config["intermediate_size"]),
                vocabulary=int(config["vocab_size"]),
                positions=int(config["max_position_embeddings"]),
                token_types=int(config.get("type_vocab_size", 2)),
                epsilon=float(config.get("layer_norm_eps", 1e-12)),
                pooling="cls" if modes == ["cls_token"] else "mean",
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"config.json is not complete: {error}") from error


def weight_shapes(shape: EncoderShape) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every external weight."""
    norm = {"weight": (shape.width,), "bias": (shape.width,)}
    words = {} if shape.given_words else {"embeddings.word_embeddings.weight": (shape.vocabulary, shape.width)}
    shapes: dict[str, tuple[int, ...]] = {
        **words,
        "embeddings.position_embeddings.weight": (shape.positions, shape.width),
        "embeddings.token_type_embeddings.weight": (shape.token_types, shape.width),
        **{f"embeddings.LayerNorm.{part}": size for part, size in norm.items()},
    }
    for layer in range(shape.layers):
        at = f"encoder.layer.{layer}."
        for name, rows, columns in (
            ("attention.self.query", shape.width, shape.width),
            ("attention.self.key", shape.width, shape.width),
            ("attention.self.value", shape.width, shape.width),
            ("attention.output.dense", shape.width, shape.width),
            ("intermediate.dense", shape.inner, shape.width),
            ("output.dense", shape.width, shape.inner),
        ):
            shapes[f"{at}{name}.weight"] = (rows, columns)
            shapes[f"{at}{name}.bias"] = (rows,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes.update({f"{at}{name}.{part}": size for part, size in norm.items()})
    return shapes


def is_rounded(name: str, precision: Precision) -> bool:
    """True if this weight is stored as integers at the given precision."""
    return precision == "int8" and name.startswith("encoder.") and name.endswith(".weight") and "LayerNorm" not in name


def scale_name(name: str) -> str:
    """Return the name of a rounded weight's scaling factors (one per output)."""
    return name.removesuffix(".weight") + ".scale"
