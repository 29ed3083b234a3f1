"""A running coach that remembers. It uses Mem0's own client with this memory server.

    COMPAT_APIS=mem0 make serve
    pip install mem0ai openai
    python examples/mem0_coach.py --url http://127.0.0.1:8000

OPENAI_API_KEY or OPENAI_BASE_URL selects the model server. Press Ctrl-D and run the program again:
the coach remembers your goals and injuries. It stores its own style separately and ignores small
talk. If no model is configured, it prints the system prompt.
"""

from __future__ import annotations

import argparse
import os
import sys

try:
    from mem0 import MemoryClient
    from openai import OpenAI
except ImportError as missing:
    raise SystemExit(f"{missing.name} is missing: pip install mem0ai openai") from None

STYLE = "Short answers, one workout at a time"


def memories(client: MemoryClient, query: str, **entity: str) -> list[str]:
    """Return the memories of a user or agent that match a question, best first."""
    answer = client.search(query, filters={"AND": [entity]}, top_k=5)
    return [memory["memory"] for memory in (answer["results"] if isinstance(answer, dict) else answer)]


def prompt_of(client: MemoryClient, runner: str, text: str) -> str:
    """Return a system prompt with the coach's style and facts about the runner."""
    sections = {
        "How you speak": memories(client, "style of the coach", agent_id="coach"),
        "The runner": memories(client, text, user_id=runner),
    }
    return "\n".join(f"{title}:\n" + "\n".join(f"- {line}" for line in lines) for title, lines in sections.items() if lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="A running coach that remembers")
    parser.add_argument("--url", "--host", dest="host", default="http://127.0.0.1:8000", help="the memory server")
    parser.add_argument("--key", default="local", help="an API key of the server")
    parser.add_argument("--user", "--runner", dest="runner", default="me", help="user id")
    options = parser.parse_args()
    client = MemoryClient(api_key=options.key, host=options.host)
    model = OpenAI() if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL") else None
    if not memories(client, "style of the coach", agent_id="coach"):
        client.add([{"role": "user", "content": STYLE}], agent_id="coach", infer=False)
    for line in sys.stdin:
        text = line.strip()
        facts = prompt_of(client, options.runner, text)
        if model is None:
            answer = facts
        else:
            messages = [{"role": "system", "content": f"You are a running coach.\n{facts}"}, {"role": "user", "content": text}]
            answer = (
                model.chat.completions.create(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"), messages=messages)
                .choices[0]
                .message.content
            )
        print(answer)
        client.add([{"role": "user", "content": text}], user_id=options.runner)


if __name__ == "__main__":
    main()
