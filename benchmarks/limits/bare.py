"""Serve limit (a), a bare FastAPI application with realistic bodies.

`python -m benchmarks.limits.bare PORT FILE` returns the responses in FILE, which maps operation
names to responses.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict


class Turn(BaseModel):
    id: str
    role: str
    content: str
    created_at: str | None = None


class Fact(BaseModel):
    """A memory in a client's request."""

    id: str
    text: str
    user_id: str | None = None


class Session(BaseModel):
    """The body of a put or append."""

    messages: list[Turn]
    user_id: str | None = None


class Create(BaseModel):
    """The body of a create request."""

    memories: list[Fact]


class Question(BaseModel):
    """The body of a search or prompt request."""

    model_config = ConfigDict(extra="ignore")
    text: str | None = None
    query: str | None = None
    limit: int = 10
    session: dict[str, Any] | None = None
    user_id: dict[str, Any] | None = None
    long_term_search: dict[str, Any] | None = None


class Answer(BaseModel):
    """Any response. Its fields are serialized as they are."""

    model_config = ConfigDict(extra="allow")


def app(answers: dict[str, Any]) -> FastAPI:
    """Return an application with one route per operation."""
    made = FastAPI()
    ready = {name: Answer.model_validate(answer) for name, answer in answers.items()}

    @made.put("/v1/working-memory/{session_id}")
    async def put(session_id: str, body: Session) -> Answer:
        return ready["put 4"]

    @made.post("/v1/working-memory/{session_id}/messages")
    async def append(session_id: str, body: Session) -> Answer:
        return ready["append to 10"]

    @made.get("/v1/working-memory/{session_id}")
    async def get(session_id: str, user_id: str | None = None, recent_messages_limit: int | None = None) -> Answer:
        return ready["get last 20 of 100"]

    @made.post("/v1/long-term-memory/")
    async def create(body: Create) -> Answer:
        return ready["create 20"]

    @made.post("/v1/long-term-memory/search")
    async def search(body: Question) -> Answer:
        return ready["search"]

    @made.post("/v1/memory/prompt")
    async def prompt(body: Question) -> Answer:
        return ready["prompt"]

    return made


if __name__ == "__main__":
    answers = json.loads(Path(sys.argv[2]).read_text())
    uvicorn.run(
        app(answers), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False, loop="uvloop", http="httptools"
    )
