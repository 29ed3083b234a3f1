"""A terminal chat that remembers you: the memory server for what was said, any OpenAI-compatible server for the answers.

    pip install ./client openai rich
    python examples/chat.py --user ada          (OPENAI_API_KEY or OPENAI_BASE_URL name the model's server, CHAT_MODEL the model)

Talk, leave with Ctrl-D, start again: it is a new session, and what you said in the last one is recalled. Without a model, or while it is
away, it shows what the memory gives a model along with your words, in place of an answer.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import uuid
from collections.abc import Sequence

try:
    import httpx
    from openai import AsyncOpenAI, OpenAIError
    from rich.console import Console

    from agent_memory_client import MemoryClientError, create_memory_client
except ImportError as missing:
    raise SystemExit(f"{missing.name} is missing: pip install ./client openai rich") from None

CONSOLE = Console()
MODEL_SECONDS = 60.0


async def chat(options: argparse.Namespace) -> None:
    """Reads lines until there are no more, and answers each."""
    model = model_of_environment()
    if model is None:
        CONSOLE.print("[dim]No OPENAI_API_KEY and no OPENAI_BASE_URL: instead of answers you see what the memory recalls.[/dim]")
    memory = await create_memory_client(options.base_url, default_model_name=options.model)
    session_id = options.session or f"chat-{uuid.uuid4()}"
    async with memory:
        while (said := await asyncio.to_thread(line)) is not None:
            # The prompt: this session (its summary and newest messages), what fits from earlier ones, and the question.
            prompt = await memory.memory_prompt(said, session_id=session_id, user_id=options.user, long_term_search={"limit": 5})
            answer = None if model is None else await answer_of(model, options.model, prompt.to_openai())
            if answer is None:
                earlier = [record.text for record in prompt.long_term_memories or []]
                here = [message["content"] for message in prompt.to_openai()[:-1] if message["role"] != "system"]
                CONSOLE.print(recalled(earlier, here), style="green", markup=False)
            else:
                CONSOLE.print(answer, style="green", markup=False)
            turns = [{"role": "user", "content": said}]
            if answer:
                turns.append({"role": "assistant", "content": answer})
            await memory.append_messages(session_id, turns, user_id=options.user)


def model_of_environment() -> AsyncOpenAI | None:
    """The model's server that the environment names, None when it names none."""
    if not (os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")):
        return None
    try:
        return AsyncOpenAI(api_key=os.environ.get("OPENAI_API_KEY") or "none", timeout=MODEL_SECONDS, max_retries=1)
    except (OpenAIError, httpx.InvalidURL) as error:
        raise SystemExit(f"the model's server cannot be used, check OPENAI_BASE_URL: {error}") from error


async def answer_of(model: AsyncOpenAI, name: str, messages: list[dict[str, str]]) -> str | None:
    """The model's answer; None, with a sentence on the screen, when there is none."""
    try:
        done = await model.chat.completions.create(model=name, messages=messages)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the model or its address, the chat goes on.
        reason = " ".join(str(error).split()) or type(error).__name__
        CONSOLE.print(f"The model does not answer ({reason}). This is what the memory recalls:", style="red", markup=False)
        return None
    said = done.choices[0].message.content if done.choices else None
    if not (said or "").strip():
        CONSOLE.print("The model answered nothing. This is what the memory recalls:", style="red", markup=False)
        return None
    return said


def recalled(earlier: Sequence[str], here: Sequence[str]) -> str:
    """What the memory gives a model along with a question: what was said in earlier sessions, and in this one."""
    parts = [("From earlier conversations:", earlier), ("From this conversation:", here)]
    shown = [line for title, texts in parts if texts for line in (title, *(f"- {text}" for text in texts))]
    return "\n".join(shown) or "(nothing was said yet; it is remembered from now on)"


def line() -> str | None:
    """The next line that says something, None at the end."""
    try:
        while not (said := CONSOLE.input("[bold]> [/bold]").strip()):
            pass
    except (EOFError, KeyboardInterrupt):
        return None
    return said


def main() -> None:
    """Reads the command line and chats."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", "--base-url", dest="base_url", default="http://127.0.0.1:8000", help="the memory server")
    parser.add_argument("--user", default="me", help="who is talking")
    parser.add_argument("--session", help="go on with a session of this name (default: a new one)")
    parser.add_argument("--model", default=os.environ.get("CHAT_MODEL", "gpt-5-mini"))
    try:
        asyncio.run(chat(parser.parse_args()))
    except MemoryClientError as error:
        raise SystemExit(f"memory server: {error}") from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
