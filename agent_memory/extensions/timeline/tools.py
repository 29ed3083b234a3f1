"""The MCP tool that lets a model read a timeline."""

from __future__ import annotations

from pydantic import BaseModel

from agent_memory.extensions.timeline.service import TimelineService
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.mcp_tools import Caller, ToolSet
from agent_memory_client.models.features.timeline import Timeline, TimelineDays, TimelineQuery

TOOLS = ToolSet()


@TOOLS.tool(TimelineDays, Timeline, offered="agent")
async def get_timeline(services: Services, caller: Caller, arguments: TimelineDays) -> BaseModel:
    """Tells what happened to a user and when: the dated events from the day `from` through the day `to`, in order.

    Use it for questions about a time ("What happened in March?", "When did I last see the dentist?"). `topic` and
    `entity` narrow the result.
    """
    owner = {"user_id": arguments.user_id or caller.user_id, "namespace": arguments.namespace or caller.namespace}
    return await services[TimelineService].read(caller.scope, TimelineQuery.model_validate({**dict(arguments), **owner}))
