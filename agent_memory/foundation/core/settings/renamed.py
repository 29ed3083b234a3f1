"""Find set variables that nobody reads: the archived server's retired ones, and likely typos."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dotenv import dotenv_values

from agent_memory.foundation.core.settings import variables

_OWN_PROMPTS = "prompts are part of the server, each with the shape of its answer"
_OWN_TAGS = "the model that finds facts names their topics and entities in the same answer"
_FREE_TAGS = f"{_OWN_TAGS}, without a call of its own that could be saved; ENABLE_DISCRETE_MEMORY_EXTRACTION switches all of it"
_COMPATIBLE = "any OpenAI-compatible server can be asked (OPENAI_BASE_URL, OPENAI_API_KEY), a gateway in front of this provider for one"
_OWN_KEYS = "our keys begin with KEY_PREFIX; for the old data, `agent-memory migrate` reads this variable"

RETIRED: Mapping[str, str] = {
    "ANTHROPIC_API_KEY": _COMPATIBLE,
    "ANTHROPIC_API_BASE": _COMPATIBLE,
    "REGION_NAME": _COMPATIBLE,
    "AWS_ACCESS_KEY_ID": _COMPATIBLE,
    "AWS_SECRET_ACCESS_KEY": _COMPATIBLE,
    "AWS_SESSION_TOKEN": _COMPATIBLE,
    "SLOW_MODEL": "GENERATION_MODEL does its work",
    "MEMORY_VECTOR_DB_FACTORY": "memories are in Redis (REDIS_URL); other vector databases cannot be plugged in",
    "REDISVL_INDEX_NAME": "indexes are named after KEY_PREFIX",
    "WORKING_MEMORY_INDEX_NAME": "indexes are named after KEY_PREFIX",
    "REDISVL_INDEX_PREFIX": _OWN_KEYS,
    "WORKING_MEMORY_INDEX_PREFIX": _OWN_KEYS,
    "REDISVL_DISTANCE_METRIC": "the distance is always cosine",
    "ENABLE_TOPIC_EXTRACTION": _FREE_TAGS,
    "ENABLE_NER": _FREE_TAGS,
    "TOP_K_TOPICS": "the model is asked for a few topics of each fact",
    "TOPIC_MODEL_SOURCE": _OWN_TAGS,
    "TOPIC_MODEL": _OWN_TAGS,
    "NER_MODEL_SOURCE": _OWN_TAGS,
    "NER_MODEL": _OWN_TAGS,
    "DEDUPLICATION_DISTANCE_THRESHOLD": "what has a cosine similarity of 0.92 or more counts as a possible repeat",
    "USE_DOCKET": "`agent-memory serve` runs API and worker in one process, `api` and `worker` run them apart",
    "WORKING_MEMORY_MIGRATION_COMPLETE": "`agent-memory migrate` notes by itself what it has moved",
    "LLM_TASK_TIMEOUT_MINUTES": "MODEL_TIMEOUT_SECONDS bounds each call of a model, and a task is tried eight times",
    "PROGRESSIVE_SUMMARIZATION_PROMPT": _OWN_PROMPTS,
    "AUTH0_CLIENT_ID": "it was never read: OAUTH2_ISSUER_URL and OAUTH2_AUDIENCE say whose tokens are accepted",
    "AUTH0_CLIENT_SECRET": "it was never read: OAUTH2_ISSUER_URL and OAUTH2_AUDIENCE say whose tokens are accepted",
}

# Other programs read these, too.
_COMMON = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
_NEVER_READ = "REDIS_MEMORY_"
_NEAR, _NEAR_IN_OUR_FILE = 0.88, 0.8
_SHORTEST = 8


@dataclass(frozen=True, slots=True)
class UnreadVariable:
    """A set but unread variable. `common`: other programs may need it."""

    name: str
    advice: str
    common: bool = False


def unread_variables(dotenv: Path | None = None) -> list[UnreadVariable]:
    """Return unread variables of the environment and `.env` that look like ours. Blank values count as absent."""
    ours = dotenv_values(dotenv) if dotenv is not None and dotenv.is_file() else {}
    return unread([name for name, value in os.environ.items() if value], [name for name, value in ours.items() if value])


def unread(environment: Iterable[str], file: Iterable[str] = ()) -> list[UnreadVariable]:
    """As `unread_variables`, for names; our own file gets suggestions sooner than a shared environment."""
    variable_names = list(variables())
    unread: dict[str, UnreadVariable] = {}
    for names, near in ((file, _NEAR_IN_OUR_FILE), (environment, _NEAR)):
        for name in names:
            upper = name.upper()
            if upper in variable_names or name in unread:
                continue
            if reason := RETIRED.get(upper):
                unread[name] = UnreadVariable(name, f"{upper} is not read any more: {reason}", upper in _COMMON)
            elif upper.startswith(_NEVER_READ):
                unread[name] = UnreadVariable(name, f"{name} is not read, and never was")
            elif len(upper) >= _SHORTEST and (like := difflib.get_close_matches(upper, variable_names, 1, near)):
                unread[name] = UnreadVariable(name, f"{name} is not read: is {like[0]} meant?")
    return [unread[name] for name in sorted(unread)]
