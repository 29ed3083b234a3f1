"""A typical user's program that uses the memory server and any OpenAI-compatible server.

Reads MEMORY_URL, OPENAI_BASE_URL, OPENAI_API_KEY and CHAT_MODEL. Takes a session id and a message,
and prints the reply.
"""

from __future__ import annotations

import asyncio
import os
import sys

from openai import AsyncOpenAI

from agent_memory_client import MemoryAPIClient, MemoryClientConfig, MemoryMessage, WorkingMemory


async def main(session_id: str, message: str) -> None:
    model = os.environ["CHAT_MODEL"]
    chat = AsyncOpenAI()
    memory_client = MemoryAPIClient(MemoryClientConfig(base_url=os.environ["MEMORY_URL"]))
    prompt = await memory_client.memory_prompt(
        query=message, session_id=session_id, model_name=model, long_term_search={"text": message, "limit": 5}
    )
    completion = await chat.chat.completions.create(model=model, messages=prompt.to_openai())
    answer = completion.choices[0].message.content or ""
    await memory_client.put_working_memory(
        session_id,
        WorkingMemory(
            session_id=session_id,
            messages=[MemoryMessage(role="user", content=message), MemoryMessage(role="assistant", content=answer)],
        ),
    )
    await memory_client.close()
    print(answer)


asyncio.run(main(*sys.argv[1:]))
