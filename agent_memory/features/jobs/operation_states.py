from __future__ import annotations

from agent_memory_client.models import OperationState


def operation_state(*, marked: bool, dead: bool, leased: bool, failed: bool) -> OperationState:
    """Return the state of work from its mark in the outbox (pure)."""
    if not marked:
        return OperationState.DEAD if dead else OperationState.DONE
    if leased:
        return OperationState.RUNNING
    return OperationState.RETRYING if failed else OperationState.PENDING
