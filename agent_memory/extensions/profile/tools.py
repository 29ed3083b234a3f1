"""The MCP tool with which a model reads a profile."""

from __future__ import annotations

from pydantic import BaseModel

from agent_memory.extensions.profile.service import ProfileService
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.mcp_tools import Caller, ToolSet
from agent_memory_client.models.features.profile import Profile, ProfileQuery

TOOLS = ToolSet()


@TOOLS.tool(ProfileQuery, Profile, offered="core")
async def get_profile(services: Services, caller: Caller, arguments: ProfileQuery) -> BaseModel:
    """Returns the profile of a user: what is stable (`static`), what is current (`dynamic`), and the values of slots such as their home.

    Read it at the start of a conversation, before you plan something for the user or give advice. With `query` it also finds the memories
    that fit what you are about to do.
    """
    user_id, namespace = arguments.user_id or caller.user_id, arguments.namespace or caller.namespace
    return await services[ProfileService].read(caller.scope, user_id, namespace, query=arguments.query, limit=arguments.limit)


@TOOLS.resource("profile")
async def profile_resource(services: Services, caller: Caller, user_id: str, parameter: str) -> BaseModel:
    """What is stable and what is current about the user."""
    return await services[ProfileService].read(caller.scope, user_id, caller.namespace)
