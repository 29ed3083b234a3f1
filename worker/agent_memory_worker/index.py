"""Indexing: memories get their vector, and messages the words around them, in batches across sessions."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.runtime import Runtime
from agent_memory.storage.lua import Claim
from agent_memory.storage.memories import Indexed, IndexJob
from agent_memory.tasks import DueKind
from agent_memory.units import unit_terms, unit_vector


async def index_memories(runtime: Runtime, claims: Sequence[Claim]) -> int:
    """Embeds the memories of these claims with one call of the embedder, and ends the claims; returns how many became findable.

    Raises ModelUnavailable and ModelAnswerInvalid; nothing is stored then.
    """
    leases = {claim.member: claim for claim in claims}
    jobs, gone = await runtime.memories.index_jobs(list(leases))
    texts = list(dict.fromkeys(text for job in jobs for text in _texts(job)))
    vectors = dict(zip(texts, await runtime.embedder.embed(texts), strict=True)) if texts else {}
    items = [
        Indexed(
            mid=job.mid,
            version=job.version,
            lease=leases[job.mid].lease,
            vector=unit_vector(
                vectors[job.record.text], [vectors[near.text] for near in job.before], [vectors[near.text] for near in job.after]
            ),
            terms=unit_terms(job.record, job.before, job.after) if job.terms is None else job.terms,
            past=job.terms is not None,
        )
        for job in jobs
    ]
    done = await runtime.memories.write_index(items)
    for mid in gone:
        await runtime.outbox.done(DueKind.MEMORY, leases[mid])
    return sum(done)


def _texts(job: IndexJob) -> list[str]:
    """Everything whose vector goes into this memory's: neighbours are mostly in the same batch, or in the embedder's cache."""
    return [job.record.text, *(near.text for near in (*job.before, *job.after))]
