"""Upload files with the real client and print the results as JSON.

Its argument is the client's major version, 3 or 5.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from supermemory import Supermemory

TAG = "athlete-1"
client: Any = Supermemory()


def wait_for(look: Callable[[], Any]) -> Any:
    """Poll for up to a minute and return the first nonempty result."""
    ends = time.monotonic() + 60
    while not (found := look()):
        assert time.monotonic() < ends
        time.sleep(0.2)
    return found


def upload(text: str) -> Any:
    file = ("plan.md", text.encode(), "text/markdown")
    if sys.argv[1] == "3":
        return client.documents.upload_file(file=file, container_tags=json.dumps([TAG, "plans"]), metadata=json.dumps({"coach": "Petra"}))
    return client.documents.upload_file(TAG, file=file, metadata=json.dumps({"coach": "Petra"}))


def read(name: str) -> Any:
    return client.documents.get(name) if sys.argv[1] == "3" else client.documents.get(TAG, name)


def status(document: Any) -> str:
    return document.status if sys.argv[1] == "3" else document.system.status


def search() -> list[str]:
    if sys.argv[1] == "3":
        results = client.search.documents(q="When is the swimming day?", container_tags=[TAG]).results
        return [chunk.content for result in results for chunk in result.chunks]
    return [result.chunk for result in client.search(TAG, query="When is the swimming day?", search_mode="chunks").results]


first = upload("Swimming is on Tuesday.")
document = wait_for(lambda: (found := read(first.id)) and status(found) == "done" and found)
found = wait_for(search)
again = upload("Swimming is on Friday.")
wait_for(lambda: status(read(first.id)) == "done")
changed = search()
if sys.argv[1] == "3":
    client.documents.delete(first.id)
else:
    client.documents.delete(TAG, ids=[first.id])
seen = {"title": document.title, "metadata": document.metadata, "content": document.content, "found": found, "same": again.id == first.id}
print(json.dumps({**seen, "changed": changed, "after": search()}, default=dict))
