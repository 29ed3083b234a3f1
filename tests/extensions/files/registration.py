"""Register files in the tests that cover all features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from agent_memory.extensions.files.service import FileService
from tests.registrations import Registration, Request, Send

PATH = "/v1/files"
_ANA: dict[str, str] = {"user_id": "ana"}


def _of_file(ids: Any, method: str) -> list[Request]:
    return [
        (method, f"{PATH}/{quote(ids.made['file'], safe='')}", query, None) for query in (ids.where, {"namespace": "work", **_ANA}, _ANA)
    ]


_ATTACKS: dict[str, Callable[[Any], list[Request]]] = {
    "upload_file": lambda i: [
        ("POST", PATH, {"name": "zebraquartz.txt", **query}, "mine")
        for query in (i.where, {"namespace": "work", **_ANA}, {"agent_id": i.user})
    ],
    "list_files": lambda i: [("GET", PATH, query, None) for query in (i.where, {"namespace": "work", **_ANA}, _ANA, {})],
    "get_file": lambda i: _of_file(i, "GET"),
    "delete_file": lambda i: _of_file(i, "DELETE"),
}


class Files(Registration):
    """Files and their passages."""

    recorded: ClassVar[Any] = {FileService: "files"}
    path_parts: ClassVar[Any] = {"f1": "{file_id}"}
    reads = (("GET", PATH, {}, None),)
    writes = (("DELETE", f"{PATH}/f1", {}, None),)
    searches = (("GET", PATH, {}, None),)
    attacks = _ATTACKS

    async def fill_victim(self, send: Send, where: dict[str, str]) -> dict[str, str]:
        made = await send("POST", PATH, params={"name": "zebraquartz.txt", **where}, content=b"zebraquartz tea")
        return {"file": made["id"]}

    async def read_victim(self, send: Send, made: Mapping[str, str], where: dict[str, str]) -> list[Any]:
        return [await send("GET", f"{PATH}/{made['file']}", params=where)]


REGISTRATION = Files()
