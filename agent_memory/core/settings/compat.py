"""The APIs of other products."""

from __future__ import annotations

from agent_memory.core.settings.base import Group, setting


class CompatSettings(Group):
    """The APIs of other products that are served beside ours."""

    apis: str = setting(
        "",
        "COMPAT_APIS",
        meaning="APIs of other products to serve as well, with commas between: `mem0`, `supermemory`; none if not given",
        pattern=r"^\s*((mem0|supermemory)\s*(,\s*(mem0|supermemory)\s*)?)?$",
    )
    mem0_namespace: str = setting(
        "mem0",
        "COMPAT_MEM0_NAMESPACE",
        meaning="the namespace in which everything of Mem0's API lives; name one of your own to share its data",
        min_length=1,
        max_length=256,
    )

    supermemory_namespace: str = setting(
        "supermemory",
        "COMPAT_SUPERMEMORY_NAMESPACE",
        meaning="the namespace in which everything of Supermemory's API lives; name one of your own to share its data",
        min_length=1,
        max_length=256,
    )

    @property
    def names(self) -> frozenset[str]:
        """The products whose APIs are served."""
        return frozenset(name for part in self.apis.split(",") if (name := part.strip()))
