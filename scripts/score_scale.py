"""Measure the similarity of matches and noise, to set the scales in `llm/profiles.py`.

    COMPAT_APIS=supermemory agent-memory serve --port 8301 --data-dir EMPTY &
    python scripts/score_scale.py --base-url http://127.0.0.1:8301 conversations.json ...

The results depend on the server's embedding model. A file contains {"conversations": [{"id",
"turns": […], "questions": […]}]}. A turn has an id, session, role, text and optionally a speaker. A
question has a text and the ids of its evidence turns. Matches for questions with no evidence are
noise.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from agent_memory.foundation.llm.profiles import profile_of
from agent_memory.interfaces.compat.supermemory.answers import raw_similarity
from agent_memory_client.models import MemoryRecordResult

PARTS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
MOST_TURNS = 300


def store(client: httpx.Client, tag: str, turns: list[dict[str, Any]]) -> None:
    """Store turns as conversations in a container, and wait until they are searchable."""
    sessions: dict[str, list[dict[str, str]]] = defaultdict(list)
    for turn in turns:
        speaker = f"{turn['speaker']}: " if turn.get("speaker") else ""
        sessions[str(turn["session"])].append({"role": turn["role"], "content": speaker + turn["text"]})
    names = [f"{tag}-{session}" for session in sessions]
    for name, messages in zip(names, sessions.values(), strict=True):
        body = {"conversationId": name, "containerTags": [tag], "messages": messages}
        client.post("/v4/conversations", json=body).raise_for_status()
    for name in names:
        while client.get(f"/v3/documents/{name}").json()["status"] == "queued":
            time.sleep(0.2)


def ask(client: httpx.Client, tag: str, text: str, limit: int = 10) -> list[tuple[str, float]]:
    """Search for a question, and return the matching texts with their similarities."""
    body = {
        "text": text,
        "user_id": {"eq": tag},
        "namespace": {"eq": "supermemory"},
        "limit": limit,
        "explain": True,
        "search_mode": "hybrid",
    }
    memories = client.post("/v1/long-term-memory/search", json=body).raise_for_status().json()["memories"]
    hits = [MemoryRecordResult.model_validate(memory) for memory in memories]
    return [(hit.text, raw_similarity(hit, text)) for hit in hits]


def measure(client: httpx.Client, path: Path, questions: int) -> tuple[list[float], list[float]]:
    """Return the similarities of correct matches and of noise."""
    right: list[float] = []
    noise: list[float] = []
    rng = random.Random(1)
    conversations = json.loads(path.read_text())["conversations"]
    rng.shuffle(conversations)
    for conversation in conversations:
        tag = f"{path.stem}-{conversation['id']}-{time.time_ns()}"
        turns = conversation["turns"][:MOST_TURNS]
        store(client, tag, turns)
        texts = {turn["id"]: turn["text"] for turn in turns}
        answerable = [question for question in conversation["questions"] if texts.keys() >= set(question["evidence"])]
        for question in rng.sample(answerable, min(len(answerable), 60)):
            hits = ask(client, tag, question["text"])
            evidence = [texts[name] for name in question["evidence"]]
            if evidence:
                scores = [score for text, score in hits if any(turn in text for turn in evidence)]
                right += [max(scores)] if scores else []
            elif hits:
                noise.append(max(score for _, score in hits))
        if len(right) + len(noise) >= questions:
            break
    return right, noise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--base-url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", default="multilingual-e5-small", help="the server's embedding model; the script also shows its scale")
    parser.add_argument("--questions", type=int, default=120, help="about how many questions to ask from each file")
    options = parser.parse_args()
    with httpx.Client(base_url=options.base_url, timeout=60) as client:
        for path in options.files:
            for name, values in zip(("right", "noise"), measure(client, path, options.questions), strict=True):
                shown = " ".join(f"{part:.0%} {value:.2f}" for part, value in zip(PARTS, np.quantile(values or [0], PARTS), strict=True))
                scores = [profile_of(options.model).scale.score(value) for value in values] or [0.0]
                match, noise = sum(score >= 0.6 for score in scores) / len(scores), sum(score < 0.5 for score in scores) / len(scores)
                print(f"{path.stem} {name} {len(values)}: {shown}; 0.6 or more {match:.0%}, below 0.5 {noise:.0%}", flush=True)


if __name__ == "__main__":
    main()
