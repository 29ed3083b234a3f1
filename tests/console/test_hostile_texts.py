"""Test that every page displays HTML and scripts in texts, names and topics as plain text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from itertools import islice, product
from typing import Any

import httpx
import pytest
from playwright.async_api import Page

from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.support.api import serving

HOW_MANY = 500
_PAYLOADS = (
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "<svg onload=window.hacked=1>",
    "<body onload=window.hacked=1>",
    "<iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
    "<iframe src=javascript:parent.hacked=1>",
    "<a href=javascript:window.hacked=1 id=x autofocus onfocus=window.hacked=1>x</a>",
    "<details open ontoggle=window.hacked=1>x</details>",
    "<input autofocus onfocus=window.hacked=1>",
    "<video><source onerror=window.hacked=1></video>",
    "<math><mtext></table><mglyph><style><img src=x onerror=window.hacked=1>",
    "<form action=javascript:window.hacked=1><button>go</button></form>",
    "<meta http-equiv=refresh content='0;url=javascript:window.hacked=1'>",
    "<base href=https://evil.example/>",
    "<link rel=stylesheet href=data:text/css,*{display:none}>",
    "<style>*{display:none}</style>",
    "<object data=data:text/html,<script>window.hacked=1</script>></object>",
    "<div hx-get=/console/people hx-trigger=load hx-on:load='window.hacked=1'>x</div>",
    "<button data-hx-post=/console/do/forget data-hx-trigger=load>x</button>",
    "<template><script>window.hacked=1</script></template>",
    "{{ 7*191 }} {% include 'base.html' %} ${window.hacked=1}",
    "javascript:window.hacked=1",
    "&lt;script&gt;window.hacked=1&lt;/script&gt;",
    "\\u003cscript\\u003ewindow.hacked=1\\u003c/script\\u003e",
    "%3Cscript%3Ewindow.hacked=1%3C/script%3E",
)
_WRAPPERS = (
    "{}",
    '"{}',
    "'{}",
    '">{}',
    "'>{}",
    "</textarea>{}",
    "</title>{}",
    "</script>{}",
    "--></style>{}",
    "]]>{}",
    '" onmouseover="window.hacked=1" x="{}',
    "' autofocus onfocus='window.hacked=1' x='{}",
    "` onclick=`window.hacked=1` {}",
    "<!--{}",
    "</pre></li></ul></main>{}",
    "\u2028{}",
    "hello {} world",
    "ＡＢＣ{}",
    "{}\n{}",
    "</svg></math>{}",
)


def hostile() -> Iterator[str]:
    for wrapper, payload in product(_WRAPPERS, _PAYLOADS):
        yield wrapper.replace("{}", payload)


@pytest.fixture(scope="module")
async def hostile_url(module_settings: Callable[..., Settings], redis_url: str) -> AsyncGenerator[str]:
    """Start a server whose data contains hostile texts."""
    texts = list(islice(hostile(), HOW_MANY))
    assert len(set(texts)) == HOW_MANY
    settings = module_settings()
    async with open_runtime(settings, redis_url) as runtime, serving(create_app(settings, runtime)) as url:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            memories: list[dict[str, Any]] = [
                {
                    "id": f"h{number}",
                    "text": text,
                    "user_id": name_of(text),
                    "topics": [tag_of(text)],
                    "entities": [tag_of(text)],
                }
                for number, text in enumerate(texts)
            ]
            for begin in range(0, HOW_MANY, 50):
                body = {"memories": memories[begin : begin + 50], "deduplicate": False}
                answer = await client.post("/v1/long-term-memory/", json=body)
                assert answer.status_code == 200, answer.text
            said = [{"role": role, "content": text} for text in texts[:100] for role in ("user", "assistant")]
            answer = await client.post("/v1/working-memory/chat/messages", json={"user_id": name_of(texts[1]), "messages": said})
            assert answer.status_code == 200, answer.text
            # The pages also show superseded facts, rules, procedures, events and keys.
            slots = [{"id": f"slot{n}", "text": texts[n], "user_id": name_of(texts[1]), "slot": "home_city"} for n in (10, 11)]
            for slot in slots:
                body = {"memories": [{**slot, "memory_type": "semantic", "event_date": "2026-01-02T00:00:00Z"}]}
                answer = await client.post("/v1/long-term-memory/", json=body)
                assert answer.status_code == 200, answer.text
            rules = {
                "instructions": texts[12],
                "do_not_record": [tag_of(texts[13])],
                "categories": [{"name": "x", "description": texts[14]}],
            }
            answer = await client.put("/v1/extraction-rules", json=rules)
            assert answer.status_code == 200, answer.text
            procedure = {"user_id": name_of(texts[1]), "when_to_use": texts[15], "steps": [texts[16]], "pitfalls": [texts[17]]}
            answer = await client.post("/v1/procedures", json=procedure)
            assert answer.status_code == 200, answer.text
            answer = await client.post("/v1/auth/tokens", json={"description": texts[18], "users": [name_of(texts[1])]})
            assert answer.status_code == 200, answer.text
            answer = await client.post("/v1/memory/forget", json={"ids": ["slot11"]})
            assert answer.json()["receipt_id"], answer.text
            block = {"value": texts[5], "description": texts[6]}
            answer = await client.put("/v1/blocks/notes", params={"user_id": name_of(texts[1])}, json=block)
            assert answer.status_code == 200, answer.text
        yield url


def name_of(text: str) -> str:
    """Convert a text to a valid id by removing line breaks."""
    return text.replace("\n", " ").replace("\u2028", " ")[:200].strip()


def tag_of(text: str) -> str:
    """Convert a text to a valid topic by replacing commas."""
    return name_of(text).replace(",", ";")


async def test_hostile_texts_are_shown_and_never_run(new_page: Callable[..., Any], hostile_url: str) -> None:
    page: Page = await new_page(hostile_url)
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text) if "Content Security Policy" in message.text else None)
    texts = list(islice(hostile(), HOW_MANY))
    name = name_of(texts[1])
    addresses = [f"/console/memories?offset={offset}" for offset in range(0, HOW_MANY + 25, 25)]
    addresses += ["/console", "/console/people", "/console/memories?offset=0&edit=h499"]
    seen: set[str] = set()
    for address in addresses:
        await look(page, address, seen)
    assert len(seen.intersection(texts)) == HOW_MANY, "every text is shown as it is"
    for parameters in (
        f"user={quoted(name)}&ended=1",
        f"writer={quoted(texts[5])}",
        f"topic={quoted(tag_of(texts[2]))}",
        f"q={quoted(texts[3])}",
        f"session={quoted(texts[4])}",
    ):
        await look(page, f"/console/memories?{parameters}", seen)
    for path in (f"/people/{quoted(name)}", f"/sessions/chat?user={quoted(name)}&message={quoted(name)}"):
        await look(page, f"/console{path}", seen)
    for query in texts[:20]:
        await look(page, f"/console/prompt?q={quoted(query)}&user={quoted(name)}&session=chat&blocks=1&profile=1", seen)
    for path in ("/changes", "/changes?tab=all", "/jobs", "/server", "/keys", f"/erase/{quoted(name)}"):
        await look(page, f"/console{path}", seen)
    await look(page, f"/console/prompt?q={quoted(texts[7])}&user={quoted(name)}&compare=1&b_limit=3&b_pinned=1", seen)
    await look(page, f"/console/changes?tab=all&user={quoted(name)}&namespace={quoted(texts[8])}", seen)
    await look(page, f"/console/server?namespace={quoted(texts[9])}&user={quoted(name)}", seen)
    await look(page, "/console/history/h1", seen)
    await page.goto("/console/changes?tab=all&kind=forget")
    for address in [await link.get_attribute("href") for link in await page.get_by_role("link", name="What was forgotten").all()]:
        await look(page, f"{address}?back={quoted(texts[0])}", seen)
    await look(page, f"/console/jobs/extraction-x?open=1&session={quoted(name)}&user={quoted(name)}", seen)
    back = quoted('javascript:window.hacked=1//"><script>')
    await look(page, f"/console/forget?id=h1&user={quoted(name)}&back={back}", seen)
    await look(page, f"/console/people?q={quoted(texts[0])}&done={quoted(texts[0])}&undo={quoted('undo-forget:' + texts[0])}", seen)
    await look(page, f"/console/{quoted(texts[1])}", seen)
    assert not refused, "the content policy had nothing to stop"


def quoted(text: str) -> str:
    return httpx.QueryParams({"x": text}).__str__()[2:].replace("+", "%20")


async def look(page: Page, address: str, seen: set[str]) -> None:
    await page.goto(address)
    found = await page.evaluate(
        """() => ({
            hacked: window.hacked ?? null,
            scripts: [...document.scripts].filter(e => !new URL(e.src).pathname.startsWith("/console/static/")).length,
            strange: document.querySelectorAll("main :is(script, iframe, object, video, math, base, meta, link, style)").length,
            handlers: [...document.querySelectorAll("*")].flatMap(e => [...e.attributes])
                .filter(a => /^on|^(data-)?hx-(?!boost|headers|indicator)/.test(a.name)).length,
            links: [...document.querySelectorAll("a, form")].filter(e => (e.getAttribute("href") ?? e.getAttribute("action")).trim()
                .toLowerCase().startsWith("javascript")).length,
            texts: [...document.querySelectorAll(".memory .text > p:first-child")].map(e => e.textContent),
        })"""
    )
    seen.update(found.pop("texts"))
    assert found == {"hacked": None, "scripts": 0, "strange": 0, "handlers": 0, "links": 0}, address
