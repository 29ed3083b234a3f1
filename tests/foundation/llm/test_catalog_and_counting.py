"""Test context windows, dimensions and token counts."""

from __future__ import annotations

import random
import runpy
from pathlib import Path

import pytest
import tiktoken

from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.catalog import CONTEXT_WINDOWS, context_window, embedding_dimensions
from agent_memory.foundation.llm.tokens import TokenCounter, load_encoding

ROOT = Path(__file__).parents[3]


def test_context_windows_of_known_and_unknown_models() -> None:
    models = load_settings(MODEL_CONTEXT_WINDOWS={"my-model": 4321, "gpt-4o": 1000}).models
    for model, window in CONTEXT_WINDOWS.items():
        assert context_window(model, load_settings().models) == window
    for model, window in {
        "my-model": 4321,
        "gpt-4o": 1000,
        "gpt-4o-2024-11-20": 128000,
        "openai/gpt-5-mini": 400000,
        "gpt-5-mini-2025-08-07": 400000,
        "us.anthropic.claude-sonnet-4-20250514-v1:0": 200000,
        "gpt-3.5-turbo-0125": 16384,
        "ollama/llama3.1:8b": 128000,
        "o3": 200000,
        "something-else": 16000,
        "": 16000,
    }.items():
        assert context_window(model, models) == window, model
    assert context_window(None, models) == 16000


def test_unknown_model_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    # Independent of the log level that another test of this process has set.
    caplog.set_level("INFO", logger="agent_memory.foundation.llm.catalog")
    models = load_settings().models
    for _ in range(3):
        context_window("never-heard-of", models)
        context_window(None, models)
    assert [vars(entry)["model"] for entry in caplog.records] == ["never-heard-of"]


def test_embedding_dimensions_of_known_models() -> None:
    assert embedding_dimensions("text-embedding-3-large") == 3072
    assert embedding_dimensions("openai/text-embedding-3-small") == 1536
    assert embedding_dimensions("bedrock/amazon.titan-embed-text-v2:0") == 1024
    assert embedding_dimensions("nomic-embed-text:latest") == 768
    assert embedding_dimensions("made-up") is None


@pytest.fixture(scope="module")
def encoding() -> tiktoken.Encoding:
    return load_encoding()


def test_bundled_token_ranks_equal_the_official_ones(encoding: tiktoken.Encoding) -> None:
    import hashlib
    import lzma

    script = runpy.run_path(str(ROOT / "scripts" / "build_ranks.py"))
    assert hashlib.sha256(lzma.decompress(script["TARGET"].read_bytes())).hexdigest() == script["SHA256"]
    assert script["ranks_of"]('{"bpe_ranks":"! 0 IQ== Ig==\\n! 5 Iw=="}') == b"IQ== 0\nIg== 1\nIw== 5\n"
    assert encoding.encode_ordinary("hello world") == [15339, 1917]
    assert encoding.encode_ordinary("tiktoken is great!") == [83, 1609, 5963, 374, 2294, 0]


def test_counter_counts_texts_messages_and_special_tokens(counter: TokenCounter) -> None:
    assert counter.count("") == 0
    assert counter.count("hello world") == 2
    assert counter.count("<|endoftext|>") == 7
    assert counter.count_message("user", "hello world") == 4
    assert counter.count_message("", "") >= 1
    assert counter.count("\ud800") >= 1


@pytest.mark.parametrize("piece", ["a", " ", "\n", "!", "é", "漢", "😀", "ab ", "word, and more. ", "\u0301"])
def test_long_repetitive_texts_are_counted_and_truncated(counter: TokenCounter, piece: str) -> None:
    text = (piece * 300_000)[:300_000]
    total = counter.count(text)
    assert total > 0
    cut = counter.truncate(text, 1000)
    assert text.startswith(cut)
    assert counter.count(cut) <= 1000
    assert counter.truncate(text, total) == text
    assert counter.truncate(text, 0) == ""


def test_long_text_is_counted_as_by_the_whole_encoding(counter: TokenCounter, encoding: tiktoken.Encoding) -> None:
    text = "We walked along the river, 12 km, and it's been cold. \nThen, home! " * 2000
    assert counter.count(text) == pytest.approx(len(encoding.encode_ordinary(text)), rel=1e-3)


def test_counter_without_ranks_estimates_four_characters_per_token() -> None:
    counter = TokenCounter()
    assert counter.count("12345678") == 2
    assert counter.count_message("", "") == 1
    assert counter.truncate("12345678", 1) == "1234"


def test_ascii_fast_path_counts_like_the_full_encoding(counter: TokenCounter, encoding: tiktoken.Encoding) -> None:
    pick = random.Random(20261122)
    signs = "  \t\n\r\x0b\x0c\x1c'sdmtlvreSLVEabc XYZ012345.,!?-_/(){}\"#\x00\x7f"
    texts = ["".join(pick.choices(signs, k=pick.randrange(60))) for _ in range(3000)]
    texts += ["It's 12,345 o'clock -- WE'LL see...\n\n  def f(x):\r\n\treturn x ", "\n" * 50 + " x", "'S" * 40, "a" * 1999, " " * 1999]
    for text in texts:
        assert counter.count(text) == len(encoding.encode_ordinary(text)), repr(text)


def test_counting_stops_once_enough_tokens_are_found(counter: TokenCounter) -> None:
    text = "The ferry to Bergen goes at nine. " * 40_000
    whole = counter.count(text)
    assert counter.count(text, enough=10 * whole) == whole
    assert 100 < counter.count(text, enough=100) < whole / 20
    assert counter.count("The ferry goes.", enough=1) == counter.count("The ferry goes.")
