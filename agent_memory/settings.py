"""Every setting, its environment variable and its default. Only composition roots build a `Settings`; the rest receive it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from agent_memory.errors import StartupError


class _Group(BaseSettings):
    """One group of settings, read from the environment and from `.env`; blank values count as absent."""

    model_config = SettingsConfigDict(
        env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True, case_sensitive=False, populate_by_name=True
    )


def _env(default: Any, *names: str, **rules: Any) -> Any:
    """A field read from the environment variables `names`, the first that is set."""
    return Field(default, validation_alias=AliasChoices(*names), **rules)


class ServerSettings(_Group):
    """The HTTP face."""

    host: str = _env("127.0.0.1", "HOST")
    port: int = _env(8000, "PORT", ge=0, le=65535)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = _env("INFO", "LOG_LEVEL")
    log_format: Literal["console", "json"] = _env("console", "LOG_FORMAT")
    max_body_bytes: int = _env(8 * 1024 * 1024, "MAX_BODY_BYTES", ge=1024)
    request_timeout_seconds: float = _env(30.0, "REQUEST_TIMEOUT_SECONDS", gt=0)
    head_timeout_seconds: float = _env(10.0, "HEAD_TIMEOUT_SECONDS", gt=0)
    body_timeout_seconds: float = _env(0.7, "BODY_TIMEOUT_SECONDS", gt=0)
    max_concurrent_requests: int = _env(256, "MAX_CONCURRENT_REQUESTS", ge=1)
    shutdown_drain_seconds: float = _env(2.0, "SHUTDOWN_DRAIN_SECONDS", ge=0)
    shutdown_grace_seconds: int = _env(20, "SHUTDOWN_GRACE_SECONDS", ge=1)
    docs: bool = _env(True, "DOCS_ENABLED")
    strict_fields: bool = _env(False, "STRICT_FIELDS")
    access_log: bool = _env(True, "ACCESS_LOG")
    audit_log: bool = _env(False, "AUDIT_LOG")
    cors_allowed_origins: str = _env("", "CORS_ALLOWED_ORIGINS")
    allowed_hosts: str = _env("", "ALLOWED_HOSTS")
    public_url: str | None = _env(None, "PUBLIC_URL", pattern=r'^https?://[^\s"/?#]+(/[^\s"?#]*)?$')


class RedisSettings(_Group):
    """Where the data is kept. Without `REDIS_URL` the embedded Redis runs and keeps its files in `DATA_DIR`.

    `buckets`: into how many parts the tenants are divided, each with indexes and an outbox of its own; fixed when a store is made.
    """

    url: SecretStr | None = _env(None, "REDIS_URL")
    data_dir: Path = _env(Path("agent-memory-data"), "DATA_DIR")
    key_prefix: str = _env("am", "KEY_PREFIX", pattern=r"^[A-Za-z0-9_.-]{1,32}$")
    durability: Literal["everysec", "strict"] = _env("everysec", "DURABILITY")
    buckets: int = _env(1, "REDIS_BUCKETS", ge=1, le=64)
    pool_size: int = _env(128, "REDIS_POOL_SIZE", ge=4)
    command_timeout_seconds: float = _env(5.0, "REDIS_COMMAND_TIMEOUT_SECONDS", gt=0)
    embedded_port: int = _env(0, "EMBEDDED_REDIS_PORT", ge=0, le=65535)


class ModelSettings(_Group):
    """Which models are called. `auto` means: an OpenAI-compatible server when a key or a base URL is given, else local."""

    provider: Literal["auto", "openai", "local"] = _env("auto", "MODEL_PROVIDER")
    embedding_provider: Literal["auto", "openai", "local"] = _env("auto", "EMBEDDING_PROVIDER")
    openai_api_key: SecretStr | None = _env(None, "OPENAI_API_KEY")
    openai_base_url: str | None = _env(None, "OPENAI_BASE_URL", "OPENAI_API_BASE")
    embedding_base_url: str | None = _env(None, "EMBEDDING_BASE_URL")
    embedding_api_key: SecretStr | None = _env(None, "EMBEDDING_API_KEY")
    generation_model: str = _env("gpt-5-mini", "GENERATION_MODEL")
    fast_model: str | None = _env(None, "FAST_MODEL")
    embedding_model: str = _env("text-embedding-3-small", "EMBEDDING_MODEL")
    embedding_dimensions: int | None = _env(None, "EMBEDDING_DIMENSIONS", "REDISVL_VECTOR_DIMENSIONS", ge=1, le=32768)
    rerank_base_url: str | None = _env(None, "RERANK_BASE_URL")
    rerank_api_key: SecretStr | None = _env(None, "RERANK_API_KEY")
    rerank_model: str = _env("rerank-v3.5", "RERANK_MODEL", min_length=1)
    context_windows: dict[str, int] = _env({}, "MODEL_CONTEXT_WINDOWS")
    default_context_window: int = _env(16000, "DEFAULT_CONTEXT_WINDOW", ge=256)
    timeout_seconds: float = _env(60.0, "MODEL_TIMEOUT_SECONDS", gt=0)
    query_embedding_timeout_seconds: float = _env(2.0, "QUERY_EMBEDDING_TIMEOUT_SECONDS", gt=0)
    embedding_cache_seconds: int = _env(3600, "EMBEDDING_CACHE_SECONDS", ge=0)
    max_concurrent_calls: int = _env(16, "MODEL_MAX_CONCURRENT_CALLS", ge=1)
    local_model_dir: Path | None = _env(None, "LOCAL_MODEL_DIR")
    local_threads: int = _env(1, "LOCAL_MODEL_THREADS", ge=1)
    local_precision: Literal["int8", "fp32"] = _env("int8", "LOCAL_MODEL_PRECISION")

    @property
    def use_openai_chat(self) -> bool:
        """Whether summaries and facts come from an OpenAI-compatible server."""
        return self.provider == "openai" or (self.provider == "auto" and self._has_server)

    @property
    def use_openai_embeddings(self) -> bool:
        """Whether embeddings come from an OpenAI-compatible server."""
        own = self.embedding_base_url is not None or self.embedding_api_key is not None
        return self.embedding_provider == "openai" or (self.embedding_provider == "auto" and (own or self.use_openai_chat))

    @property
    def _has_server(self) -> bool:
        return self.openai_api_key is not None or self.openai_base_url is not None


class WorkingMemorySettings(_Group):
    """Sessions: when they are summarized and what a message must look like."""

    summarize: bool = _env(True, "ENABLE_WORKING_MEMORY_SUMMARIZATION")
    summarization_threshold: float = _env(0.7, "SUMMARIZATION_THRESHOLD", gt=0.0, le=1.0)
    summarization_keep: float = _env(0.4, "SUMMARIZATION_KEEP", gt=0.0, le=1.0)
    require_timestamps: bool = _env(False, "REQUIRE_MESSAGE_TIMESTAMPS")
    max_future_seconds: int = _env(300, "MAX_FUTURE_TIMESTAMP_SECONDS", ge=0)


class LongTermSettings(_Group):
    """Long-term memory: what is promoted and how it is indexed.

    `neighbours_after_seconds`: a message is found at once; those around it are indexed again with its words that much later, so that a
    conversation's next messages are waited for and each message is indexed twice instead of once for each neighbour.
    `forgotten_kept_days`: so long what was forgotten can be brought back; 0 keeps it for ever.
    """

    enabled: bool = _env(True, "LONG_TERM_MEMORY")
    promote_messages: bool = _env(True, "INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY")
    extract_facts: bool = _env(True, "ENABLE_DISCRETE_MEMORY_EXTRACTION")
    extraction_debounce_seconds: float = _env(30.0, "EXTRACTION_DEBOUNCE_SECONDS", ge=0)
    extraction_batch_tokens: int = _env(2000, "EXTRACTION_BATCH_TOKENS", ge=100)
    usage_every_minutes: float = _env(15.0, "USAGE_EVERY_MINUTES", ge=0)
    neighbours_after_seconds: float = _env(2.0, "NEIGHBOURS_AFTER_SECONDS", ge=0, le=3600)
    redact_secrets: bool = _env(True, "REDACT_SECRETS")
    review_supersessions: bool = _env(False, "REVIEW_SUPERSESSIONS")
    forgotten_kept_days: float = _env(30.0, "FORGOTTEN_KEPT_DAYS", ge=0)
    quarantine: bool = _env(True, "QUARANTINE")
    vector_algorithm: Literal["FLAT", "HNSW"] = _env("FLAT", "VECTOR_ALGORITHM", "REDISVL_INDEXING_ALGORITHM")
    vector_type: Literal["FLOAT16", "FLOAT32"] = _env("FLOAT16", "VECTOR_TYPE")


class SearchSettings(_Group):
    """Searching: what is near enough to be an answer, and what a prompt may spend."""

    min_similarity: float = _env(0.2, "SEARCH_MIN_SIMILARITY", ge=-1.0, le=1.0)
    settle_seconds: float = _env(2.0, "SEARCH_SETTLE_SECONDS", ge=0)
    optimize_seconds: float = _env(2.0, "QUERY_OPTIMIZATION_SECONDS", gt=0)
    optimize_template: str | None = _env(None, "QUERY_OPTIMIZATION_PROMPT_TEMPLATE", pattern=r"\{query\}")
    optimize_least: int = _env(2, "MIN_OPTIMIZED_QUERY_LENGTH", ge=1)
    rerank_seconds: float = _env(0.5, "RERANK_SECONDS", gt=0)
    rerank_candidates: int = _env(50, "RERANK_CANDIDATES", ge=1, le=200)
    prompt_memories: int = _env(20, "PROMPT_MEMORIES", ge=1, le=100)
    prompt_memory_tokens: int = _env(2000, "PROMPT_MEMORY_TOKENS", ge=64)
    prompt_all_users: bool = _env(False, "PROMPT_WITHOUT_USER_SEES_ALL_USERS")


class WorkerSettings(_Group):
    """Background work. `niceness`: by how much a worker process of its own gives way to the API and to Redis on the same machine."""

    docket_name: str = _env("agent-memory", "DOCKET_NAME", pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    concurrency: int = _env(40, "WORKER_CONCURRENCY", ge=1, le=1000)
    redelivery_timeout_seconds: float = _env(60.0, "WORKER_REDELIVERY_TIMEOUT_SECONDS", ge=1)
    lease_seconds: float = _env(60.0, "WORKER_LEASE_SECONDS", ge=1)
    max_attempts: int = _env(8, "WORKER_MAX_ATTEMPTS", ge=1)
    retry_base_seconds: float = _env(1.0, "WORKER_RETRY_BASE_SECONDS", gt=0)
    retry_max_seconds: float = _env(300.0, "WORKER_RETRY_MAX_SECONDS", gt=0)
    index_batch: int = _env(64, "WORKER_INDEX_BATCH", ge=1, le=1024)
    tenant_share: float = _env(0.5, "WORKER_TENANT_SHARE", gt=0.0, le=1.0)
    niceness: int = _env(5, "WORKER_NICENESS", ge=0, le=19)


class ForgettingSettings(_Group):
    """What workers forget by themselves: nothing, unless it is switched on and at least one bound is given."""

    enabled: bool = _env(False, "FORGETTING_ENABLED")
    every_minutes: float = _env(60.0, "FORGETTING_EVERY_MINUTES", gt=0)
    max_age_days: float | None = _env(None, "FORGETTING_MAX_AGE_DAYS", ge=0)
    max_inactive_days: float | None = _env(None, "FORGETTING_MAX_INACTIVE_DAYS", ge=0)
    budget_keep_top_n: int | None = _env(None, "FORGETTING_BUDGET_KEEP_TOP_N", ge=0)


class CompactionSettings(_Group):
    """How repeats are merged. `COMPACTION_EVERY_MINUTES=0` leaves it to requests."""

    every_minutes: float = _env(10.0, "COMPACTION_EVERY_MINUTES", ge=0)
    semantic: bool = _env(True, "COMPACT_SEMANTIC_DUPLICATES")
    similarity: float = _env(0.92, "COMPACTION_SIMILARITY", gt=0.5, le=1.0)


class ViewSettings(_Group):
    """Summary views."""

    refresh_every_minutes: float = _env(60.0, "SUMMARY_VIEW_REFRESH_EVERY_MINUTES", gt=0)
    run_seconds: float = _env(20.0, "SUMMARY_VIEW_RUN_SECONDS", gt=0)


class McpSettings(_Group):
    """The MCP face. Of hosts the first part counts (`memory.example.com`, with or without a port); `*` allows every one."""

    host: str = _env("127.0.0.1", "MCP_HOST")
    port: int = _env(9000, "MCP_PORT", ge=0, le=65535)
    on_api: bool = _env(True, "MCP_ON_API")
    namespace: str | None = _env(None, "DEFAULT_MCP_NAMESPACE", max_length=512)
    user_id: str | None = _env(None, "DEFAULT_MCP_USER_ID", max_length=512)
    token: SecretStr | None = _env(None, "MCP_TOKEN")
    allowed_hosts: str = _env("", "MCP_ALLOWED_HOSTS")


class AuthSettings(_Group):
    """Who may ask."""

    auth_mode: Literal["disabled", "token", "oauth2"] = _env("disabled", "AUTH_MODE")
    disable_auth: bool | None = _env(None, "DISABLE_AUTH")
    token_auth_enabled: bool = _env(False, "TOKEN_AUTH_ENABLED")
    open_to_network: bool = _env(False, "AUTH_DISABLED_ON_NETWORK")
    secret: SecretStr | None = _env(None, "AUTH_SECRET", min_length=16)
    admin_token: SecretStr | None = _env(None, "AUTH_ADMIN_TOKEN", min_length=16)
    oauth2_issuer_url: str | None = _env(None, "OAUTH2_ISSUER_URL")
    oauth2_audience: str | None = _env(None, "OAUTH2_AUDIENCE")
    oauth2_jwks_url: str | None = _env(None, "OAUTH2_JWKS_URL", pattern=r"^https?://\S+$")
    oauth2_algorithms: tuple[str, ...] = _env(("RS256",), "OAUTH2_ALGORITHMS")
    oauth2_leeway_seconds: float = _env(30.0, "OAUTH2_LEEWAY_SECONDS", ge=0, le=600)
    oauth2_tenant_claim: str | None = _env(None, "OAUTH2_TENANT_CLAIM")
    oauth2_namespace_claim: str | None = _env(None, "OAUTH2_NAMESPACE_CLAIM")
    oauth2_user_claim: str | None = _env(None, "OAUTH2_USER_CLAIM")
    oauth2_agent_claim: str | None = _env(None, "OAUTH2_AGENT_CLAIM")
    oauth2_role_claim: str | None = _env(None, "OAUTH2_ROLE_CLAIM")
    oauth2_roles: dict[str, Literal["read", "write", "admin"]] = _env(
        {"memory:read": "read", "memory:write": "write", "memory:admin": "admin"}, "OAUTH2_ROLES"
    )
    oauth2_default_role: Literal["read", "write", "admin"] = _env("write", "OAUTH2_DEFAULT_ROLE")

    @property
    def mode(self) -> Literal["disabled", "token", "oauth2"]:
        """How callers are told apart, with the archived server's two other settings for it: `DISABLE_AUTH=true` beats everything."""
        if self.disable_auth:
            return "disabled"
        return "token" if self.auth_mode == "disabled" and self.token_auth_enabled else self.auth_mode

    @property
    def required(self) -> bool:
        """Whether a request needs credentials."""
        return self.mode != "disabled"


class TenantLimits(BaseModel):
    """What one tenant may have, where it differs from all others."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests_per_minute: int | None = Field(default=None, ge=0)
    requests_burst: int | None = Field(default=None, ge=1)
    memories: int | None = Field(default=None, ge=0)
    model_tokens_per_day: int | None = Field(default=None, ge=0)


class LimitSettings(_Group):
    """What a tenant may ask for and keep (0: as much as it likes), and how large one thing may be."""

    requests_per_minute: int = _env(0, "LIMIT_REQUESTS_PER_MINUTE", ge=0)
    requests_burst: int = _env(100, "LIMIT_REQUESTS_BURST", ge=1)
    memories: int = _env(0, "LIMIT_MEMORIES", ge=0)
    model_tokens_per_day: int = _env(0, "LIMIT_MODEL_TOKENS_PER_DAY", ge=0)
    tenants: dict[str, TenantLimits] = _env({}, "LIMIT_TENANTS")
    query_bytes: int = _env(8 * 1024, "MAX_QUERY_BYTES", ge=64, le=1024 * 1024)
    message_bytes: int = _env(8 * 1024 * 1024, "MAX_MESSAGE_BYTES", ge=1)
    session_messages: int = _env(0, "MAX_SESSION_MESSAGES", ge=0)
    memory_bytes: int = _env(64 * 1024, "MAX_MEMORY_BYTES", ge=1, le=64 * 1024)
    tags: int = _env(64, "MAX_TAGS", ge=0, le=64)
    json_depth: int = _env(32, "MAX_JSON_DEPTH", ge=1, le=32)

    def of(self, tenant: str) -> TenantLimits:
        """What this tenant may have."""
        own = self.tenants.get(tenant, TenantLimits())
        given = {name: value for name in TenantLimits.model_fields if (value := getattr(own, name)) is not None}
        everybody = {name: getattr(self, name) for name in TenantLimits.model_fields}
        return TenantLimits(**(everybody | given))

    def some(self, name: str) -> bool:
        """Whether any tenant has a limit of this name."""
        return bool(getattr(self, name) or any(getattr(own, name) for own in self.tenants.values()))


class Settings(BaseModel):
    """All settings of a process, frozen."""

    model_config = ConfigDict(frozen=True)

    server: ServerSettings
    redis: RedisSettings
    models: ModelSettings
    working: WorkingMemorySettings
    longterm: LongTermSettings
    search: SearchSettings
    worker: WorkerSettings
    forgetting: ForgettingSettings
    compaction: CompactionSettings
    views: ViewSettings
    mcp: McpSettings
    auth: AuthSettings
    limits: LimitSettings


_GROUPS: dict[str, type[_Group]] = {
    "server": ServerSettings,
    "redis": RedisSettings,
    "models": ModelSettings,
    "working": WorkingMemorySettings,
    "longterm": LongTermSettings,
    "search": SearchSettings,
    "worker": WorkerSettings,
    "forgetting": ForgettingSettings,
    "compaction": CompactionSettings,
    "views": ViewSettings,
    "mcp": McpSettings,
    "auth": AuthSettings,
    "limits": LimitSettings,
}


def variables() -> dict[str, tuple[str, str]]:
    """Every environment variable that is read: name -> (group, field)."""
    found: dict[str, tuple[str, str]] = {}
    for group, model in _GROUPS.items():
        for name, field in model.model_fields.items():
            if isinstance(field.validation_alias, AliasChoices):
                found.update({str(choice): (group, name) for choice in field.validation_alias.choices})
    return found


def load_settings(**overrides: Any) -> Settings:
    """Reads the environment and `.env`; `overrides` are named like the variables and win (None counts as not given).

    Raises StartupError with one line that names the variable when a value does not fit, and for an unknown override.
    """
    known = variables()
    given: dict[str, dict[str, Any]] = {group: {} for group in _GROUPS}
    for name, value in overrides.items():
        if name not in known:
            raise StartupError(f"there is no setting {name}")
        if value is not None:
            group, field = known[name]
            given[group][field] = value
    try:
        return Settings.model_validate({group: model(**given[group]) for group, model in _GROUPS.items()})
    except SettingsError as error:
        # Its message names the field in quotation marks; the field's own name says less than the variable's.
        named = [name for name, (_, field) in known.items() if f'"{field}"' in str(error)]
        raise StartupError(f"setting {named[0] if named else '?'}: must be JSON") from error
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = next((str(part) for part in first["loc"] if str(part) in known), str(first["loc"][0]) if first["loc"] else "?")
        raise StartupError(f"setting {name.upper()}: {first['msg']}") from error
