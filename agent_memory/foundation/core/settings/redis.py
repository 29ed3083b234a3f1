"""Define the Redis settings."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr, field_validator
from pydantic_core import PydanticCustomError

from agent_memory.foundation.core.settings.base import Group, internal, setting


class RedisSettings(Group):
    """Redis settings. If `REDIS_URL` is unset, the server runs an embedded Redis in `DATA_DIR`.

    The number of `buckets` cannot change once the store exists.
    """

    url: SecretStr | None = setting(None, "REDIS_URL", meaning="URL of a Redis with the query engine; if unset, `serve` runs its own")
    data_dir: Path = setting(Path("agent-memory-data"), "DATA_DIR", meaning="data directory of the embedded Redis")
    key_prefix: str = setting(
        "am", "KEY_PREFIX", meaning="prefix of all keys, so that installations can share a Redis", pattern=r"^[A-Za-z0-9_.-]{1,32}$"
    )
    durability: Literal["everysec", "strict"] = setting(
        "everysec", "DURABILITY", meaning="acknowledge a write after Redis has executed it (`everysec`) or stored it on disk (`strict`)"
    )
    buckets: int = setting(
        1,
        "REDIS_BUCKETS",
        meaning="for a Redis Cluster: number of buckets (groups of tenants), at most 64. Fixed at first start "
        "([details](scaling.md#redis-cluster))",
        ge=1,
        le=64,
    )
    pool_size: int = internal(128, "REDIS_POOL_SIZE", ge=4)
    command_timeout_seconds: float = internal(5.0, "REDIS_COMMAND_TIMEOUT_SECONDS", gt=0)
    embedded_port: int = internal(0, "EMBEDDED_REDIS_PORT", ge=0, le=65535)

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: SecretStr | None) -> SecretStr | None:
        """Raise an error if this is not a Redis URL. The error omits the URL."""
        if url is None:
            return None
        try:
            parts = urlsplit(url.get_secret_value())
            usable = (parts.scheme in ("redis", "rediss") and parts.hostname and parts.port != 0) or (parts.scheme == "unix" and parts.path)
        except ValueError:
            usable = False
        if not usable:
            raise PydanticCustomError("redis_url", "must look like redis://[user:password@]host:6379/0 (or rediss://, unix://)")
        return url
