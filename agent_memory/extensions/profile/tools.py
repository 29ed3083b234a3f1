"""The MCP tool that lets a model read a profile."""

from __future__ import annotations

from pydantic import BaseModel

from agent_memory.extensions.profile.service import ProfileService
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.mcp_tools import Caller, ToolSet
from agent_memory_client.models.features.profile import Profile, ProfileQuery

TOOLS = ToolSet()


@TOOLS.tool(ProfileQuery, Profile, offered="core")
async def get_profile(services: Services, caller: Caller, arguments: ProfileQuery) -> BaseModel:
    """Returns a user's profile: stable facts (`static`), current facts (`dynamic`), and slots such as the user's home.

    Read the profile at the start of a conversation, and before you plan something for the user or give advice. With
    `query`, the answer also contains memories that are relevant to what you are about to do.
    """
    user_id, namespace = arguments.user_id or caller.user_id, arguments.namespace or caller.namespace
    return await services[ProfileService].read(caller.scope, user_id, namespace, query=arguments.query, limit=arguments.limit)


@TOOLS.resource("profile")
async def profile_resource(services: Services, caller: Caller, user_id: str, parameter: str) -> BaseModel:
    """The stable and current facts about the user."""
    return await services[ProfileService].read(caller.scope, user_id, caller.namespace)
