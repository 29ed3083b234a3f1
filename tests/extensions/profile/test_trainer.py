"""Run the tutorials' personal trainer through the client, with and without a language model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory_client import MemoryAPIClient, MemoryClientConfig, SyncMemoryAPIClient
from agent_memory_client.models import ClientMemoryRecord, MemoryMessage, MemoryTypeEnum
from agent_memory_client.models.features.profile import Profile, ProfileSchema, ProfileTopic
from tests.support.lookalike import Lookalike
from tests.support.mcp import over_http
from tests.support.stack import stack
from tests.support.waiting import wait_until

NOW = datetime.now(UTC)
HOME = "I only train at home, no gym."
INPUTS = [
    "Performed bench press: 4 sets of 5 reps at 185.0 lbs. Notes: no knee pain",
    "Ran 5k in 26 minutes today",
    "Performed deadlift: 3 sets of 5 reps at 275.0 lbs",
    HOME,
    "My right shoulder is stiff after push-ups",
]
SAID_LATER = ["Trained at home today, 30 minutes of mobility", "Did squats, trained at home again because of the rain, 5 rounds"]
FACTS = {
    INPUTS[0]: ["User did bench press, 4 sets of 5 reps at 185.0 lbs", "User has no knee pain"],
    INPUTS[1]: ["User ran 5k in 26 minutes"],
    INPUTS[2]: ["User did deadlifts, 3 sets of 5 reps at 275.0 lbs"],
    HOME: ["User trains only at home"],
    INPUTS[4]: ["User's right shoulder is stiff after push-ups"],
    SAID_LATER[0]: ["User trained at home, mobility for 30 minutes"],
    SAID_LATER[1]: ["User trained at home, 5 rounds of squats"],
}


class Trainer:
    """The trainer program, which logs inputs and reads the profile before planning."""

    def __init__(self, url: str, model: Lookalike, has_model: bool) -> None:
        self.url = url
        self.model = model
        self.has_model = has_model
        self.api = MemoryAPIClient(MemoryClientConfig(base_url=url, max_retries=0))

    async def tell_home(self, user: str, city: str, said: str, days_ago: int = 0) -> None:
        """Store the user's home, as a message if there is a model, or else as a memory."""
        if self.has_model:
            await self.log(user, [said], days_ago)
            return
        at = NOW - timedelta(days=days_ago)
        home = ClientMemoryRecord(
            text=f"User lives in {city}", slot="user.home_city", user_id=user, memory_type=MemoryTypeEnum.SEMANTIC, created_at=at
        )
        await self.api.create_long_term_memory([home])

    async def asked_for(self, words: str) -> bool:
        """True if the model received these words."""
        return any(words in str(body) for body in self.model.bodies("chat"))

    async def log(self, user: str, texts: Sequence[str], days_ago: int = 0) -> None:
        """Append a day's messages and wait until they are processed."""
        at = NOW - timedelta(days=days_ago)
        for number, text in enumerate(texts):
            message = MemoryMessage(role="user", content=text, created_at=at + timedelta(seconds=number))
            await self.api.append_messages(f"day-{days_ago}", [message], user_id=user)
        await self.api.flush_working_memory(f"day-{days_ago}", user_id=user, wait=20)

    async def system_text(self, user: str, **more: Any) -> str:
        body = {
            "query": "What about the weather in the mountains?",
            "user_id": user,
            "long_term_search": True,
            "format": "anthropic",
            **more,
        }
        async with httpx.AsyncClient(base_url=self.url, timeout=60) as http:
            answer = await http.post("/v1/memory/prompt", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json().get("system"))

    async def profile_when(self, user: str, holds: Callable[[Profile], object], what: str) -> Profile:
        """Wait until the profile meets a condition, and return it."""
        last: list[Profile] = []

        async def check() -> bool:
            last[:] = [await self.api.profile.get(user)]
            return bool(holds(last[0]))

        await wait_until(check, what)
        return last[0]


@pytest.fixture(scope="module", params=["keyless", "model"])
async def trainer(redis_url: str, request: pytest.FixtureRequest) -> AsyncGenerator[tuple[Trainer, bool]]:
    """Run the trainer against a server with and without a language model."""
    has_model = request.param == "model"
    options: dict[str, Any] = {"KEY_PREFIX": f"trainer-{request.param}", "EMBEDDING_PROVIDER": "local", "MODEL_PROVIDER": "local"}
    model = Lookalike().start()
    if has_model:
        model.scripted.silent = True
        for said, facts in FACTS.items():
            model.scripted.facts[said] = [{"text": text, "type": "semantic"} for text in facts]
        model.scripted.facts["I live in Rome"] = [{"text": "User lives in Rome", "type": "semantic", "slot": "user.home_city"}]
        model.scripted.facts["I moved to Oslo"] = [{"text": "User lives in Oslo", "type": "semantic", "slot": "user.home_city"}]
        options |= {"MODEL_PROVIDER": "openai", "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test-0000"}
    try:
        async with stack(load_settings(EXTRACTION_DEBOUNCE_SECONDS=0, **options), redis_url) as url:
            program = Trainer(url, model, has_model)
            yield program, has_model
            await program.api.close()
    finally:
        model.stop()


def texts(profile: Profile) -> tuple[set[str], set[str]]:
    """Return the static texts and the dynamic texts."""
    return {entry.text for entry in profile.static}, {entry.text for entry in profile.dynamic}


async def test_inputs_are_dynamic_and_recurring_facts_become_static(trainer: tuple[Trainer, bool]) -> None:
    program, has_model = trainer
    await program.log("ann", INPUTS, days_ago=6)
    wanted = {fact for said in INPUTS for fact in FACTS[said]} if has_model else set(INPUTS)
    profile = await program.profile_when("ann", lambda p: texts(p)[1] >= wanted, "the inputs are known")
    assert not profile.static
    assert profile.dynamic[0].evidence[-1].session_id == "day-6"
    for days, said in zip((3, 0), SAID_LATER, strict=True):
        await program.log("ann", [said], days_ago=days)
    home = "User trains only at home" if has_model else HOME
    profile = await program.profile_when("ann", lambda p: p.static, "training at home recurs")
    assert {entry.text for entry in profile.static} == {home}
    moves = (await program.api.profile.moves("ann")).moves
    assert ("dynamic", "static") in {(move.before, move.after) for move in moves}
    # A new process knows the fact, and the prompt contains no other user's data.
    other = SyncMemoryAPIClient(MemoryClientConfig(base_url=program.url, max_retries=0))
    found = await asyncio.to_thread(other.profile.get, "ann", q="What should I do for my workout today?")
    assert texts(found) == texts(profile)
    assert found.memories
    assert any("home" in memory["text"] for memory in found.memories)
    assert texts(await asyncio.to_thread(other.profile.get, "ben")) == (set(), set())
    await asyncio.to_thread(other.close)


async def test_prompt_shows_the_profile_deterministically(trainer: tuple[Trainer, bool]) -> None:
    program, has_model = trainer
    said = "My name is Cleo" if not has_model else HOME
    await program.log("cleo", [said])
    await program.profile_when("cleo", lambda p: p.static or p.dynamic, "what Cleo said")
    systems = [await program.system_text("cleo", profile={"tokens": 300}) for _ in range(2)]
    assert systems[0] == systems[1]
    assert ("Cleo" if not has_model else "trains only at home") in systems[0]
    assert systems[0].startswith("## From memory: the user's profile")
    assert "profile" not in await program.system_text("cleo")


async def test_slots_are_grouped_by_topic_and_a_custom_schema_applies(trainer: tuple[Trainer, bool]) -> None:
    program, has_model = trainer
    await program.tell_home("dora", "Rome", "I live in Rome", days_ago=2)
    profile = await program.profile_when("dora", lambda p: p.slots, "the home")
    assert profile.slots["home"]["home_city"].text == "User lives in Rome"
    await program.tell_home("dora", "Oslo", "I moved to Oslo")
    profile = await program.profile_when("dora", lambda p: p.slots["home"]["home_city"].text == "User lives in Oslo", "the new home")
    assert "User lives in Oslo" in texts(profile)[0]
    assert "User lives in Rome" not in texts(profile)[0]
    own = ProfileSchema(topics={"whereabouts": ProfileTopic(sub_topics={"home_city": "Where they live."})})
    await program.api.profile.put_schema(own)
    assert list((await program.api.profile.get("dora")).slots) == ["whereabouts"]
    if has_model:
        await program.log("dora", ["I think of learning to sail"], days_ago=1)
        await wait_until(lambda: program.asked_for("user.home_city: Where they live."), "a prompt for facts that names the slots")
    await program.api.profile.delete_schema()
    assert list((await program.api.profile.get("dora")).slots) == ["home"]
    before = await program.api.profile.get("dora", as_of=NOW - timedelta(days=1))
    assert before.slots["home"]["home_city"].text == "User lives in Rome"


async def test_metadata_date_of_a_message_sets_when_facts_were_stated(trainer: tuple[Trainer, bool]) -> None:
    program, has_model = trainer
    for days in (10, 5, 1):
        message = {"role": "user", "content": HOME, "metadata": {"date": (NOW - timedelta(days=days)).date().isoformat()}}
        await program.api.append_messages(f"noted-{days}", [message], user_id="hugo", wait="promoted")
        await program.api.flush_working_memory(f"noted-{days}", user_id="hugo", wait=20)
    profile = await program.profile_when("hugo", lambda p: p.static, "training at home recurs")
    assert {entry.text for entry in profile.static} == {"User trains only at home" if has_model else HOME}
    assert profile.static[0].since.date() == (NOW - timedelta(days=10)).date()
    assert profile.static[0].last_said.date() == (NOW - timedelta(days=1)).date()
    session = await program.api.sessions.get("noted-10", user_id="hugo")
    assert session.messages[0].created_at.date() == NOW.date(), "the session says when the message came"


async def test_rebuild_keeps_the_profile_and_erasure_deletes_it(trainer: tuple[Trainer, bool]) -> None:
    program, _ = trainer
    await program.log("emil", [HOME])
    profile = await program.profile_when("emil", lambda p: p.dynamic, "what Emil said")
    assert (await program.api.profile.rebuild("emil")).status == "ok"
    again = await program.profile_when("emil", lambda p: p.version > profile.version and p.dynamic, "the profile made anew")
    assert (again.static, again.dynamic) == (profile.static, profile.dynamic)
    await program.api.delete_user("emil")
    gone = await program.profile_when("emil", lambda p: not p.dynamic, "nothing of Emil")
    assert not gone.static
    assert not (await program.api.profile.moves("emil")).moves


async def test_prompt_without_session_uses_the_given_user(trainer: tuple[Trainer, bool]) -> None:
    program, _ = trainer
    for user, said in (("iris", HOME), ("jack", INPUTS[4])):
        await program.log(user, [said])
    await program.profile_when("iris", lambda p: p.dynamic or p.static, "what Iris said")
    answer = await program.api.prompts.render("What hurts after push-ups?", user_id="iris", long_term_search=True, profile={"tokens": 300})
    shown = str(answer.messages[:-1])
    assert "home" in shown, "the profile, too"
    assert "shoulder" not in shown, "nobody else's"


async def test_model_reads_the_profile_with_a_tool(trainer: tuple[Trainer, bool]) -> None:
    program, has_model = trainer
    await program.log("flo", [HOME])
    home = "User trains only at home" if has_model else HOME
    await program.profile_when("flo", lambda p: p.dynamic, "what Flo said")
    async with over_http(f"{program.url}/mcp") as session:
        answer = await session.call("get_profile", user_id="flo")
    assert [entry["text"] for entry in answer["dynamic"]] == [home]
    call = {"name": "get_profile", "arguments": {"query": "a workout"}}
    result = await program.api.resolve_tool_call(call, "s", user_id="flo")
    assert result["result"] is not None
    assert result["result"]["dynamic"] == [home], result
