"""The extensions' resources and tools. Each extension adds itself to both lists."""

from __future__ import annotations

from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.resources.features.agents import Agents
from agent_memory_client.resources.features.archive import ArchiveTools
from agent_memory_client.resources.features.blocks import Blocks, BlockTools
from agent_memory_client.resources.features.files import Files
from agent_memory_client.resources.features.items import Items
from agent_memory_client.resources.features.procedures import Procedures, ProcedureTools
from agent_memory_client.resources.features.profile import Profiles, ProfileTools
from agent_memory_client.resources.features.timeline import Timelines, TimelineTools
from agent_memory_client.resources.model_tools import ModelTools
from agent_memory_client.transport import Transport

MODEL_TOOLS: tuple[type[ModelTools], ...] = (BlockTools, ArchiveTools, ProfileTools, ProcedureTools, TimelineTools)
"""Groups of tools for models, in the order of their schemas."""


class FeatureResources:
    """The extensions' resources, which share the client's transport."""

    def __init__(self, transport: Transport, config: MemoryClientConfig) -> None:
        self.agents = Agents(transport, config)
        self.blocks = Blocks(transport, config)
        self.files = Files(transport, config)
        self.items = Items(transport, config)
        self.profile = Profiles(transport, config)
        self.procedures = Procedures(transport, config)
        self.timeline = Timelines(transport, config)
