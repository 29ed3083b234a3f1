"""An example feature that gives each user a motto and implements every part a feature can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fastapi import Body, Response
from pydantic import BaseModel

from agent_memory.foundation.api.dependencies import ScopeDep, ServicesDep, UserQuery, WriteScopeDep
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ModelResponse
from agent_memory.foundation.core.feature import Feature, KeySpace, Services
from agent_memory.foundation.core.mcp_tools import Caller, ToolSet
from agent_memory.foundation.core.prompt_sections import PromptAsk, SectionKind, SectionText, SessionMessages
from agent_memory.foundation.foundation import Foundation
from agent_memory.foundation.storage.connection import Pipe
from agent_memory_client._tools.definitions import Definition, text_rule
from agent_memory_client._tools.scope import ToolScope
from agent_memory_client._wire.requests import Call
from agent_memory_client.resources.model_tools import ModelTools


class Motto(BaseModel):
    """A user's motto."""

    text: str = ""


class MottoStore:
    def __init__(self, foundation: Foundation) -> None:
        self.client = foundation.client
        self._root = foundation.keys.root

    def key(self, tenant: str, user_id: str | None) -> str:
        return f"{self._root}motto:{tenant}:{user_id}"

    async def read(self, tenant: str, user_id: str | None) -> Motto:
        return Motto(text=(await self.client.get(self.key(tenant, user_id)) or b"").decode())  # pyright: ignore[reportAttributeAccessIssue]


@dataclass
class MottoReads:
    """The motto section of one prompt."""

    key: str
    kind: SectionKind
    text: str = ""

    def queue_section(self, pipe: Pipe) -> int:
        pipe.get(self.key)
        return 1

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> MottoReads:
        """Read the motto from the reply."""
        return MottoReads(self.key, self.kind, (replies[0] or b"").decode())

    def fit_section(self, tokens: int | None) -> MottoReads:
        """Truncate the motto to `tokens` words."""
        return MottoReads(self.key, self.kind, " ".join(self.text.split()[:tokens]))

    def count_tokens(self) -> int:
        """Count each word as a token."""
        return len(self.text.split())

    def render_section(self, messages: SessionMessages | None) -> SectionText:
        """Return one message, or none if there is no motto."""
        text = f"{self.kind}: {self.text}"
        return SectionText(parts=[text]) if self.text else SectionText()


class MottoSection:
    """Shows the user's motto in a prompt."""

    kind = SectionKind.ALWAYS

    def __init__(self, store: MottoStore) -> None:
        self._store = store

    async def open_section(self, ask: PromptAsk) -> MottoReads | None:
        """Return None if the prompt has no user."""
        user = ask.reader.user_id
        return None if user is None else MottoReads(self._store.key(ask.scope.tenant, user), self.kind)


class RecalledMottoSection(MottoSection):
    """The same section, placed after the memories."""

    kind = SectionKind.RECALLED


router = operations("mottos")


@router.get("/v1/motto", operation_id="get_motto", response_model=Motto)
async def get_motto(services: ServicesDep, scope: ScopeDep, user_id: UserQuery = None) -> Response:
    """Read a motto."""
    return ModelResponse(await services[MottoStore].read(scope.tenant, user_id))


@router.put("/v1/motto", operation_id="put_motto", response_model=Motto)
async def put_motto(services: ServicesDep, scope: WriteScopeDep, body: Annotated[Motto, Body()], user_id: UserQuery = None) -> Response:
    """Store a motto."""
    store = services[MottoStore]
    await store.client.set(store.key(scope.tenant, user_id), body.text)
    return ModelResponse(body)


class WhoseMotto(BaseModel):
    """Arguments of read_motto."""

    user_id: str | None = None


TOOLS = ToolSet()


@TOOLS.tool(WhoseMotto, Motto)
async def read_motto(services: Services, caller: Caller, arguments: WhoseMotto) -> BaseModel:
    """Tells what a user goes by."""
    return await services[MottoStore].read(caller.scope.tenant, arguments.user_id or caller.user_id)


class MottoTools(ModelTools):
    """The client's motto tool."""

    definitions: ClassVar[tuple[Definition, ...]] = (
        Definition("tell_motto", "Tells what the user of this conversation goes by.", {"tone": text_rule("How to say it.")}),
    )

    async def run_tool(self, name: str, values: Mapping[str, Any], scope: ToolScope) -> dict[str, Any]:
        motto = await self._read(Motto, Call("GET", "/v1/motto", {"user_id": scope.user_id}))  # pyright: ignore[reportArgumentType]
        return {"summary": f"{name}: {motto.text}", "agent": scope.agent_id}


def open_mottos(foundation: Foundation, services: Services) -> None:
    store = MottoStore(foundation)
    services.add(store, MottoSection(store), RecalledMottoSection(store))


MOTTOS = Feature(
    name="mottos",
    open=open_mottos,
    routes=("tests.support.mottos:router",),
    keys=(KeySpace("motto:<tenant>:<user>", "string", "a motto", "until deleted"),),
    section=MottoSection,
    tools=("tests.support.mottos:TOOLS",),
)
LATE_MOTTOS = Feature(name="late mottos", open=lambda foundation, services: None, section=RecalledMottoSection)
