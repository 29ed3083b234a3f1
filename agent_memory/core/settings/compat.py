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
    namespace: str = setting(
        "",
        "COMPAT_NAMESPACE",
        meaning="the namespace in which everything of these APIs lives; each has one of its own name (`mem0`, `supermemory`) if not given",
        max_length=256,
    )

    @property
    def names(self) -> frozenset[str]:
        """The products whose APIs are served."""
        return frozenset(name for part in self.apis.split(",") if (name := part.strip()))

    def namespace_of(self, product: str) -> str:
        """The namespace in which what a product's API keeps lives."""
        return self.namespace or product
