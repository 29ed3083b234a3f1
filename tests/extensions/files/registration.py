"""Register files in the tests that cover all features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from agent_memory.extensions.files.service import FileService
from tests.registrations import Registration, Request, Send

PATH = "/v1/files"
WORD = "xylophonist"
_ANA: dict[str, str] = {"user_id": "ana"}


def _of_file(ids: Any, method: str) -> list[Request]:
    return [
        (method, f"{PATH}/{quote(ids.made['file'], safe='')}", query, None) for query in (ids.where, {"namespace": "work", **_ANA}, _ANA)
    ]


_ATTACKS: dict[str, Callable[[Any], list[Request]]] = {
    "upload_file": lambda i: [
        ("POST", PATH, {"name": "mine.txt", **query, **more}, "mine")
        for query in (i.where, {"namespace": "work", **_ANA}, {"agent_id": i.user})
        for more in ({}, {"file_id": i.made["file"]}, {"file_id": "shared"})
    ],
    "list_files": lambda i: [("GET", PATH, query, None) for query in (i.where, {"namespace": "work", **_ANA}, _ANA, {})],
    "get_file": lambda i: _of_file(i, "GET"),
    "delete_file": lambda i: _of_file(i, "DELETE"),
}


class Files(Registration):
    recorded: ClassVar[Any] = {FileService: "files"}
    path_parts: ClassVar[Any] = {"f1": "{file_id}"}
    reads = (("GET", PATH, {}, None),)
    writes = (("DELETE", f"{PATH}/f1", {}, None),)
    searches = (("GET", PATH, {}, None),)
    attacks = _ATTACKS

    async def fill_victim(self, send: Send, where: dict[str, str]) -> dict[str, str]:
        made = await send("POST", PATH, params={"name": "zebraquartz.txt", **where}, content=b"zebraquartz tea")
        return {"file": made["id"]}

    def forged_lines(self, ids: Any, user: str) -> list[dict[str, Any]]:
        file = {"id": ids.made["file"], "name": "mine.txt", "media_type": "text/plain", "size": 4, "digest": "0" * 64}
        times = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}
        return [{"kind": "file", "passages": 1, "user_id": user, "namespace": "work", **file, **times}]

    async def fill_erased(self, send: Send, user: str, namespace: str) -> None:
        for where in ({}, {"namespace": namespace}):
            query = {"name": f"{WORD} of {user}.txt", "user_id": user, **where}
            await send("POST", PATH, params=query, content=f"A {WORD} lives at {namespace or 'home'} with {user}.")

    async def read_victim(self, send: Send, made: Mapping[str, str], where: dict[str, str]) -> list[Any]:
        return [await send("GET", f"{PATH}/{made['file']}", params=where)]


REGISTRATION = Files()
