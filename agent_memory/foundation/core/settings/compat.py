"""The APIs of other products."""

from __future__ import annotations

from agent_memory.foundation.core.settings.base import Group, setting

_API = r"\s*(mem0|supermemory)(:[^,]{1,256})?\s*"


class CompatSettings(Group):
    apis: str = setting(
        "",
        "COMPAT_APIS",
        meaning="APIs of other products to serve as well, with commas between: `mem0`, `supermemory`; what each keeps lives in the "
        "namespace of its own name, or in the one that is named behind it (`mem0:shared`); none if not given",
        pattern=rf"^(\s*|{_API}(,{_API})?)$",
    )

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._namespaces)

    def namespace_of(self, product: str) -> str:
        """Return the namespace that holds the data of a product's API."""
        return self._namespaces[product]

    @property
    def _namespaces(self) -> dict[str, str]:
        namespaces: dict[str, str] = {}
        for part in self.apis.split(","):
            name, _, namespace = part.strip().partition(":")
            if name:
                namespaces[name] = namespace or name
        return namespaces
