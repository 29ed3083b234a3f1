"""Makes the search filters available under the archived client's module name."""

from __future__ import annotations

from agent_memory_client.models.filters import CreatedAt as CreatedAt
from agent_memory_client.models.filters import DateFilter as DateFilter
from agent_memory_client.models.filters import Entities as Entities
from agent_memory_client.models.filters import EventDate as EventDate
from agent_memory_client.models.filters import ExtractionStrategy as ExtractionStrategy
from agent_memory_client.models.filters import LastAccessed as LastAccessed
from agent_memory_client.models.filters import MemoryType as MemoryType
from agent_memory_client.models.filters import Namespace as Namespace
from agent_memory_client.models.filters import SessionId as SessionId
from agent_memory_client.models.filters import TagFilter as TagFilter
from agent_memory_client.models.filters import Topics as Topics
from agent_memory_client.models.filters import UserId as UserId
