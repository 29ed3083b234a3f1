"""Define the settings for background work."""

from __future__ import annotations

from typing import ClassVar

from agent_memory.foundation.core.settings.base import Group, archived, internal


class WorkerSettings(Group):
    docket_name: str = archived("agent-memory", "DOCKET_NAME", pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    concurrency: int = internal(40, "WORKER_CONCURRENCY", ge=1, le=1000)
    redelivery_timeout_seconds: float = internal(60.0, "WORKER_REDELIVERY_TIMEOUT_SECONDS", ge=1)
    lease_seconds: float = internal(60.0, "WORKER_LEASE_SECONDS", ge=1)
    max_attempts: int = internal(8, "WORKER_MAX_ATTEMPTS", ge=1)
    retry_base_seconds: float = internal(1.0, "WORKER_RETRY_BASE_SECONDS", gt=0)
    retry_max_seconds: float = internal(300.0, "WORKER_RETRY_MAX_SECONDS", gt=0)
    index_batch: int = internal(64, "WORKER_INDEX_BATCH", ge=1, le=1024)
    tenant_share: ClassVar[float] = 0.5
    niceness: int = internal(5, "WORKER_NICENESS", ge=0, le=19)
