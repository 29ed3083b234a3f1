"""A trainer program written for the hosted service. Only the server address differs.

Its argument selects the step: `log` (five inputs), `habit` (the same on two more days), or `read`
(a new process finds them). It prints its results as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from supermemory import NotFoundError, Supermemory

TAG, OTHER = "athlete-1", "athlete-2"
WORKOUTS = (
    "Performed bench press: 4 sets of 5 reps at 185.0 lbs. Notes: no knee pain",
    "Performed run: 5 km in 26 minutes",
    "Performed deadlift: 3 sets of 5 reps at 275.0 lbs",
    "I only train at home, no gym.",
    "I want to squat 300 lbs by summer",
)
client = Supermemory()


def wait_for(look: Callable[[], Any]) -> Any:
    """Poll for up to a minute and return the first nonempty result."""
    ends = time.monotonic() + 60
    while not (answer := look()) and time.monotonic() < ends:
        time.sleep(0.2)
    return answer


def add(content: str, **options: Any) -> str:
    """Add a document, wait until it is done, and return its id."""
    document = client.add(content=content, container_tag=TAG, **options)
    assert document.status == "queued", document.status
    wait_for(lambda: client.documents.get(document.id).status == "done")
    return document.id


def profile(question: str) -> dict[str, Any]:
    answer = client.profile(container_tag=TAG, q=question)
    results = answer.search_results.results
    return {
        "static": answer.profile.static,
        "dynamic": answer.profile.dynamic,
        "found": [result["memory"] for result in results],
        "keys": sorted(results[0]) if results else [],
    }


def log() -> dict[str, Any]:
    ids = [add(text, metadata={"kind": "workout", "number": number}) for number, text in enumerate(WORKOUTS)]
    client.add(content="I always train at the gym downtown", container_tag=OTHER)
    wait_for(lambda: client.profile(container_tag=OTHER).profile.dynamic)
    wait_for(lambda: len(client.profile(container_tag=TAG).profile.dynamic) >= 4)
    document = client.documents.get(ids[0])
    listed = client.documents.list(container_tags=[TAG], include_content=True)
    numbered = client.search.memories(
        q="workout", container_tag=TAG, filters={"AND": [{"key": "number", "value": "1", "filterType": "numeric", "numericOperator": "="}]}
    )
    return {
        "status": document.status,
        "content": document.content,
        "listed": [memory.content for memory in listed.memories],
        "total": listed.pagination.total_items,
        "profile": profile("What should I do for my workout today?"),
        "numbered": [result.memory for result in numbered.results],
        "chunks": [result.chunks[0].content for result in client.search.documents(q="bench press", container_tags=[TAG], limit=1).results],
        "other": client.profile(container_tag=OTHER).profile.dynamic,
    }


def habit() -> dict[str, Any]:
    for day, text in (("01", "Trained at home again, no gym today."), ("03", "I only train at home, no gym!")):
        add(text, metadata={"date": f"2026-11-{day}"})
    add("I only train at home, no gym.", metadata={"date": "2026-11-05"})
    add("I only train at home, no gym", metadata={"date": "2026-11-07"})
    wait_for(lambda: client.profile(container_tag=TAG).profile.static)
    return profile("Where do I train?")


def read() -> dict[str, Any]:
    before = profile("Do I go to a gym?")
    kept = add("My coach is called Maria", custom_id="coach-1")
    client.documents.update(kept, content="My coach is called Petra")
    wait_for(lambda: "My coach is called Petra" in profile("Who is my coach?")["found"])
    coach = profile("Who is my coach?")["found"]
    memory = next(
        result for result in client.search.memories(q="squat 300 lbs", container_tag=TAG).results if "squat" in (result.memory or "")
    )
    changed = client.memories.update_memory(container_tag=TAG, id=memory.id, new_content="I want to squat 320 lbs by summer")
    squat = [result.memory for result in client.search.memories(q="squat", container_tag=TAG, limit=3).results]
    forgotten = client.memories.forget(container_tag=TAG, id=memory.id)
    squat_after = [result.memory for result in client.search.memories(q="squat", container_tag=TAG).results]
    client.documents.delete(kept)
    try:
        client.documents.get(kept)
        missing = False
    except NotFoundError:
        missing = True
    deleted = client.documents.delete_bulk(container_tags=[TAG])
    wait_for(lambda: not client.profile(container_tag=TAG).profile.dynamic)
    return {
        "before": before,
        "coach": coach,
        "changed": changed.memory,
        "squat": squat,
        "forgotten": forgotten.forgotten,
        "squat_after": squat_after,
        "missing": missing,
        "deleted": deleted.success,
        "after": profile("Do I go to a gym?"),
        "other": client.profile(container_tag=OTHER).profile.dynamic,
    }


print(json.dumps({"log": log, "habit": habit, "read": read}[sys.argv[1]]()))
