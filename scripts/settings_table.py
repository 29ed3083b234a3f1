"""Writes the table of all settings into docs/configuration.md, from agent_memory.settings: `python scripts/settings_table.py`.

`--check` writes nothing and ends with exit code 1 when the file is not what would be written. A setting without a meaning below is an
error, as is a meaning without a setting.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo

from agent_memory.settings import Settings

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
BEGIN, END = "<!-- settings: begin -->", "<!-- settings: end -->"

TITLES = {
    "server": "Server",
    "redis": "Redis",
    "models": "Models",
    "working": "Working memory",
    "longterm": "Long-term memory",
    "search": "Search and prompts",
    "worker": "Worker",
    "forgetting": "Forgetting",
    "compaction": "Compaction",
    "views": "Summary views",
    "mcp": "MCP",
    "auth": "Access",
    "limits": "Limits",
}

MEANINGS = {
    "HOST": "address to listen on",
    "PORT": "port to listen on; 0 takes a free one",
    "LOG_LEVEL": "what is logged, to stderr",
    "LOG_FORMAT": "for people or for machines",
    "MAX_BODY_BYTES": "largest request body; a larger one is refused with 413",
    "REQUEST_TIMEOUT_SECONDS": "how long a request may take; then it is answered with 503",
    "HEAD_TIMEOUT_SECONDS": "how long a request's head may take to come in; then: 408",
    "BODY_TIMEOUT_SECONDS": "how long a body may take to come in after its head, a second more per 16 KiB that came; then: 408; "
    "raise it for callers who pause within a body or whose network does for longer",
    "MAX_CONCURRENT_REQUESTS": "requests under way at most, fewer while the process is late; more are refused with 503 and `Retry-After`",
    "SHUTDOWN_DRAIN_SECONDS": "how long a process that was told to stop (SIGTERM) still answers new requests, while `/v1/ready` says 503: "
    "as long as a balancer in front takes to notice; 0 with none",
    "SHUTDOWN_GRACE_SECONDS": "how long running requests, and then running tasks, have when the process is stopped",
    "REDIS_URL": "a Redis with the query engine; without it `serve` runs its own",
    "DATA_DIR": "where the embedded Redis keeps its data",
    "DURABILITY": "`strict`: a write is acknowledged once it is on the disk; `everysec`: once Redis has it, on the disk a second later",
    "KEY_PREFIX": "begin of every key, so that installations can share a Redis",
    "REDIS_BUCKETS": "parts that tenants are divided into, for a Redis Cluster; fixed when a store is made",
    "REDIS_POOL_SIZE": "connections of a process to Redis, and as many for its searches",
    "REDIS_COMMAND_TIMEOUT_SECONDS": "how long Redis may take for one command",
    "EMBEDDED_REDIS_PORT": "port of the embedded Redis; 0 takes a free one",
    "MODEL_PROVIDER": "who writes summaries and facts; `auto`: a model server if a key or an address is given, else local",
    "EMBEDDING_PROVIDER": "who makes embeddings; `auto` as above",
    "OPENAI_API_KEY": "key of the model server",
    "OPENAI_BASE_URL": "address of any OpenAI-compatible server, with its `/v1`",
    "EMBEDDING_BASE_URL": "address of another server for embeddings alone",
    "EMBEDDING_API_KEY": "its key",
    "GENERATION_MODEL": "model that writes summaries and facts; any name",
    "FAST_MODEL": "model for small tasks; the same one if not given",
    "EMBEDDING_MODEL": "model of the embeddings; any name",
    "EMBEDDING_DIMENSIONS": "length of its vectors, asked of the server; known or found out if not given",
    "MODEL_CONTEXT_WINDOWS": "JSON object: model name to context window in tokens, over the built-in table",
    "DEFAULT_CONTEXT_WINDOW": "context window (tokens) of models that nobody knows, and of sessions that name none",
    "MODEL_TIMEOUT_SECONDS": "how long a call of a model may take",
    "EMBEDDING_CACHE_SECONDS": "how long the vector of a query is kept in Redis for other processes (4,096 of them at most); 0 keeps none",
    "QUERY_EMBEDDING_TIMEOUT_SECONDS": "how long a search waits for its query's embedding before it goes by words alone",
    "MODEL_MAX_CONCURRENT_CALLS": "calls of the model server at one time",
    "LOCAL_MODEL_DIR": "directory of another local sentence encoder",
    "LOCAL_MODEL_THREADS": "threads of one local embedding",
    "LOCAL_MODEL_PRECISION": "`int8` takes half the time of `fp32`; its recall was the same within a point where it was measured",
    "ENABLE_WORKING_MEMORY_SUMMARIZATION": "whether sessions that outgrow their window are summarized",
    "SUMMARIZATION_THRESHOLD": "share of the window at which a session is summarized",
    "SUMMARIZATION_KEEP": "share of the window that the newest messages keep then",
    "REQUIRE_MESSAGE_TIMESTAMPS": "refuse messages without `created_at`",
    "MAX_FUTURE_TIMESTAMP_SECONDS": "how far in the future a message may lie",
    "LONG_TERM_MEMORY": "whether there is long-term memory at all",
    "INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY": "whether messages are promoted word for word",
    "ENABLE_DISCRETE_MEMORY_EXTRACTION": "whether a model server is asked for facts",
    "EXTRACTION_DEBOUNCE_SECONDS": "how long a conversation must be quiet before it is asked for facts (ten times that at most)",
    "EXTRACTION_BATCH_TOKENS": "tokens of messages in one question for facts",
    "NEIGHBOURS_AFTER_SECONDS": "how long after a message those around it are indexed again with its words (itself: at once)",
    "REVIEW_SUPERSESSIONS": "facts from conversations that would end others are only proposed, until somebody approves them",
    "FORGOTTEN_KEPT_DAYS": "what was forgotten can be brought back so long; then it is deleted for good, 0 keeps it for ever",
    "REDACT_SECRETS": "take keys, tokens, passwords and card numbers out of what is remembered and of what a model server is sent",
    "QUARANTINE": "puts memories aside that read like instructions to a model, until somebody approves them",
    "VECTOR_ALGORITHM": "`FLAT` is exact and best with filters by user; `HNSW` for millions of memories searched without filter",
    "VECTOR_TYPE": "how vectors are stored",
    "SEARCH_MIN_SIMILARITY": "cosine similarity below which a memory that shares no word with the query stays out of a prompt",
    "SEARCH_SETTLE_SECONDS": "seconds a search waits at most while many memories that it searches are still to get their vectors",
    "PROMPT_MEMORIES": "memories in a prompt whose `long_term_search` is `true`",
    "PROMPT_MEMORY_TOKENS": "tokens that the memories of a prompt may have together",
    "PROMPT_WITHOUT_USER_SEES_ALL_USERS": "prompts whose session has no user see the memories of all users, as in the archived server",
    "DOCKET_NAME": "name of the task queue in Redis",
    "WORKER_CONCURRENCY": "tasks of a worker at one time",
    "WORKER_REDELIVERY_TIMEOUT_SECONDS": "after how long the task of a dead worker is given to another",
    "WORKER_LEASE_SECONDS": "for how long work is claimed before it must be renewed",
    "WORKER_MAX_ATTEMPTS": "failures after which work is set aside",
    "WORKER_RETRY_BASE_SECONDS": "pause after the first failure; it doubles with each",
    "WORKER_RETRY_MAX_SECONDS": "longest pause between tries",
    "WORKER_INDEX_BATCH": "memories that are embedded together",
    "WORKER_NICENESS": "by how much `agent-memory worker` gives way to the API and Redis on the same machine (0-19, as `nice`)",
    "FORGETTING_ENABLED": "whether workers forget memories by themselves, by the bounds below",
    "FORGETTING_EVERY_MINUTES": "how often",
    "FORGETTING_MAX_AGE_DAYS": "memories older than this are forgotten",
    "FORGETTING_MAX_INACTIVE_DAYS": "memories not found for longer than this are forgotten",
    "FORGETTING_BUDGET_KEEP_TOP_N": "only so many memories are kept, the most recent ones",
    "QUERY_OPTIMIZATION_SECONDS": "how long `optimize_query` may take; then the query is searched for as it is, and the answer says so",
    "QUERY_OPTIMIZATION_PROMPT_TEMPLATE": "another task for `optimize_query`; `{query}` in it stands for the query",
    "MIN_OPTIMIZED_QUERY_LENGTH": "a rewritten query shorter than this is not used",
    "RERANK_BASE_URL": "a server with Cohere's rerank API (`POST <url>/rerank`); without one, searches are not reranked",
    "RERANK_API_KEY": "its key",
    "RERANK_MODEL": "the reranking model",
    "RERANK_SECONDS": "how long reranking may take; then the order is that of the search, and the answer says so",
    "RERANK_CANDIDATES": "so many of the best are reranked",
    "USAGE_EVERY_MINUTES": "how often the filter `last_accessed` learns of readings; 0: never",
    "COMPACTION_EVERY_MINUTES": "how often repeats are merged; 0: only when asked to",
    "COMPACT_SEMANTIC_DUPLICATES": "whether memories that say nearly the same are merged as well",
    "COMPACTION_SIMILARITY": "cosine similarity from which they do",
    "SUMMARY_VIEW_REFRESH_EVERY_MINUTES": "how often continuous summary views are made again",
    "SUMMARY_VIEW_RUN_SECONDS": "how long a request that runs a view may take",
    "MCP_HOST": "address on which `agent-memory mcp` listens",
    "MCP_PORT": "its port; 0 takes a free one",
    "MCP_ON_API": "whether the API offers MCP as well, at `/mcp`",
    "DEFAULT_MCP_NAMESPACE": "namespace of MCP calls that name none, neither in their arguments nor in their URL",
    "DEFAULT_MCP_USER_ID": "user of MCP calls that name none",
    "MCP_TOKEN": "credential of the one who speaks over stdio; needed when `AUTH_MODE` asks for credentials",
    "MCP_ALLOWED_HOSTS": "host names, with commas between, under which MCP may be reached; none given: those of this machine, or any when "
    "listening on more than this machine",
    "DOCS_ENABLED": "whether `/docs` and `/openapi.json` are served",
    "STRICT_FIELDS": "refuse requests with fields that are not known, instead of naming them in `X-Ignored-Fields`",
    "ACCESS_LOG": "whether the log has a line for each request: method, path without ids, status, ms and request id",
    "AUDIT_LOG": "whether the log says of each request and MCP call who made it and which ids it named, never what was said",
    "CORS_ALLOWED_ORIGINS": "origins, as `https://app.example.com`, with commas between, whose pages may call the API; none if not given",
    "PUBLIC_URL": "the address that clients reach the server by, for the metadata of OAuth; not given: the one they sent to",
    "ALLOWED_HOSTS": "host names, with commas between, under which the server may be reached besides those of this machine; `*` allows "
    "every one. None given: only those of this machine while it listens there alone and nobody is asked for credentials, else any",
    "LIMIT_REQUESTS_PER_MINUTE": "requests that a tenant may make in the long run, a body of 16 KiB or more counting for several; more are "
    "refused with 429 and `Retry-After`; "
    "0: any number",
    "LIMIT_REQUESTS_BURST": "requests that it may make at once after a pause",
    "LIMIT_MEMORIES": "memories, messages included, that a tenant may keep; then writes are refused with 429; 0: any number",
    "LIMIT_MODEL_TOKENS_PER_DAY": "models' tokens that a tenant may use in a day (UTC), embeddings too; then background work with one "
    "waits for the next day; 0: any number",
    "LIMIT_TENANTS": "JSON object: tenant to its own `requests_per_minute`, `requests_burst`, `memories`, `model_tokens_per_day`",
    "MAX_QUERY_BYTES": "so much of a query, in UTF-8, is read for its words, its time and its meaning; the rest is not looked at",
    "MAX_MESSAGE_BYTES": "largest message, in UTF-8, with its parts, tool calls and other fields",
    "MAX_SESSION_MESSAGES": "messages that a session may hold at one time; 0: any number",
    "MAX_MEMORY_BYTES": "largest text of a memory that a caller writes, in UTF-8",
    "MAX_TAGS": "topics, and entities, of a memory that a caller writes",
    "MAX_JSON_DEPTH": "levels of nesting in a caller's own JSON (`data`, `metadata`, `config`)",
    "WORKER_TENANT_SHARE": "the part of a worker's places for each kind of work that one tenant may have at a time, where "
    "`AUTH_MODE` tells tenants apart",
    "AUTH_MODE": "who may ask: everybody who reaches the port, those with an API key, or those with a JWT of a login provider",
    "DISABLE_AUTH": "`true` beats AUTH_MODE: nobody is asked; a name of the archived server's",
    "TOKEN_AUTH_ENABLED": "`true` is AUTH_MODE=token; a name of the archived server's",
    "AUTH_DISABLED_ON_NETWORK": "let everybody in on other addresses than 127.0.0.1, too, where nobody is asked for credentials",
    "AUTH_SECRET": "key of the digests that API keys are kept as; made and kept in Redis if not given. Another one makes all keys void",
    "AUTH_ADMIN_TOKEN": "a key for the operator, who may make the others",
    "OAUTH2_ISSUER_URL": "the `iss` that JWTs must have",
    "OAUTH2_AUDIENCE": "the `aud` that they must have; not looked at if not given",
    "OAUTH2_JWKS_URL": "where the login provider's public keys are; below the issuer, at `/.well-known/jwks.json`, if not given",
    "OAUTH2_ALGORITHMS": "JSON list: the signatures that are accepted, all of public keys",
    "OAUTH2_LEEWAY_SECONDS": "by how much the provider's clock may differ",
    "OAUTH2_TENANT_CLAIM": "the claim that names the caller's tenant; all are of one if not given",
    "OAUTH2_NAMESPACE_CLAIM": "the claim with the namespaces that the caller may reach; all if not given",
    "OAUTH2_USER_CLAIM": "the claim with the only user whose data the caller may reach, `sub` for one; all if not given",
    "OAUTH2_AGENT_CLAIM": "the claim with the agents whose memories the caller may reach; all if not given",
    "OAUTH2_ROLE_CLAIM": "the claim with the caller's roles, as words or as a list; everybody has the default role if not given",
    "OAUTH2_ROLES": "JSON object: what the words of that claim mean here",
    "OAUTH2_DEFAULT_ROLE": "the role of everybody if OAUTH2_ROLE_CLAIM is not given",
}


def main() -> int:
    """Writes or checks the page; returns the exit code."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    wanted = f"{head}{BEGIN}\n{tables()}\n{END}{tail}"
    if "--check" not in sys.argv:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if text != wanted:
        print("docs/configuration.md is not current: run python scripts/settings_table.py", file=sys.stderr)
    return int(text != wanted)


def tables() -> str:
    """A table for each group of settings. Raises ValueError that names settings without a meaning and meanings of no setting."""
    groups = {group: list(about.annotation.model_fields.values()) for group, about in Settings.model_fields.items()}
    problems = {names(field)[0] for fields in groups.values() for field in fields} ^ set(MEANINGS)
    if problems:
        raise ValueError(f"settings without a meaning in MEANINGS, or meanings of no setting: {', '.join(sorted(problems))}")
    parts: list[str] = []
    for group, fields in groups.items():
        lines = [f"## {TITLES.get(group, group.capitalize())}", "", "| variable | default | meaning |", "|---|---|---|"]
        for field in fields:
            name, *others = names(field)
            also = f" (also `{'`, `'.join(others)}`)" if others else ""
            lines.append(f"| `{name}`{also} | {default(field)} | {MEANINGS[name]}{choices(field)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def names(field: FieldInfo) -> list[str]:
    """The variables of a setting, the first that is looked at first."""
    assert isinstance(field.validation_alias, AliasChoices)
    return [str(choice) for choice in field.validation_alias.choices]


def default(field: FieldInfo) -> str:
    """The default as it would be written in the environment."""
    value = field.default
    if value is None or isinstance(value, SecretStr) or value == {}:
        return "–"
    if isinstance(value, (tuple, dict)):
        return f"`{json.dumps(value)}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def choices(field: FieldInfo) -> str:
    """The words that are allowed, where these are all."""
    words = [word for word in getattr(field.annotation, "__args__", ()) if isinstance(word, str)]
    return f" ({', '.join(f'`{word}`' for word in words)})" if len(words) > 1 else ""


if __name__ == "__main__":
    sys.exit(main())
