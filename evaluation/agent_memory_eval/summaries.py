"""How much of what was said a summary without a language model keeps: `python -m agent_memory_eval.summaries FILE`.

Each conversation is one session. What its window does not hold is summarized in 300 tokens; of each turn there that is evidence for a
question, the share of its content words that stand in the summary is counted.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable, Sequence
from datetime import UTC
from pathlib import Path

from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.text.extractive_summary import Said, Statement, content_words, layout, statements_of, summarize
from agent_memory.foundation.text.passages.sentences import split_sentences
from agent_memory.foundation.text.summary_subjects import HEAD
from agent_memory_eval.question_sets import Conversation, Turn, load

BUDGET = 300
WINDOW = 2000
"""Tokens of a conversation's end that stay in the window."""


def leaving(conversation: Conversation, counter: TokenCounter, window: int = WINDOW) -> list[Turn]:
    """The turns of a conversation that its window does not hold."""
    turns, left = list(conversation.turns), window
    while turns and (left := left - counter.count(turns[-1].text)) > 0:
        turns.pop()
    return turns


def kept_share(conversation: Conversation, turns: Sequence[Turn], summary: str) -> list[float]:
    """The share of content words that a summary has, of each of these turns that is evidence."""
    evidence = {name for question in conversation.questions for name in question.evidence}
    known = content_words(summary)
    wanted = [content_words(turn.text) for turn in turns if turn.id in evidence]
    return [len(words & known) / len(words) for words in wanted if words]


def in_order(statements: Sequence[Statement], order: Sequence[int], count: Callable[[str], int], budget: int) -> str:
    """Sentences in an order of preference as far as they fit, as a summary shows them."""
    text = ""
    for size in range(1, len(order) + 1):
        longer = layout([statements[index] for index in sorted(order[:size])])
        if count(longer) > budget:
            break
        text = longer
    return text


def bare(statements: Sequence[Statement], order: Sequence[int], sizes: Sequence[int], budget: int) -> str:
    """Sentences in an order of preference as far as they fit, and nothing else."""
    texts: list[str] = []
    for index in order:
        if sizes[index] <= budget:
            texts.append(statements[index].text)
            budget -= sizes[index]
    return "\n".join(texts)


async def measure(path: Path, budget: int = BUDGET) -> dict[str, float]:
    """The mean share by each way to summarize, in percent."""
    counter = await TokenCounter.open()
    shares: dict[str, list[float]] = {}
    for conversation in load(path).conversations:
        turns = leaving(conversation, counter)
        said = statements_of([Said(turn.text, turn.role, turn.time) for turn in turns], split_sentences)
        sizes = [counter.count(statement.text) + 1 for statement in said]
        summary = summarize(said, budget, counter.count, UTC)
        orders = [random.Random(seed).sample(range(len(said)), len(said)) for seed in range(20)]
        summaries = {
            "summary": [summary],
            "its statements, without its last line": [summary.partition(f"\n{HEAD}: ")[0]],
            "first sentences": [in_order(said, range(len(said)), counter.count, budget)],
            "random sentences": [in_order(said, order, counter.count, budget) for order in orders],
            "random sentences, no days and speakers": [bare(said, order, sizes, budget) for order in orders],
        }
        for name, texts in summaries.items():
            for text in texts:
                shares.setdefault(name, []).extend(kept_share(conversation, turns, text))
    return {name: 100 * sum(values) / max(len(values), 1) for name, values in shares.items()}


def main() -> None:
    """Prints the shares of a question set."""
    for name, share in asyncio.run(measure(Path(sys.argv[1]))).items():
        print(f"{name}: {share:.1f} % of an evidence turn's content words in {BUDGET} tokens")


if __name__ == "__main__":
    main()
