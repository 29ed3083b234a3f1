"""Load everything that servers need at startup, so that forks of `warm` already have it."""

from __future__ import annotations

import functools
from importlib import import_module

from agent_memory.foundation.llm import tokens
from agent_memory.foundation.llm.local.weights import import_extra
from agent_memory.foundation.storage.lua_files import load
from agent_memory.foundation.text.languages.preparation import compile_phrases
from tests.support.shared.lua import SCRIPTS

for name in (
    "agent_memory.interfaces.compat.mem0.routes",
    "agent_memory.interfaces.compat.supermemory.routes",
    "docket.tasks",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.websockets.auto",
):
    import_module(name)
import_extra("onnxruntime", "tokenizers")
compile_phrases()
for name in SCRIPTS:
    load(name)
tokens.load_encoding = functools.cache(tokens.load_encoding)
tokens.load_encoding()
