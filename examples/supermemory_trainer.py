"""A personal trainer that remembers. It uses Supermemory's own client with this memory server.

    COMPAT_APIS=supermemory make serve
    pip install ./client 'supermemory==3.37.0' openai-agents
    export SUPERMEMORY_BASE_URL=http://127.0.0.1:8000 SUPERMEMORY_API_KEY=local
    python examples/supermemory_trainer.py

OPENAI_API_KEY or OPENAI_BASE_URL selects the model server. Describe a workout, press Ctrl-D, run
the program again, and ask "What should I do for my workout today?". The memory server also stores
the conversation as an Agents SDK session. If no model is configured, the program logs every line
and prints the facts for the agent.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

try:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, Tool, function_tool
    from openai import AsyncOpenAI
    from supermemory import Supermemory

    from agent_memory_client import MemoryClient, MemoryClientConfig
    from agent_memory_client.integrations.openai_agents import AgentMemorySession
except ImportError as missing:
    raise SystemExit(f"{missing.name} is missing: pip install ./client 'supermemory==3.37.0' openai-agents") from None

INSTRUCTIONS = "You are a personal trainer. Log every workout that you hear of. Before you suggest a workout, look up what is known."


def log_workout(memory: Supermemory, athlete: str, text: str) -> str:
    """Store a workout, a goal or a limit, which becomes searchable a moment later."""
    return f"logged ({memory.add(content=text, container_tag=athlete).status})"


def suggest_next_session(memory: Supermemory, athlete: str, question: str) -> str:
    """Format stable facts, recent facts and facts that match the question for the model."""
    profile = memory.profile(container_tag=athlete, q=question)
    results = profile.search_results.results if profile.search_results else []
    sections = {
        "Stable": profile.profile.static,
        "Recent": profile.profile.dynamic,
        "Fits the question": [result["memory"] for result in results if isinstance(result, dict)],
    }
    return "\n".join(f"{title}:\n" + "\n".join(f"- {line}" for line in lines) for title, lines in sections.items() if lines)


def tools_of(memory: Supermemory, athlete: str) -> list[Tool]:
    def log(text: str) -> str:
        """Remember a workout, goal or limit in the athlete's own words."""
        return log_workout(memory, athlete, text)

    def suggest(question: str) -> str:
        """Look up facts about the athlete before suggesting a workout."""
        return suggest_next_session(memory, athlete, question)

    return [
        function_tool(log, name_override="log_workout"),
        function_tool(suggest, name_override="suggest_next_session"),
    ]


async def talk(athlete: str) -> None:
    memory = Supermemory()
    has_model = bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))
    config = MemoryClientConfig(base_url=os.environ["SUPERMEMORY_BASE_URL"], api_key=os.environ.get("SUPERMEMORY_API_KEY"))
    async with MemoryClient(config) as client:
        session = AgentMemorySession(f"trainer-{athlete}", client, user_id=athlete)
        for line in sys.stdin:
            text = line.strip()
            if has_model:
                model = OpenAIChatCompletionsModel(os.environ.get("OPENAI_MODEL", "gpt-4o-mini"), AsyncOpenAI())
                agent = Agent(name="trainer", instructions=INSTRUCTIONS, tools=tools_of(memory, athlete), model=model)
                print((await Runner.run(agent, text, session=session)).final_output)
            elif text.endswith("?"):
                print(suggest_next_session(memory, athlete, text) or "Nothing is known yet.")
            else:
                print(log_workout(memory, athlete, text))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A personal trainer that remembers")
    parser.add_argument("--user", "--athlete", dest="athlete", default="me", help="user id")
    asyncio.run(talk(parser.parse_args().athlete))
