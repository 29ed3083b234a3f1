"""A terminal chat that remembers you.

    pip install ./client openai rich
    python examples/chat.py --user ada

The memory server stores the conversation. OPENAI_API_KEY or OPENAI_BASE_URL selects the model
server, and CHAT_MODEL selects the model. If no model is available, the chat shows the memories that
the model would receive.

Press Ctrl-D to exit. The next run starts a new session, which recalls what you said in earlier
sessions.
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

    from agent_memory_client import MemoryClient, MemoryClientConfig, MemoryClientError
except ImportError as missing:
    raise SystemExit(f"{missing.name} is missing: pip install ./client openai rich") from None

CONSOLE = Console()
MODEL_SECONDS = 60.0


async def chat(options: argparse.Namespace) -> None:
    model = model_of_environment()
    if model is None:
        CONSOLE.print("[dim]No OPENAI_API_KEY and no OPENAI_BASE_URL: instead of answers you see what the memory recalls.[/dim]")
    session_id = options.session or f"chat-{uuid.uuid4()}"
    async with MemoryClient(MemoryClientConfig(base_url=options.base_url)) as memory:
        await memory.server.health()
        while (text := await asyncio.to_thread(read_line)) is not None:
            # The prompt contains this session (summary and newest messages), earlier sessions' memories, and the
            # question.
            prompt = await memory.prompts.render(
                text, session_id=session_id, user_id=options.user, model_name=options.model, long_term_search={"limit": 5}
            )
            answer = None if model is None else await ask(model, options.model, prompt.to_openai())
            if answer is None:
                earlier = [record.text for record in prompt.long_term_memories or []]
                current = [message["content"] for message in prompt.to_openai()[:-1] if message["role"] != "system"]
                CONSOLE.print(recalled(earlier, current), style="green", markup=False)
            else:
                CONSOLE.print(answer, style="green", markup=False)
            messages = [{"role": "user", "content": text}]
            if answer:
                messages.append({"role": "assistant", "content": answer})
            await memory.sessions.append(session_id, messages, user_id=options.user)


def model_of_environment() -> AsyncOpenAI | None:
    """Return a client for the configured model server, or None if none is configured."""
    if not (os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")):
        return None
    try:
        return AsyncOpenAI(api_key=os.environ.get("OPENAI_API_KEY") or "none", timeout=MODEL_SECONDS, max_retries=1)
    except (OpenAIError, httpx.InvalidURL) as error:
        raise SystemExit(f"the model's server cannot be used, check OPENAI_BASE_URL: {error}") from error


async def ask(model: AsyncOpenAI, name: str, messages: list[dict[str, str]]) -> str | None:
    """Return the model's reply. If the call fails, print the reason and return None."""
    try:
        completion = await model.chat.completions.create(model=name, messages=messages)
    except Exception as error:  # noqa: BLE001 - the chat continues whatever is wrong with the model or its address.
        reason = " ".join(str(error).split()) or type(error).__name__
        CONSOLE.print(f"The model does not answer ({reason}). This is what the memory recalls:", style="red", markup=False)
        return None
    answer = completion.choices[0].message.content if completion.choices else None
    if not (answer or "").strip():
        CONSOLE.print("The model answered nothing. This is what the memory recalls:", style="red", markup=False)
        return None
    return answer


def recalled(earlier: Sequence[str], current: Sequence[str]) -> str:
    """Return the model's context: earlier memories and the messages in this session."""
    parts = [("From earlier conversations:", earlier), ("From this conversation:", current)]
    lines = [line for title, texts in parts if texts for line in (title, *(f"- {text}" for text in texts))]
    return "\n".join(lines) or "(nothing was said yet; from now on, the chat is remembered)"


def read_line() -> str | None:
    """Return the next non-blank line, or None at the end of the input."""
    try:
        while not (text := CONSOLE.input("[bold]> [/bold]").strip()):
            pass
    except (EOFError, KeyboardInterrupt):
        return None
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", "--base-url", dest="base_url", default="http://127.0.0.1:8000", help="the memory server")
    parser.add_argument("--user", default="me", help="user id")
    parser.add_argument("--session", help="continue the session with this name (default: a new one)")
    parser.add_argument("--model", default=os.environ.get("CHAT_MODEL", "gpt-5-mini"))
    try:
        asyncio.run(chat(parser.parse_args()))
    except MemoryClientError as error:
        raise SystemExit(f"memory server: {error}") from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
