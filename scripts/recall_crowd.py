"""Recall and speed in an index full of other people's memories: python scripts/recall_crowd.py FILE --url http://127.0.0.1:8000

Asks a running server that holds nothing else the questions of FILE (LoCoMo's or LongMemEval's format) twice: when it knows these
conversations only, and again when it also holds the memories of many other users, who talk of the same things under other names. Everything
goes through the public API. Each question is asked two times in a row by one client that waits for every answer; the second answer needs no
embedding of the question, and that time is reported.

Prints a JSON object, then a verdict; exits with 1 when recall differs by more than a point or the 95th percentile is not below 15 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ulid import ULID

from agent_memory.llm.tokens import TokenCounter
from agent_memory_eval.datasets import Conversation, ConversationTurn, load
from agent_memory_eval.report import ANSWERABLE, OVERALL, groups
from agent_memory_eval.runner import Api, Options, run, user_of

_NAMES = """Abel Bea Cato Dina Egon Fritzi Gero Hanne Ilka Jannis Kersti Lovro Mirta Nuno Odile Petra Quirin Runa Silvio Tilda Ugo Vesna Wim
Xenia Yorick Zofia Arvid Birte Cosimo Dagny"""
_SESSION = 20
_PARALLEL = 4
RECALL_POINTS = 1
SEARCH_MS = 15


def crowd(conversations: Sequence[Conversation], users: int, memories: int, seed: int = 7) -> list[Conversation]:
    """Other users: each says things that are said in the conversations, in another order and with other names; nothing is asked of them."""
    chance, names = random.Random(seed), _NAMES.split()
    said = [turn for conversation in conversations for turn in conversation.turns]
    speakers = {turn.text.split(":", 1)[0] for turn in said if ":" in turn.text[:40]}
    known = re.compile(r"\b(" + "|".join(map(re.escape, sorted(speakers, key=len, reverse=True))) + r")\b") if speakers else None
    # A text has one of a few names each time it is told, so that the server need not embed a hundred thousand different ones.
    told: dict[tuple[int, int], str] = {}
    found: list[Conversation] = []
    for user in range(users):
        turns: list[ConversationTurn] = []
        for number in range(memories * (user + 1) // users - memories * user // users):
            place, variant = chance.randrange(len(said)), chance.randrange(3)
            text = told.get((place, variant))
            if text is None:
                name = names[(place + variant) % len(names)]
                text = said[place].text if known is None else known.sub(name, said[place].text)
                told[place, variant] = text
            turns.append(replace(said[place], id=f"{number}", session=str(number // _SESSION), text=text))
        found.append(Conversation(f"other{user}", tuple(turns), ()))
    return found


async def second_time(options: Options, conversations: Sequence[Conversation]) -> list[float]:
    """Milliseconds of searches whose question the server has embedded before; the whole HTTP request is measured."""
    times: list[float] = []
    async with Api(options.url) as api:
        for conversation in conversations:
            for question in conversation.questions:
                body = {"text": question.text, "user_id": {"eq": user_of(options, conversation)}, "limit": 10}
                for attempt in range(2):
                    begun = time.perf_counter()
                    await api.call("POST", "/v1/long-term-memory/search", body)
                    if attempt:
                        times.append((time.perf_counter() - begun) * 1000)
    # The first ones warm what is cold.
    return sorted(times[len(times) // 20 :])


async def measured(options: Options, conversations: Sequence[Conversation], counter: TokenCounter) -> dict[str, Any]:
    """Recall over all questions and without adversarial ones, and the time of a search without embedding."""
    found = await run(options, conversations, counter, said)
    if found.errors:
        sys.exit(f"{len(found.errors)} questions were not answered, the first: {found.errors[0]}")
    by_group = groups(found.answers, "turn")
    said("timing", 0, 0)
    times = await second_time(options, conversations)
    at = {f"p{share}": round(times[min(len(times) - 1, len(times) * share // 100)], 2) for share in (50, 95, 99)}
    recall = {name: by_group[name] for name in (OVERALL, ANSWERABLE) if name in by_group}
    return {"recall": recall, "search_ms": at, "ingest_seconds": round(found.ingest_seconds, 1)}


_told: dict[str, float] = {}


def said(stage: str, done: int, total: int) -> None:
    """A line on the standard error for every stage, and at most one in ten seconds."""
    now = time.monotonic()
    if (total and done == total) or now - _told.get(stage, -10.0) >= 10:
        _told[stage] = now
        print(f"{stage} {done}/{total}" if total else stage, file=sys.stderr, flush=True)


def verdict(alone: dict[str, Any], among: dict[str, Any]) -> tuple[list[str], bool]:
    """Lines that compare the figures with what is promised, and whether all of it holds."""
    lines, good = list[str](), True
    for name in ("R@10", "R@50"):
        first, second = (100 * found["recall"][OVERALL][name] for found in (alone, among))
        holds = abs(second - first) <= RECALL_POINTS
        lines.append(f"{name} alone {first:.1f}, among others {second:.1f} (within {RECALL_POINTS} point): {'holds' if holds else 'FAILS'}")
        good = good and holds
    at, before = among["search_ms"]["p95"], alone["search_ms"]["p95"]
    fast = at < SEARCH_MS
    lines.append(f"search p95 {at} ms, alone {before} ms (below {SEARCH_MS} ms, without embedding): {'holds' if fast else 'FAILS'}")
    return lines, good and fast


async def main(arguments: argparse.Namespace) -> int:
    """Runs, prints a JSON object and a verdict, and returns the exit code."""
    conversations, counter = load(arguments.file)[: arguments.conversations], await TokenCounter.open()
    options = Options(arguments.url, f"crowd-{str(ULID()).lower()}", prompt=False, wait_seconds=7200, parallel=_PARALLEL)
    alone = await measured(options, conversations, counter)
    print(json.dumps({"alone": alone}), file=sys.stderr, flush=True)
    others = crowd(load(arguments.file), arguments.users, arguments.memories)
    stored = await run(replace(options, run=f"{options.run}-o"), others, counter, said)
    among = await measured(replace(options, ingest=False), conversations, counter)
    distinct = len({turn.text for other in others for turn in other.turns})
    seconds = round(stored.ingest_seconds, 1)
    sizes = {"users": len(others), "memories": stored.turns, "different_texts": distinct, "stored_and_indexed_seconds": seconds}
    lines, good = verdict(alone, among)
    print(json.dumps({"alone": alone, "others": sizes, "among_others": among, "holds": good}, indent=1))
    print("\n".join([f"{stored.turns} memories of {len(others)} users were stored and indexed in {seconds} s", *lines]))
    return 0 if good else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--url", required=True)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--conversations", type=int, help="ask of the first ones only")
    sys.exit(asyncio.run(main(parser.parse_args())))
