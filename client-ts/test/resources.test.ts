/** Test each resource with the real server. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MemoryClient, MemoryNotFoundError } from "../src/index.ts";
import { SERVER, client, unique, until } from "./support.ts";

const CONVERSATION = [
  { role: "user", content: "What is the weather in Oslo?" },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } }],
  },
  { role: "tool", tool_call_id: "c1", name: "weather", content: "4 °C" },
  { role: "assistant", content: "It is 4 °C." },
];

test("the server answers", async () => {
  assert.equal(typeof (await client.health()).now, "number");
});

describe("working memory", () => {
  test("can be put, read, listed, changed and deleted", async () => {
    const [session, user_id] = [unique("s"), unique()];
    const put = await client.workingMemory.put(
      session,
      { messages: [{ role: "user", content: "I am Ada." }], data: { mood: "calm" } },
      { user_id },
    );
    assert.equal(put.messages[0]?.content, "I am Ada.");
    const { version, appended } = await client.workingMemory.append(session, [{ role: "assistant", content: "Hello Ada!" }], { user_id });
    assert.equal(appended, 1);
    await assert.rejects(client.workingMemory.append(session, [{ role: "user", content: "late" }], { user_id, ifMatch: version - 1 }), {
      status: 412,
    });
    const changed = await client.workingMemory.updateData(session, { mood: null, city: "Oslo" }, { user_id });
    assert.deepEqual(changed.data, { city: "Oslo" });
    const read = await client.workingMemory.get(session, { user_id });
    assert.deepEqual(
      read.messages.map(({ content }) => content),
      ["I am Ada.", "Hello Ada!"],
    );
    assert.deepEqual(
      (await client.workingMemory.get(session, { user_id, recent_messages_limit: 1 })).messages.map(({ role }) => role),
      ["assistant"],
    );
    assert.deepEqual((await client.workingMemory.list({ user_id })).sessions, [session]);
    await client.workingMemory.flush(session, { user_id, wait: 10 });
    await client.workingMemory.delete(session, { user_id });
    await assert.rejects(client.workingMemory.get(session, { user_id }), MemoryNotFoundError);
  });

  test("keeps tool calls", async () => {
    const [session, user_id] = [unique("s"), unique()];
    await client.workingMemory.append(session, CONVERSATION, { user_id });
    const { messages } = await client.workingMemory.get(session, { user_id });
    const [, call, result] = messages;
    assert.deepEqual(call?.["tool_calls"], CONVERSATION[1]?.tool_calls);
    assert.equal(call?.no_content, "null");
    assert.deepEqual([result?.role, result?.["tool_call_id"], result?.["name"], result?.content], ["tool", "c1", "weather", "4 °C"]);
    await client.workingMemory.put(session, { messages }, { user_id });
    const again = await client.workingMemory.get(session, { user_id });
    assert.deepEqual(
      again.messages.map((message) => message["tool_calls"]),
      messages.map((message) => message["tool_calls"]),
    );
    const prompt = await client.prompts.render({ query: "And Bergen?", format: "openai", session: { session_id: session, user_id } });
    assert.deepEqual(
      (prompt.messages as { role: string }[]).map(({ role }) => role),
      ["user", "assistant", "tool", "assistant", "user"],
    );
  });
});

test("long-term memories are created, found, changed, deleted and forgotten", async () => {
  const user_id = unique();
  const id = unique("m");
  await client.longTermMemory.create(
    [
      { id, text: "Ada keeps bees.", user_id },
      { text: "Ada drinks tea.", user_id },
    ],
    { wait: 10 },
  );
  const found = await client.longTermMemory.search({ text: "bees", user_id: { eq: user_id }, search_mode: "hybrid" });
  assert.equal(found.memories[0]?.text, "Ada keeps bees.");
  assert.equal(found.total, 2);
  assert.equal((await client.longTermMemory.edit(id, { text: "Ada keeps wild bees." })).text, "Ada keeps wild bees.");
  assert.equal((await client.longTermMemory.get(id)).text, "Ada keeps wild bees.");
  await client.longTermMemory.edit(id, { slot: "pets" });
  assert.ok(!(await client.longTermMemory.edit(id, { slot: null })).slot, "null clears a field");
  const forgotten = await client.longTermMemory.forget({ policy: { budget: 1 } }, { user_id, dry_run: true });
  assert.deepEqual([forgotten.scanned, forgotten.deleted, forgotten.dry_run], [2, 1, true]);
  const receipt = await client.longTermMemory.forgetByRequest({ ids: [id], user_id });
  await assert.rejects(client.longTermMemory.get(id), MemoryNotFoundError);
  await client.longTermMemory.getForgotten(receipt.receipt_id ?? "");
  await client.longTermMemory.undoForget(receipt.receipt_id ?? "");
  assert.equal((await client.longTermMemory.get(id)).id, id);
  const ids = [id, ...Array.from({ length: 250 }, () => unique("none"))];
  assert.equal((await client.longTermMemory.delete(ids)).status, "ok, deleted 1 memories");
  await assert.rejects(client.longTermMemory.get(id), MemoryNotFoundError);
});

test("prompts, profiles and timelines show matching memories", async () => {
  const user_id = unique();
  const memory = { text: "Ada moved to Porto.", user_id, slot: "home_city", event_date: "2026-03-01T00:00:00Z", pinned: true };
  await client.longTermMemory.create([memory], { wait: 10 });
  const { system, relevant } = await client.prompts.render({
    query: "Where does Ada live?",
    user_id,
    long_term_search: { user_id: { eq: user_id } },
    format: "anthropic",
  });
  assert.equal(relevant, true);
  assert.match(system ?? "", /Ada moved to Porto\./);
  const event = await until(async () => (await client.timeline.get({ user_id, from: "2026-01-01", to: "2026-12-31" })).events?.[0]);
  assert.equal(event.text, "Ada moved to Porto.");
  const shown = await until(async () => {
    const { static: stable = [], dynamic = [] } = await client.profile.get({ user_id });
    return [...stable, ...dynamic][0];
  });
  assert.equal(shown.text, "Ada moved to Porto.");
});

test("blocks are created, edited, shared, undone and deleted", async () => {
  const [user_id, agent_id] = [unique(), unique("a")];
  await client.blocks.put("human", { value: "Name: Ada" }, { user_id });
  const { block } = await client.blocks.edit("human", { operation: "append", content: "City: Porto" }, { user_id });
  assert.equal(block.value, "Name: Ada\nCity: Porto");
  await assert.rejects(client.blocks.put("human", { value: "x" }, { user_id, ifMatch: block.version - 1 }), { status: 412 });
  await client.blocks.attach("human", { agent_id }, { user_id });
  assert.deepEqual(
    (await client.blocks.list({ agent_id, shown: true })).blocks.map(({ label }) => label),
    ["human"],
  );
  await client.blocks.detach("human", { agent_id }, { user_id });
  await client.blocks.undo("human", {}, { user_id });
  assert.equal((await client.blocks.get("human", { user_id })).value, "Name: Ada");
  assert.ok((await client.blocks.history("human", { user_id })).changes.length >= 2);
  await client.blocks.delete("human", { user_id });
  await assert.rejects(client.blocks.get("human", { user_id }), MemoryNotFoundError);
});

test("procedures are created, found, rated, changed and deleted", async () => {
  const user_id = unique();
  const { id } = await client.procedures.create({
    when_to_use: "The build is red",
    steps: ["read the log", "fix the first error"],
    user_id,
  });
  const { procedures } = await client.procedures.search({ situation: "The build is red again", user_id });
  assert.equal(procedures[0]?.id, id);
  assert.equal((await client.procedures.giveFeedback(id, { helped: true })).helped, 1);
  assert.deepEqual((await client.procedures.update(id, { steps: ["read the log"] })).steps, ["read the log"]);
  assert.equal((await client.procedures.list({ user_id })).procedures[0]?.id, id);
  assert.equal((await client.procedures.get(id)).when_to_use, "The build is red");
  await client.procedures.delete(id);
  await assert.rejects(client.procedures.get(id), MemoryNotFoundError);
});

test("items are put, read, searched, listed and deleted", async () => {
  const user_id = unique();
  await client.items.put({ path: ["settings", "ui"], key: "theme", value: { dark: true, label: "night sky" } }, { user_id });
  assert.deepEqual((await client.items.get(["settings", "ui"], "theme", { user_id }))?.value, { dark: true, label: "night sky" });
  assert.equal((await client.items.search({ prefix: ["settings"], query: "night" }, { user_id })).items[0]?.key, "theme");
  assert.deepEqual((await client.items.listNamespaces({}, { user_id })).namespaces, [["settings", "ui"]]);
  await client.items.delete(["settings", "ui"], "theme", { user_id });
  assert.equal(await client.items.get(["settings", "ui"], "theme", { user_id }), undefined);
});

test("files are uploaded, read, listed, found and deleted", async () => {
  const user_id = unique();
  const file = await client.files.upload("visit.md", "The greenhouse opens at nine.", { user_id });
  assert.deepEqual([file.media_type, file.size], ["text/markdown", 29]);
  const bytes = new TextEncoder().encode("<p>Boots are in the shed.</p>");
  const page = await client.files.upload("boots", new Blob([bytes]), { user_id, mediaType: "text/html" });
  assert.equal((await client.files.upload("copy", bytes, { user_id, mediaType: "text/html" })).id, page.id);
  for (const { id } of [file, page]) {
    await until(async () => ((await client.files.get(id, { user_id })).state === "ready" ? true : undefined));
  }
  const listed = await client.files.list({ user_id });
  assert.deepEqual(
    [listed.total, listed.files.map(({ id, passages }) => [id, passages])],
    [
      2,
      [
        [page.id, 1],
        [file.id, 1],
      ],
    ],
  );
  const found = await client.longTermMemory.search({ text: "boots", user_id: { eq: user_id } });
  assert.equal(found.memories[0]?.text, "Boots are in the shed.");
  await client.files.delete(page.id, { user_id });
  await assert.rejects(client.files.get(page.id, { user_id }), MemoryNotFoundError);
  assert.equal((await client.files.list({ user_id })).total, 1);
});

test("two users never see each other's data", async () => {
  const [session, secret, ada, bob] = [unique("s"), unique("secret"), unique("ada"), unique("bob")];
  await client.workingMemory.put(session, { messages: [{ role: "user", content: secret }] }, { user_id: ada });
  await client.longTermMemory.create([{ text: `The word is ${secret}.`, user_id: ada }], { wait: 10 });
  await client.blocks.put("human", { value: secret }, { user_id: ada });
  await client.items.put({ path: ["p"], key: "k", value: { secret } }, { user_id: ada });
  await client.procedures.create({ when_to_use: secret, steps: [secret], user_id: ada });
  await assert.rejects(client.workingMemory.get(session, { user_id: bob }), MemoryNotFoundError);
  const seen = [
    await client.workingMemory.list({ user_id: bob }),
    await client.longTermMemory.search({ text: secret, user_id: { eq: bob } }),
    { ...(await client.prompts.render({ query: "the word", user_id: bob, long_term_search: true, format: "text" })) },
    await client.blocks.list({ user_id: bob, shown: true }),
    await client.items.search({ prefix: ["p"] }, { user_id: bob }),
    (await client.items.get(["p"], "k", { user_id: bob })) ?? {},
    await client.procedures.search({ situation: secret, user_id: bob }),
  ];
  for (const answer of seen) assert.ok(!JSON.stringify(answer).includes(secret), JSON.stringify(answer));
  assert.ok(JSON.stringify(await client.longTermMemory.search({ text: secret, user_id: { eq: ada } })).includes(secret));
});

test("every call uses the client's namespace, unless it names another or none", async () => {
  const [namespace, user_id, session] = [unique("n"), unique(), unique("s")];
  const within = new MemoryClient({ baseUrl: `${SERVER}/`, namespace });
  await within.workingMemory.append(session, [{ role: "user", content: "hi" }], { user_id });
  assert.equal((await client.workingMemory.get(session, { user_id, namespace })).namespace, namespace);
  await assert.rejects(within.workingMemory.get(session, { user_id, namespace: "other" }), MemoryNotFoundError);
  await within.longTermMemory.create([{ text: "Ada keeps bees.", user_id }], { wait: 10 });
  await client.longTermMemory.create([{ text: "Ada keeps cats.", user_id }], { wait: 10 });
  const texts = async (memory: MemoryClient) =>
    (await memory.longTermMemory.search({ text: "Ada keeps", user_id: { eq: user_id } })).memories.map(({ text }) => text);
  assert.deepEqual(await texts(within), ["Ada keeps bees."]);
  assert.equal((await texts(client)).length, 2);
  const recalled = async (options: object) => {
    const search = { user_id: { eq: user_id } };
    const prompt = await within.prompts.render({
      query: "What does Ada keep?",
      user_id,
      long_term_search: search,
      format: "text",
      ...options,
    });
    return [/bees/.test(prompt.text ?? ""), /cats/.test(prompt.text ?? "")];
  };
  assert.deepEqual(await recalled({}), [true, false]);
  assert.deepEqual(await recalled({ namespace: unique("n") }), [false, false]);
  assert.deepEqual(await recalled({ namespace: null }), [true, true]);
});

test("an acting user reaches no other user's memory by its id", async () => {
  const [ida, id] = [unique("ïda"), unique("m")];
  const acting = (actingUser: string) => new MemoryClient({ baseUrl: SERVER, actingUser });
  await acting(ida).longTermMemory.create([{ id, text: "Ida lives in Rome.", user_id: ida }]);
  assert.equal((await acting(ida).longTermMemory.get(id)).user_id, ida);
  await assert.rejects(acting("bob").longTermMemory.get(id), MemoryNotFoundError);
});
