"""A running coach program written for the hosted service. Only the server address differs.

Its arguments are the server address, a key, and `model` or `keyless`. It prints JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

from mem0 import AsyncMemoryClient, MemoryClient

HOST, KEY, KIND = sys.argv[1:]
LINE = int(version("mem0ai").split(".")[0])
client = MemoryClient(api_key=KEY, host=HOST)


def results(answer: Any) -> list[dict[str, Any]]:
    return answer["results"] if isinstance(answer, dict) else answer


def search(query: str, filters: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    if LINE == 0:
        options["version"] = "v2"
    return results(client.search(query, filters=filters, **options))


def listed(filters: dict[str, Any]) -> list[dict[str, Any]]:
    return results(client.get_all(filters=filters, **({"version": "v2"} if LINE == 0 else {})))


def texts(memories: list[dict[str, Any]]) -> list[str]:
    return sorted(memory["memory"] for memory in memories)


def wait_for(look: Callable[[], Any]) -> Any:
    """Poll for up to a minute and return the first nonempty result."""
    ends = time.monotonic() + 60
    while not (answer := look()) and time.monotonic() < ends:
        time.sleep(0.2)
    return answer


def stored(text: str, **options: Any) -> str:
    """Store a memory verbatim and return its id."""
    return client.add([{"role": "user", "content": text}], infer=False, **options)["results"][0]["id"]


seen: dict[str, Any] = {}
client.project.update(
    custom_instructions="Remember what matters for training.",
    custom_categories=[
        {"goals": "races and times that the runner aims for"},
        {"constraints": "injuries, pain, what the runner must avoid"},
    ],
)
seen["project"] = client.project.get(fields=["custom_instructions", "custom_categories"])

# Statements become memories in the background; small talk does not.
for text in ("hey", "lol ok", "cool thanks", "gtg bye", "哈哈好的谢谢", "I want to run a marathon in under 4 hours"):
    client.add([{"role": "user", "content": text}], user_id="anna", metadata={"source": "chat"})
runner = {"AND": [{"user_id": "anna"}]}
wait_for(lambda: listed(runner))
seen["facts"] = texts(listed(runner))
seen["fact_metadata"] = listed(runner)[0]["metadata"]
wait_for(lambda: search("What is my goal?", runner))
seen["goal"] = texts(search("What is my marathon goal?", runner, **({"top_k": 5} if LINE == 2 else {"limit": 5})))
seen["score"] = search("What is my marathon goal?", runner, threshold=0.0)[0]["score"]

# A search by category finds the injury.
client.add([{"role": "user", "content": "My left knee hurts when I run downhill"}], user_id="anna")
constrained = {"AND": [{"user_id": "anna"}, {"categories": {"in": ["constraints"]}}]}
wait_for(lambda: search("What should I be careful with?", constrained, threshold=0.0))
seen["constraints"] = texts(search("What should I be careful with?", constrained, threshold=0.0))
seen["knee_categories"] = search("What should I be careful with?", constrained, threshold=0.0)[0]["categories"]

# A goal changed: a model recognizes it, and the old goal becomes history.
client.add([{"role": "user", "content": "Make that marathon under 3:45 now"}], user_id="anna")
wait_for(lambda: [text for text in texts(listed(runner)) if "3:45" in text])
(changed,) = [memory for memory in listed(runner) if "3:45" in memory["memory"]]
seen["goals"] = [text for text in texts(listed(runner)) if "marathon" in text]
seen["goal_history"] = [event["new_memory"] for event in client.history(changed["id"])]
client.batch_delete([{"memory_id": memory["id"]} for memory in listed(runner) if memory["id"] != changed["id"]])

# Metadata filters find workouts, with each logical operator.
workout = stored("10x400m intervals on the track", user_id="anna", metadata={"workout": "intervals", "km": 4})
stored("Easy run along the river", user_id="anna", metadata={"workout": "easy", "km": 8})
seen["by_metadata"] = texts(search("workout", {"AND": [{"user_id": "anna"}, {"metadata": {"workout": "intervals"}}]}, threshold=0.0))
seen["not"] = texts(listed({"AND": [{"user_id": "anna"}, {"metadata": {"km": {"gte": 1}}}, {"NOT": [{"metadata": {"workout": "easy"}}]}]}))
seen["or"] = len(listed({"OR": [{"metadata": {"workout": "easy"}}, {"metadata": {"workout": "intervals"}}]}))

# The coach's own style is separate from the facts about the runner.
stored("Short answers, one workout at a time", agent_id="coach")
stored("Long answers with the reasons", agent_id="other-coach")
seen["coach"] = texts(listed({"AND": [{"agent_id": "coach"}]}))
seen["both"] = len(listed({"OR": [{"user_id": "anna"}, {"agent_id": "coach"}]}))

# Each of two coaches sees the runner's facts beside its own style.
for coach in ("coach", "other-coach"):
    wait_for(lambda coach=coach: search("How to coach?", {"OR": [{"user_id": "anna"}, {"agent_id": coach}]}, threshold=0.0))
    seen[f"for_{coach}"] = texts(search("workouts, answers", {"OR": [{"user_id": "anna"}, {"agent_id": coach}]}, threshold=0.0))

# An injury that heals, and a day in the past.
today = datetime.now(UTC).date()
stored("Ankle is sprained", user_id="anna", expiration_date=str(today + timedelta(days=14)))
stored("Had a cold", user_id="anna", expiration_date=str(today - timedelta(days=1)))
healing = [memory for memory in listed(runner) if memory["expiration_date"]]
seen["healing"] = texts(healing)
seen["expires"] = healing[0]["expiration_date"] == str(today + timedelta(days=14))

# Two races stay separate, and deleting one race deletes only that one.
for run, text in (("boston-2025", "Boston starts in corral three"), ("nyc-2025", "New York starts in wave two")):
    stored(text, user_id="anna", run_id=run)
seen["boston"] = texts(listed({"AND": [{"user_id": "anna"}, {"run_id": "boston-2025"}]}))
client.delete_all(user_id="anna", run_id="boston-2025")
seen["boston_after"] = texts(listed({"AND": [{"user_id": "anna"}, {"run_id": "boston-2025"}]}))
seen["nyc_after"] = texts(listed({"AND": [{"user_id": "anna"}, {"run_id": "nyc-2025"}]}))

# A changed memory keeps its former text in its history.
client.update(workout, text="12x400m intervals on the track")
seen["updated"] = client.get(workout)["memory"]
seen["history"] = [(event["event"], event["old_memory"], event["new_memory"]) for event in client.history(workout)]
client.batch_update([{"memory_id": workout, "text": "8x400m intervals on the track"}])
seen["batch_updated"] = client.get(workout)["memory"]
client.batch_delete([{"memory_id": workout}])
seen["entities"] = sorted((entity["type"], entity["name"]) for entity in client.users()["results"])


def error_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - each line has error classes of its own
        return f"{type(error).__name__}: {error}"
    return "none"


async def talk() -> None:
    """Have the same conversation with the asyncio client."""
    talker = AsyncMemoryClient(api_key=KEY, host=HOST)
    await talker.add([{"role": "user", "content": "Bora likes hill sprints"}], user_id="bora", infer=False)
    options = {"version": "v2"} if LINE == 0 else {}
    seen["async"] = texts(results(await talker.search("hill sprints", filters={"AND": [{"user_id": "bora"}]}, **options)))
    seen["async_all"] = texts(results(await talker.get_all(filters={"AND": [{"user_id": "bora"}]}, **options)))
    await talker.delete_all(user_id="bora")
    seen["async_after"] = results(await talker.get_all(filters={"AND": [{"user_id": "bora"}]}, **options))


asyncio.run(talk())
seen["missing"] = error_of(lambda: client.get(workout))
seen["unsupported"] = error_of(lambda: client.get_summary())
seen["profile"] = client.get_profile("anna")["entity_id"] if LINE > 1 else "anna"
client.delete_users(user_id="anna")
seen["anna_after"] = listed(runner)
seen["coach_after"] = texts(listed({"AND": [{"agent_id": "coach"}]}))
print(json.dumps(seen))
