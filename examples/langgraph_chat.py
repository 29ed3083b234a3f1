"""A LangGraph chat that remembers facts.

    pip install './client[langgraph]' langchain-openai
    python examples/langgraph_chat.py --user ada          (OPENAI_API_KEY or OPENAI_BASE_URL selects the model server)

The model extracts facts, the memory server stores them, and each prompt contains the three nearest
facts. Press Ctrl-D and run the program again: the new thread recalls the facts. If no model is
configured, the program stores every line and prints the facts that it recalls.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from uuid import uuid4

try:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.store.base import BaseStore

    from agent_memory_client import MemoryClientConfig
    from agent_memory_client.integrations.langgraph import AgentMemoryStore
    from agent_memory_client.sync import SyncMemoryClient
except ImportError as missing:
    raise SystemExit(f"{missing.name} is missing: pip install './client[langgraph]' langchain-openai") from None

FACTS = ("facts",)
EXTRACT = "List the lasting facts that the user states about themselves, one short third-person sentence a line. No fact: answer NONE."


def build(store: BaseStore, model: ChatOpenAI | None) -> CompiledStateGraph:
    """Build a graph that recalls facts, answers with them, and stores new facts."""

    def answer(state: MessagesState) -> MessagesState:
        question = str(state["messages"][-1].content)
        facts = [item.value["text"] for item in store.search(FACTS, query=question, limit=3)]
        facts_text = (
            "What you know of the user:\n" + "\n".join(f"- {fact}" for fact in facts) if facts else "You know nothing of the user yet."
        )
        if model is None:
            return {"messages": [AIMessage(facts_text)]}
        return {"messages": [model.invoke([SystemMessage(f"You are a friendly assistant. {facts_text}"), *state["messages"]])]}

    def store_facts(state: MessagesState) -> MessagesState:
        text = next(str(message.content) for message in reversed(state["messages"]) if isinstance(message, HumanMessage))
        lines = [text] if model is None else str(model.invoke([SystemMessage(EXTRACT), HumanMessage(text)]).content).splitlines()
        for fact in (line.strip(" -") for line in lines):
            if fact and fact != "NONE" and not store.search(FACTS, filter={"text": fact}, limit=1):
                store.put(FACTS, str(uuid4()), {"text": fact})
        return {"messages": []}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_node("store_facts", store_facts)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", "store_facts")
    graph.add_edge("store_facts", END)
    return graph.compile(checkpointer=InMemorySaver(), store=store)


def chat(graph: CompiledStateGraph, lines: Callable[[], str | None]) -> None:
    """Answer each line in the same thread."""
    config = {"configurable": {"thread_id": str(uuid4())}}
    while (text := lines()) is not None:
        print(graph.invoke({"messages": [HumanMessage(text)]}, config)["messages"][-1].content, flush=True)


def line() -> str | None:
    """Return the next non-blank line, or None at the end of the input."""
    try:
        while not (text := input("> " if sys.stdin.isatty() else "").strip()):
            pass
    except EOFError:
        return None
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--user", default="ada", help="user id (ada)")
    parser.add_argument(
        "--url", "--base-url", dest="base_url", default="http://127.0.0.1:8000", help="the memory server (http://127.0.0.1:8000)"
    )
    parser.add_argument("--model", default=os.environ.get("CHAT_MODEL", "gpt-5-mini"), help="the model (gpt-5-mini)")
    options = parser.parse_args()
    named = os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")
    model = ChatOpenAI(model=options.model) if named else None
    with SyncMemoryClient(MemoryClientConfig(base_url=options.base_url)) as client:
        chat(build(AgentMemoryStore(client, user_id=options.user, namespace="langgraph-chat"), model), line)


if __name__ == "__main__":
    main()
