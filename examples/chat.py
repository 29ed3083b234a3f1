"""A terminal chat that remembers you: the memory server for what was said, any OpenAI-compatible server for the answers.

    python examples/chat.py --user ada          (OPENAI_API_KEY or OPENAI_BASE_URL name the model's server, CHAT_MODEL the model)

Talk, leave with Ctrl-D, start again: it is a new session, and what you said in the last one is recalled. Without a model it shows
what the memory recalled, in place of an answer.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import uuid

from openai import AsyncOpenAI
from rich.console import Console

from agent_memory_client import MemoryClientError, create_memory_client

CONSOLE = Console()


async def chat(options: argparse.Namespace) -> None:
    """Reads lines until there are no more, and answers each."""
    model = None
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        model = AsyncOpenAI(api_key=os.environ.get("OPENAI_API_KEY") or "none")
    else:
        CONSOLE.print("[dim]No OPENAI_API_KEY and no OPENAI_BASE_URL: instead of answers you see what the memory recalls.[/dim]")
    memory = await create_memory_client(options.base_url, default_model_name=options.model)
    session_id = options.session or f"chat-{uuid.uuid4()}"
    async with memory:
        while (said := await asyncio.to_thread(line)) is not None:
            # The prompt: this session (its summary and newest messages), what fits from earlier ones, and the question.
            prompt = await memory.memory_prompt(said, session_id=session_id, user_id=options.user, long_term_search={"limit": 5})
            if model is None:
                recalled = [record.text for record in prompt.long_term_memories or []]
                answer = "\n".join(f"- {text}" for text in recalled) or "(nothing recalled)"
            else:
                done = await model.chat.completions.create(model=options.model, messages=prompt.to_openai())
                answer = done.choices[0].message.content or ""
            CONSOLE.print(answer, style="green", markup=False)
            turns = [{"role": "user", "content": said}]
            if model is not None and answer.strip():
                turns.append({"role": "assistant", "content": answer})
            await memory.append_messages(session_id, turns, user_id=options.user)


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
    parser.add_argument("--base-url", default="http://127.0.0.1:8000", help="the memory server")
    parser.add_argument("--user", default="me", help="who is talking")
    parser.add_argument("--session", help="go on with a session of this name (default: a new one)")
    parser.add_argument("--model", default=os.environ.get("CHAT_MODEL", "gpt-5-mini"))
    try:
        asyncio.run(chat(parser.parse_args()))
    except MemoryClientError as error:
        raise SystemExit(f"memory server: {error}") from error


if __name__ == "__main__":
    main()
