"""A trainer program for the 5.x client, whose paths contain a namespace.

It prints its results as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from supermemory import Supermemory

client = Supermemory(base_url=sys.argv[1], api_key="any-key")
SPACE = "athlete-1"


def wait_for(look: Callable[[], Any]) -> Any:
    """Poll for up to a minute and return the first nonempty result."""
    ends = time.monotonic() + 60
    while not (answer := look()) and time.monotonic() < ends:
        time.sleep(0.2)
    return answer


first = client.add(SPACE, content="I only train at home, no gym.", metadata={"kind": "habit"})
named = client.add(
    SPACE, content="Performed run: 5 km in 26 minutes", id="run-1", metadata={"kind": "workout"}, date="2026-11-01T10:00:00Z"
)
client.add("athlete-2", content="I always train at the gym downtown")
wait_for(lambda: client.documents.get(SPACE, "run-1").system.status == "done")
wait_for(lambda: len(client.profile(SPACE).profile.dynamic) == 2)
hits = client.search(SPACE, query="Where do I train?")
filtered = client.search(SPACE, query="training", filter={"field": "kind", "operator": "==", "value": "workout"})
document = client.documents.get(SPACE, "run-1")
listed = client.list(SPACE, "memories")
seen = {
    "status": first.status,
    "id": named.id,
    "content": document.content,
    "metadata": document.metadata,
    "dynamic": sorted(fact.memory for fact in client.profile(SPACE).profile.dynamic),
    "hits": [hit.memory for hit in hits.results],
    "filtered": [hit.memory for hit in filtered.results],
    "memories": sorted(memory.memory for memory in listed.memories),
    "documents": client.list(SPACE, "documents").pagination.total_items,
    "other": [fact.memory for fact in client.profile("athlete-2").profile.dynamic],
}
client.memories.forget(SPACE, ids=[hits.results[0].id])
seen["after_forget"] = [hit.memory for hit in client.search(SPACE, query="Where do I train?").results]
seen["deleted"] = client.documents.delete(SPACE, ids=["run-1"]).count
seen["after_delete"] = [hit.memory for hit in client.search(SPACE, query="run").results]
print(json.dumps(seen))
