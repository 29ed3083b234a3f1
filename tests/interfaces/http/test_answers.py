"""Test that JSON responses match pydantic's own serialization."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic_core import to_json

from agent_memory.foundation.api.responses import ValuesResponse
from agent_memory_client.models import AnswerExplanation

EXPLANATION = AnswerExplanation(
    mode="hybrid",
    query="é",
    left_out=["a"],
    time_start=datetime(2024, 1, 1, tzinfo=UTC),
    time_end=None,
    ranked=1,
    below_threshold=0,
    cut=[],
)


@pytest.mark.parametrize(
    "values",
    [
        {"text": 'é "\u2028" \x7f', "none": None, "yes": True, "list": [1, -2.5, 1e300, 0.1], "deep": {"": {}}},
        {"beyond 64 bits": 2**70, "beside": ["x"]},
        {"infinite": float("inf"), "no number": float("nan")},
        {"explanation": EXPLANATION},
        {"explanation": EXPLANATION, "large": -(2**80)},
    ],
)
def test_values_response_serializes_like_pydantic(values: dict[str, Any]) -> None:
    response = ValuesResponse(values)
    assert json.loads(response.body) == json.loads(to_json(values, inf_nan_mode="null"))
    assert (b"content-length", b"%d" % len(response.body)) in response.raw_headers
