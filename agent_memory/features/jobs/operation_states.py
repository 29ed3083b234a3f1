"""In which state a piece of background work is, as its caller is told (pure)."""

from __future__ import annotations

from agent_memory_client.models import OperationState


def operation_state(*, marked: bool, dead: bool, leased: bool, failed: bool) -> OperationState:
    """The state of work by its mark in the outbox: whether there is one, whether it was given up, whether a worker works on it now, and
    whether a try of it has failed."""
    if not marked:
        return OperationState.DEAD if dead else OperationState.DONE
    if leased:
        return OperationState.RUNNING
    return OperationState.RETRYING if failed else OperationState.PENDING
