"""Handle containers (context and deletion) and the organization's settings."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from agent_memory.extensions.items.service import ItemService
from agent_memory.extensions.items.store import ItemOwner
from agent_memory.features.extraction.rules import ExtractionRulesService
from agent_memory.foundation.api.principals import place_of, writing
from agent_memory.foundation.core.errors import BadInput, Forbidden, NotFound, TooLarge
from agent_memory.interfaces.compat.supermemory.requests import BulkDelete, DocumentListing
from agent_memory.interfaces.compat.supermemory.service import KeepContext, SupermemoryService
from agent_memory_client.models import GetItem, PutItem

_SETTINGS_PATH = ["compat", "supermemory"]
_SETTINGS_KEY = "settings"
_SETTINGS_BYTES = 64 * 1024


class ContainerService(SupermemoryService):
    """Operations on containers.

    A container's context is stored as extraction instructions for its user.
    """

    async def container(self, tag: str) -> dict[str, Any]:
        """Return a container. Raises NotFound if it has no documents."""
        rules = await self._services[ExtractionRulesService].get(self._scope, self._namespace, tag)
        oldest, newest = [(await self.list(DocumentListing(container_tag=tag, limit=1, order=order)))[0] for order in ("asc", "desc")]
        if not oldest:
            raise NotFound(f"Namespace {tag} not found", field="containerTag")
        times = {"createdAt": oldest[0]["createdAt"], "updatedAt": newest[0]["updatedAt"]}
        return {"namespace": tag, "supportingContext": rules.instructions, "system": times}

    async def prepare_context(self, tag: str | None, context: str | None) -> KeepContext:
        """Return a function that stores a container's context.

        Raises BadInput, or Forbidden if the caller is not allowed to store it.
        """
        if not tag:
            raise BadInput("must be given with entityContext", field="containerTag")
        service, scope = self._services[ExtractionRulesService], writing(self._scope)
        await service.get(scope, self._namespace, tag)

        async def keep() -> None:
            rules = await service.get(scope, self._namespace, tag)
            if rules.instructions != (context or None):
                await service.put(scope, self._namespace, tag, rules.model_copy(update={"instructions": context or None}))

        return keep

    async def settings(self) -> dict[str, Any]:
        """Return the settings for the tenant, or for the only user that the caller can access.

        Raises Forbidden if the caller is limited to several users or to certain agents.
        """
        item = await self._services[ItemService].get_item(
            self._scope, self._settings_owner(), GetItem(path=_SETTINGS_PATH, key=_SETTINGS_KEY)
        )
        return {} if item is None else item.value

    async def change_settings(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Merge changes into the settings, which have no effect on this server.

        Raises Forbidden or TooLarge.
        """
        scope, owner = writing(self._scope), self._settings_owner()
        value = {**await self.settings(), **changes}
        if len(to_json(value)) > _SETTINGS_BYTES:
            raise TooLarge(f"all settings together have at most {_SETTINGS_BYTES} bytes", field="body", limit=_SETTINGS_BYTES)
        await self._services[ItemService].write_items(
            scope, owner, [PutItem(path=_SETTINGS_PATH, key=_SETTINGS_KEY, value=value, index=False)]
        )
        return {"orgId": scope.tenant, "orgSlug": scope.tenant, "updated": changes}

    def _settings_owner(self) -> ItemOwner:
        if self._scope.agents is not None:
            raise Forbidden("settings belong to all agents: use credentials that are not limited to certain agents")
        return ItemOwner(*place_of(self._scope, self._namespace, None))

    async def delete_container(self, tag: str) -> dict[str, Any]:
        """Delete a container's context, and all of its documents and memories."""
        # Delete the context first: this refuses unauthorized callers before anything is deleted.
        await self._services[ExtractionRulesService].delete(writing(self._scope), self._namespace, tag)
        _, memories = await self.memories(DocumentListing(container_tag=tag, limit=1), chunks=False)
        deleted = await self.delete_many(BulkDelete(container_tags=[tag]))
        return {"status": "deleted", "namespace": tag, "deletedDocumentsCount": deleted["deletedCount"], "deletedMemoriesCount": memories}
