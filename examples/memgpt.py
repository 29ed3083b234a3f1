"""An agent that manages its own memory, with inner thoughts, heartbeats and memory tools.

    pip install ./client openai rich
    python examples/memgpt.py --user ada

OPENAI_API_KEY or OPENAI_BASE_URL selects the model server, and CHAT_MODEL selects the model. The
agent edits its memory blocks, which are part of every prompt. Everything else goes into its
archive. The model's text is a thought and is printed dim. To speak, the model calls `send_message`.
If a call requests a heartbeat or fails, the agent gets another step before the user's next line.
Use `agent-memory export` and `import` to move the agent's memory. If no model is available, the
program prints the agent's prompt.
"""

from __future__ import annotations

import argparse
import json
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

try:
    from openai import OpenAI, OpenAIError
    from rich.console import Console

    from agent_memory_client import MemoryClientConfig, MemoryClientError, SyncMemoryClient
except ImportError as missing:
    raise SystemExit(f"{missing.name} is missing: pip install ./client openai rich") from None

MOST_STEPS = 8
BLOCKS = {"human": "Lasting facts about the user.", "persona": "Who the agent is, and how it speaks."}
PERSONA = "I am a companion who remembers. I am brief and warm."
TOOLS = (
    *("core_memory_append", "core_memory_replace", "archival_memory_insert", "archival_memory_search"),
    *("conversation_search", "conversation_search_date"),
)
INSTRUCTIONS = """You are an agent with a memory of your own. What you write is your inner thought: nobody reads it. To speak, call
send_message. Your core memory, the memory blocks, is part of every prompt: keep in it what must always be in mind. When a block is full,
move what matters less to your archive with archival_memory_insert, remove it with core_memory_replace, then try again. What is in
neither may be in the archive or in what was said: search there before you say that you do not know. Set request_heartbeat to true when
you want to go on after a call."""
HEARTBEAT = {"type": "boolean", "description": "Whether you want another step after this call."}
SEND_MESSAGE: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "send_message",
        "description": "Say something to the user.",
        "parameters": {
            "type": "object",
            "properties": {"message": {"type": "string", "description": "What you say."}},
            "required": ["message"],
        },
    },
}


@dataclass
class Agent:
    """An agent and its user. `say` prints messages, and `think` prints the agent's thoughts."""

    memory: SyncMemoryClient
    model: OpenAI | None
    model_name: str
    user: str
    name: str = "companion"
    say: Callable[[str], None] = print
    think: Callable[[str], None] = lambda thought: None
    session: str = field(default_factory=lambda: f"memgpt-{uuid.uuid4()}")

    def make_blocks(self, limit: int = 2000) -> None:
        """Create any missing blocks."""
        labels = {block.label for block in self.memory.blocks.list(user_id=self.user, agent_id=self.name).blocks}
        for label, description in BLOCKS.items():
            if label not in labels:
                value = PERSONA if label == "persona" else ""
                self.memory.blocks.put(label, value, description=description, limit=limit, user_id=self.user, agent_id=self.name)

    def answer(self, line: str) -> list[str]:
        """Send a line to the agent and return its messages."""
        prompt = self.memory.prompts.render(line, self.session, user_id=self.user, agent_id=self.name, format="openai").to_openai()
        spoken: list[str] | None = None
        if self.model is not None:
            try:
                spoken = self.speak(self.model, [{"role": "system", "content": INSTRUCTIONS}, *prompt])
            except OpenAIError as error:
                self.say(f"The model does not answer ({error}). The model would get this prompt:")
        if spoken is None:
            self.say(self.in_mind(line, [message["content"] for message in prompt if message["role"] == "system"]))
        for message in spoken or ():
            self.say(message)
        turns = [{"role": "user", "content": line}, *({"role": "assistant", "content": message} for message in spoken or ())]
        self.memory.sessions.append(self.session, turns, user_id=self.user, agent_id=self.name)
        return spoken or []

    def in_mind(self, line: str, core: Sequence[str]) -> str:
        """Return the core memory and earlier messages that match the line."""
        memories = self.memory.memories.search(line, user_id={"eq": self.user}, limit=3).memories
        return "\n\n".join(
            [*core, "\n".join(["Said before:", *(f"- {memory.text}" for memory in memories)]) if memories else "Nothing was said yet."]
        )

    def speak(self, model: OpenAI, messages: list[Any]) -> list[str]:
        """Run the model until it stops requesting steps, and return its messages."""
        spoken: list[str] = []
        for _ in range(MOST_STEPS):
            done = model.chat.completions.create(model=self.model_name, messages=messages, tools=tools_of(self.memory))
            message = done.choices[0].message
            if not message.tool_calls:
                spoken += [message.content] if message.content and not spoken else []
                break
            if message.content:
                self.think(message.content)
            messages.append(message.model_dump(exclude_none=True))
            goes_on = False
            for call in message.tool_calls:
                result, more = self.run(call.model_dump(), spoken)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
                goes_on = goes_on or more
            if not goes_on:
                break
        return spoken

    def run(self, call: dict[str, Any], spoken: list[str]) -> tuple[str, bool]:
        """Return a call's result, and whether the agent gets another step."""
        name = call["function"]["name"]
        try:
            arguments = json.loads(call["function"]["arguments"] or "{}")
            heartbeat = bool(arguments.pop("request_heartbeat", False))
        except (ValueError, AttributeError):
            return "the arguments are no JSON object", True
        if name == "send_message":
            spoken.append(str(arguments.get("message", "")))
            return "sent", heartbeat
        done = self.memory.tools.resolve_function_call(name, arguments, self.session, user_id=self.user, agent_id=self.name)
        self.think(f"{name}: {done['formatted_response']}")
        return done["formatted_response"], heartbeat or not done["success"]


def tools_of(memory: SyncMemoryClient) -> list[Any]:
    """Return the model's tools, each with an option to request a heartbeat."""
    schemas = memory.tools.schemas()
    tools: list[Any] = [SEND_MESSAGE, *(schema.to_dict() for name in TOOLS if (schema := schemas.get_by_name(name)))]
    for tool in tools:
        rules = tool["function"]["parameters"]
        rules["properties"] = {**rules["properties"], "request_heartbeat": HEARTBEAT}
    return tools


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", "--base-url", dest="base_url", default="http://127.0.0.1:8000", help="the memory server")
    parser.add_argument("--user", default="me", help="user id")
    parser.add_argument("--agent", default="companion", help="the agent's name")
    parser.add_argument("--model", default=os.environ.get("CHAT_MODEL", "gpt-5-mini"))
    options = parser.parse_args()
    console = Console()
    named = os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")
    model = OpenAI(api_key=os.environ.get("OPENAI_API_KEY") or "none") if named else None
    try:
        with SyncMemoryClient(MemoryClientConfig(base_url=options.base_url)) as memory:
            agent = Agent(memory, model, options.model, options.user, options.agent)
            agent.say = lambda line: console.print(line, style="green", markup=False)
            agent.think = lambda thought: console.print(thought, style="dim", markup=False)
            agent.make_blocks()
            while True:
                agent.answer(console.input("[bold]> [/bold]"))
    except (EOFError, KeyboardInterrupt):
        return
    except MemoryClientError as error:
        raise SystemExit(f"memory server: {error}") from error


if __name__ == "__main__":
    main()
