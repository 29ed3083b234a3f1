"""Test the look-alike model server as a process that is controlled over HTTP."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.support.lookalike import Lookalike, embed

ROOT = Path(__file__).parents[3]


def post(url: str, body: dict[str, object]) -> dict[str, object]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def test_lookalike_runs_as_a_process_and_is_controlled_over_http() -> None:
    command = [sys.executable, "-m", "tests.support.lookalike", "--port", "0", "--dimensions", "64"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"OPENAI_BASE_URL=(\S+)", process.stdout.readline())
            assert found is not None
            url = found[1]
            answer = post(f"{url}/embeddings", {"model": "m", "input": ["a dog"]})
            assert len(answer["data"][0]["embedding"]) == 64  # type: ignore[index]
            post(url.removesuffix("/v1") + "/_faults", {"kind": "500", "times": 1})
            with pytest.raises(urllib.error.HTTPError):
                post(f"{url}/embeddings", {"model": "m", "input": "a dog"})
            post(f"{url}/embeddings", {"model": "m", "input": "a dog"})
        finally:
            process.terminate()
        assert process.wait(10) == 0


def test_lookalike_restarts_on_the_same_port(lookalike: Lookalike) -> None:
    lookalike.set_fault("down")
    with pytest.raises(urllib.error.URLError):
        post(f"{lookalike.url}/embeddings", {"input": "x"})
    url = lookalike.url
    lookalike.restart()
    assert lookalike.url == url
    assert post(f"{url}/embeddings", {"input": "x", "dimensions": 8})["data"]


def test_lookalike_embeds_similar_texts_nearby_and_refuses_unknown_faults(lookalike: Lookalike) -> None:
    river, rivers, tax = embed("walking by the river", 256), embed("He walked by rivers", 256), embed("tax forms", 256)
    assert river @ rivers > 0.8 > 0.2 > river @ tax
    with pytest.raises(ValueError, match="no fault"):
        lookalike.set_fault("no such thing")
    with pytest.raises(urllib.error.HTTPError):
        post(lookalike.url.removesuffix("/v1") + "/_faults", {"kind": "no such thing"})
