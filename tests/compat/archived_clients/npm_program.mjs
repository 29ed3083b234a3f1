// A program of a user of the archived project's npm client: every public method, real answers compared.
// node npm_program.mjs BASE_URL [FOLDER of the installed package, or ""] [PART...]. Each PART has the scenarios of one feature.
// Prints one JSON report.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { wire } from "./npm_wire.mjs";

const [baseUrl, folder, ...parts] = process.argv.slice(2);
const real = folder && JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const source = folder ? pathToFileURL(createRequire(join(folder, "package.json")).resolve(folder)).href : "./npm_client.mjs";
const imported = await import(source);
const library = imported.MemoryAPIClient ? imported : imported.default;
const { MemoryAPIClient, MemoryServerError, MemoryValidationError } = library;

const METHODS = [
  "healthCheck", "listSessions", "getWorkingMemory", "getOrCreateWorkingMemory", "putWorkingMemory", "deleteWorkingMemory",
  "createLongTermMemory", "searchLongTermMemory", "getLongTermMemory", "deleteLongTermMemories", "memoryPrompt", "editLongTermMemory",
  "forgetLongTermMemories", "listSummaryViews", "createSummaryView", "getSummaryView", "deleteSummaryView", "runSummaryViewPartition",
  "listSummaryViewPartitions", "runSummaryView", "getTask", "close", "validateMemoryRecord", "validateSearchFilters",
  "bulkCreateLongTermMemories", "searchAllLongTermMemories",
];
const PATIENCE_MS = 30_000;
const DAY_MS = 86_400_000;
const run = `npm-${Date.now()}-${process.pid}`;
const TEXTS = {
  tea: "Ada drinks green tea in the morning.",
  bike: "Ada rides a red bicycle to work.",
  cello: "Ada played the cello at a concert in Paris.",
};
const called = {};
const sent = [];

/** A client in a namespace of its own, whose calls are counted and whose requests are kept. */
function open(name, config = {}) {
  const recorded = (url, init) => {
    sent.push({ url: new URL(url), ...init });
    return fetch(url, init);
  };
  const client = new MemoryAPIClient({ baseUrl, defaultNamespace: `${run}-${name}`, fetch: recorded, ...config });
  return new Proxy(client, {
    get(target, property) {
      const found = target[property];
      if (typeof found !== "function") return found;
      return (...given) => {
        called[property] = (called[property] ?? 0) + 1;
        return found.apply(target, given);
      };
    },
  });
}

async function until(condition, what) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await condition();
    if (found) return found;
    assert.ok(Date.now() < deadline, `waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The three facts, stored and found by meaning. The client puts no namespace into records, so they carry it. */
async function three(client) {
  const namespace = client.config.defaultNamespace;
  const record = (name, more) => ({ id: `${namespace}:${name}`, text: TEXTS[name], namespace, memory_type: "semantic", ...more });
  const memories = [
    record("tea", { topics: ["food", "habits"], entities: ["Ada"], user_id: "ada", session_id: "s1" }),
    record("bike", { topics: ["travel", "habits"], entities: ["Ada", "bicycle"], user_id: "ada", session_id: "s2" }),
    record("cello", { topics: ["music"], user_id: "bob", memory_type: "episodic", event_date: "2024-05-06T07:08:09Z" }),
  ];
  assert.deepEqual(await client.createLongTermMemory(memories), { status: "ok" });
  const all = { text: "Ada", namespace: { eq: namespace }, distanceThreshold: 1.9 };
  await until(async () => (await client.searchLongTermMemory(all)).total === 3, "the three facts");
  return { namespace: { eq: namespace }, ids: Object.fromEntries(memories.map(({ id }) => [id.split(":").pop(), id])) };
}

const scenarios = {
  async wire() {
    await wire(library);
  },

  async health() {
    const client = open("health");
    assert.ok(Math.abs((await client.healthCheck()).now - Date.now()) < 60_000);
    client.close();
  },

  async sessions() {
    const client = open("sessions", { defaultModelName: "gpt-4o" });
    const id = "chat 1: ä?&#%";
    assert.equal(await client.getWorkingMemory(id), null);
    const messages = [{ role: "user", content: "Good morning" }, { role: "assistant", content: "Hello", created_at: "2026-01-02T03:04:05Z" }];
    const session = { messages, data: { mood: { is: "good" }, none: null }, context: "They met before.", user_id: null, tokens: 7 };
    const stored = await client.putWorkingMemory(id, session, { background: true, contextWindowMax: 4000 });
    assert.deepEqual([stored.session_id, stored.namespace, stored.user_id], [id, client.config.defaultNamespace, null]);
    assert.deepEqual([stored.tokens, stored.memories, stored.ttl_seconds], [7, [], null]);
    assert.ok(stored.context_percentage_total_used > 0);
    const read = await client.getWorkingMemory(id);
    assert.deepEqual(read.messages.map(({ content }) => content), ["Good morning", "Hello"]);
    assert.deepEqual([read.data, read.context], [session.data, session.context]);
    assert.equal(Date.parse(read.messages[1].created_at), Date.parse("2026-01-02T03:04:05Z"));
    assert.deepEqual(await client.listSessions({ limit: 5 }), { sessions: [id], total: 1 });
    assert.deepEqual(await client.listSessions({ userId: "nobody", offset: 0 }), { sessions: [], total: 0 });
    assert.deepEqual(await client.deleteWorkingMemory(id), { status: "ok" });
    assert.deepEqual(await client.deleteWorkingMemory(id), { status: "ok" });
    assert.equal(await client.getWorkingMemory(id), null);
  },

  async getOrCreate() {
    const client = open("getOrCreate");
    const options = { userId: "ada", ttlSeconds: 600, longTermMemoryStrategy: { strategy: "preferences" } };
    const made = await client.getOrCreateWorkingMemory("s", options);
    assert.deepEqual([made.session_id, made.user_id, made.ttl_seconds, made.messages], ["s", "ada", 600, []]);
    assert.deepEqual(made.long_term_memory_strategy, { strategy: "preferences", config: {} });
    await client.putWorkingMemory("s", { user_id: "ada", messages: [{ role: "user", content: "Hello" }] });
    assert.equal((await client.getOrCreateWorkingMemory("s", options)).messages.length, 1);
    assert.equal((await client.getWorkingMemory("s", { userId: "ada" })).messages[0].content, "Hello");
    assert.equal((await client.getWorkingMemory("s")).user_id, "ada");
  },

  async records() {
    const client = open("records");
    const namespace = client.config.defaultNamespace;
    const id = `${namespace}/a b,ü?`.replace(",", ".");
    const record = { id, text: TEXTS.tea, namespace, topics: ["food"], memory_type: "semantic", user_id: null, event_date: null };
    client.validateMemoryRecord({ ...record, id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" });
    assert.throws(() => client.validateMemoryRecord({ ...record, text: " " }), MemoryValidationError);
    assert.deepEqual(await client.createLongTermMemory([record]), { status: "ok" });
    const read = await client.getLongTermMemory(id);
    assert.deepEqual([read.id, read.text, read.topics, read.entities, read.namespace], [id, TEXTS.tea, ["food"], [], namespace]);
    assert.deepEqual([read.user_id, read.memory_type, read.pinned], [null, "semantic", false]);
    const changed = await client.editLongTermMemory(id, { text: "Ada drinks coffee now.", topics: [], memory_type: null });
    assert.deepEqual([changed.text, changed.topics, changed.memory_type], ["Ada drinks coffee now.", [], "semantic"]);
    assert.deepEqual(await client.deleteLongTermMemories([id, "none"]), { status: "ok, deleted 1 memories" });
    assert.equal(await client.getLongTermMemory(id), null);
    assert.deepEqual(await client.deleteLongTermMemories([]), { status: "ok, deleted 0 memories" });
  },

  async searching() {
    const client = open("searching");
    const { namespace, ids } = await three(client);
    const text = "What does Ada drink?";
    const semantic = await client.searchLongTermMemory({ text, namespace, limit: 1, offset: 0 });
    assert.deepEqual([semantic.total, semantic.next_offset, semantic.memories.length], [3, 1, 1]);
    assert.deepEqual([semantic.memories[0].id, semantic.memories[0].score_type], [ids.tea, "semantic"]);
    const recency = { recency_boost: true, semantic_weight: 0.9, recency_weight: 0.1, half_life_created_days: 3, server_side_recency: true };
    for (const more of [{ searchMode: "keyword" }, { searchMode: "hybrid", hybridAlpha: 0.2 }, { recency }]) {
      const { memories } = await client.searchLongTermMemory({ text: "green tea", namespace, ...more });
      assert.equal(memories[0].id, ids.tea, JSON.stringify(more));
      assert.equal(typeof memories[0].dist, "number");
    }
    client.validateSearchFilters({ limit: 1, offset: 0, distanceThreshold: 0.5 });
    assert.throws(() => client.validateSearchFilters({ limit: 0 }), MemoryValidationError);
  },

  async filters() {
    const client = open("filters");
    const { namespace, ids } = await three(client);
    const names = Object.fromEntries(Object.entries(ids).map(([name, id]) => [id, name]));
    const [now, day] = [Date.now(), DAY_MS];
    const iso = (at) => new Date(at).toISOString();
    const cases = [
      [{ userId: { eq: "ada" } }, "bike,tea"],
      [{ userId: { in_: ["bob", "eve"] } }, "cello"],
      [{ userId: { not_eq: "ada" } }, "cello"],
      [{ userId: { not_in: ["bob"] } }, "bike,tea"],
      [{ sessionId: { ne: "s1" } }, "bike,cello"],
      [{ sessionId: { startswith: "s" } }, "bike,tea"],
      [{ topics: { any: ["food", "music"] } }, "cello,tea"],
      [{ topics: { all: ["travel", "habits"] } }, "bike"],
      [{ topics: { none: ["music"] } }, "bike,tea"],
      [{ entities: { all: ["Ada", "bicycle"] } }, "bike"],
      [{ memoryType: { not_in: ["semantic"] } }, "cello"],
      [{ memoryType: { in_: ["semantic"], not_eq: "message" } }, "bike,tea"],
      [{ createdAt: { gte: iso(now - day), lte: iso(now + day) } }, "bike,cello,tea"],
      [{ createdAt: { gte: iso(now - 2 * day), lte: iso(now - day) } }, ""],
      [{ lastAccessed: { gte: iso(now - day) } }, "bike,cello,tea"],
      [{ eventDate: { eq: new Date("2024-05-06T07:08:09Z") } }, "cello"],
      [{ userId: { eq: "ada", in_: null, not_eq: null, not_in: null }, topics: { any: null, all: ["travel"], none: null } }, "bike"],
      [{ createdAt: { gte: new Date(now - day), lte: null, eq: null } }, "bike,cello,tea"],
    ];
    for (const [filter, wanted] of cases) {
      const { memories, total } = await client.searchLongTermMemory({ text: "Ada", namespace, ...filter });
      assert.equal(memories.map(({ id }) => names[id]).sort().join(), wanted, JSON.stringify(filter));
      assert.equal(total, memories.length);
    }
    assert.equal((await client.searchLongTermMemory({ text: "Ada", namespace: { eq: `${namespace.eq}-other` } })).total, 0);
  },

  async pages() {
    const client = open("pages");
    const { namespace, ids } = await three(client);
    const found = [];
    for await (const memory of client.searchAllLongTermMemories({ text: "Ada", namespace, batchSize: 2 })) found.push(memory.id);
    assert.deepEqual(found.sort(), Object.values(ids).sort());
    const boxes = [1, 2, 3].map((number) => ({ id: `${namespace.eq}:box${number}`, text: `The box ${number} is blue.`, namespace: namespace.eq }));
    const answers = await client.bulkCreateLongTermMemories([boxes], { batchSize: 2, delayBetweenBatches: 1 });
    assert.deepEqual(answers, [{ status: "ok" }, { status: "ok" }]);
    assert.equal((await client.getLongTermMemory(boxes[2].id)).text, boxes[2].text);
  },

  async forgetting() {
    const client = open("forgetting");
    const namespace = client.config.defaultNamespace;
    const old = new Date(Date.now() - 100 * DAY_MS).toISOString();
    const ids = ["old", "pinned", "new"].map((name) => `${namespace}:${name}`);
    const record = (id, created_at) => ({ id, text: `${id} says something of its own`, namespace, created_at, last_accessed: created_at });
    await client.createLongTermMemory([record(ids[0], old), record(ids[1], old), record(ids[2])]);
    const options = { policy: { max_age_days: 30 }, namespace, pinnedIds: [ids[1]], limit: 10 };
    await until(async () => (await client.forgetLongTermMemories(options)).scanned === 3, "all three counted");
    const planned = await client.forgetLongTermMemories(options);
    assert.deepEqual([planned.deleted, planned.deleted_ids, planned.dry_run], [1, [ids[0]], true]);
    assert.ok(await client.getLongTermMemory(ids[0]));
    const done = await client.forgetLongTermMemories({ ...options, dryRun: false });
    assert.deepEqual([done.deleted, done.deleted_ids, done.dry_run], [1, [ids[0]], false]);
    assert.equal(await client.getLongTermMemory(ids[0]), null);
    assert.ok(await client.getLongTermMemory(ids[1]));
  },

  async prompts() {
    const client = open("prompts");
    const { namespace } = await three(client);
    await client.putWorkingMemory("chat", { context: "Small talk.", messages: [{ role: "user", content: "Hello" }] });
    const session = { session_id: "chat", namespace: namespace.eq, user_id: null, model_name: "gpt-4o", context_window_max: 4000 };
    const others = await client.memoryPrompt({ query: "What does Ada drink?", session, long_term_search: { namespace, limit: 1 } });
    // The session has no user: nobody's memories stand in its prompt, unless the search says whose it wants.
    assert.equal(others.long_term_memories, null);
    const request = { query: "What does Ada drink?", session, long_term_search: { namespace, user_id: { eq: "ada" }, limit: 1 } };
    const answer = await client.memoryPrompt(request);
    assert.deepEqual(answer.messages.map(({ role }) => role), ["system", "user", "system", "user"]);
    assert.equal(answer.messages[0].content.text, "## A summary of the conversation so far:\nSmall talk.");
    assert.deepEqual(answer.messages[1].content, { type: "text", text: "Hello", annotations: null, _meta: null });
    assert.ok(answer.messages[2].content.text.includes(TEXTS.tea));
    assert.deepEqual(answer.long_term_memories.map(({ text }) => text), [TEXTS.tea]);
    await assert.rejects(client.memoryPrompt({ query: "x" }), (error) => error.statusCode === 400);
  },

  async refusalsAndHeaders() {
    const client = open("headers", { apiKey: "key-1", bearerToken: "token-1" });
    await client.listSessions();
    const { headers } = sent.at(-1);
    assert.deepEqual([headers["X-API-Key"], headers.Authorization], ["key-1", "Bearer token-1"]);
    const refusal = (error) => error instanceof MemoryServerError && error.statusCode === 422;
    await assert.rejects(client.searchLongTermMemory({ text: "x", limit: 101 }), refusal);
    await assert.rejects(client.createLongTermMemory([{ id: "", text: "x" }]), refusal);
    await assert.rejects(client.putWorkingMemory("a/b", {}), (error) => [404, 422, undefined].includes(error.statusCode));
  },
};

for (const part of parts) Object.assign(scenarios, (await import(pathToFileURL(part).href)).scenarios({ open, three, until }));
const failures = {};
for (const [name, scenario] of Object.entries(scenarios)) {
  try {
    await scenario();
  } catch (error) {
    failures[name] = error.stack ?? String(error);
  }
}
const queries = [...new Set(sent.flatMap(({ url }) => [...url.searchParams.keys()]))].sort();
const missing = METHODS.filter((method) => !called[method]);
const unknown = Object.getOwnPropertyNames(MemoryAPIClient.prototype).filter((name) => !METHODS.includes(name) && name !== "constructor");
console.log(JSON.stringify({ version: real?.version ?? null, scenarios: Object.keys(scenarios), failures, missing, unknown, queries, requests: sent.length }));
