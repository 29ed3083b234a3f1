"""Test that the session page shows its images and loads nothing from other servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx

from agent_memory_worker.sessions.pictures import _plain_picture  # pyright: ignore[reportPrivateUsage]

REMOTE = "https://pictures.example.com/a.png?x=1"
SVG = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4="


async def test_session_shows_pictures_that_are_stored_here(open_url: str, api: httpx.AsyncClient, new_page: Callable[..., Any]) -> None:
    addresses = (_plain_picture(), REMOTE, SVG)
    content = [{"type": "image_url", "image_url": {"url": address}} for address in addresses]
    body = {"user_id": "pia", "messages": [{"role": "user", "content": [{"type": "text", "text": "Look"}, *content]}]}
    assert (await api.post("/v1/working-memory/pictures/messages", json=body)).status_code == 200
    page, requested = await new_page(open_url), list[Any]()
    page.on("request", lambda request: requested.append(request))
    await page.goto("/console/sessions/pictures?user=pia", wait_until="networkidle")
    assert await page.locator("img.picture").evaluate_all("shown => shown.map(each => [each.naturalWidth, each.alt])") == [[64, "Picture"]]
    text = await page.locator(".chat").inner_text()
    assert REMOTE in text
    assert "Remembered by the text next to it" in text
    assert [each.url for each in requested if not each.url.startswith((open_url, "data:image/png"))] == []
