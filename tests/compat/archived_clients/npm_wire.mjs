// What each public method of the archived project's npm client (agent-memory-client 0.3) puts on the wire: method, path, query and body.
// Holds for the stand-in and, where it is installed, for the package itself; nothing is sent.

import assert from "node:assert/strict";

const JSON_TYPE = "application/json";
const DEFAULTS = { defaultNamespace: "home", defaultModelName: "gpt-4o", defaultContextWindowMax: 4000 };
const SESSION = "/v1/working-memory/a%20b%26%2Fc";
const WINDOW = "model_name=gpt-4o&context_window_max=4000";
const MEMORIES = "/v1/long-term-memory";
const VIEW = "/v1/summary-views/v%2F1";
const SEARCH = { search_mode: "semantic", hybrid_alpha: 0.7, text_scorer: "BM25STD" };
const RECENCY = {
  recency_boost: false, semantic_weight: 0.1, recency_weight: 0.2, freshness_weight: 0.3, novelty_weight: 0.4,
  half_life_last_access_days: 5, half_life_created_days: 6, server_side_recency: true,
};
const record = (id) => ({ id, text: "It rains." });

/** [what is called, the requests that go out, the answers that come back one after the other (404 for null, {} where none is named)] */
const CALLS = [
  [(c) => c.healthCheck(), [["GET", "/v1/health"]]],
  [(c) => c.listSessions(), [["GET", "/v1/working-memory/?namespace=home"]]],
  [
    (c) => c.listSessions({ namespace: "n", userId: "ada", limit: 5, offset: 0 }),
    [["GET", "/v1/working-memory/?namespace=n&user_id=ada&limit=5&offset=0"]],
  ],
  [(c) => c.getWorkingMemory("a b&/c"), [["GET", `${SESSION}?namespace=home&${WINDOW}`]]],
  [
    (c) => c.getWorkingMemory("s", { namespace: "n", userId: "ada", modelName: "gpt-4", contextWindowMax: 9 }),
    [["GET", "/v1/working-memory/s?namespace=n&user_id=ada&model_name=gpt-4&context_window_max=9"]],
  ],
  [(c) => c.getOrCreateWorkingMemory("s"), [["GET", `/v1/working-memory/s?namespace=home&${WINDOW}`]]],
  [
    (c) => c.getOrCreateWorkingMemory("s", { userId: "ada", ttlSeconds: 60, longTermMemoryStrategy: { strategy: "summary" } }),
    [
      ["GET", `/v1/working-memory/s?namespace=home&user_id=ada&${WINDOW}`],
      [
        "PUT", `/v1/working-memory/s?${WINDOW}`,
        {
          session_id: "s", namespace: "home", user_id: "ada", messages: [], memories: [], ttl_seconds: 60,
          long_term_memory_strategy: { strategy: "summary" },
        },
      ],
    ],
    [null],
  ],
  [
    (c) => c.putWorkingMemory("a b&/c", { messages: [{ role: "user", content: "Hi" }] }, { background: true }),
    [["PUT", `${SESSION}?${WINDOW}&background=true`, { session_id: "a b&/c", messages: [{ role: "user", content: "Hi" }], namespace: "home" }]],
  ],
  [
    (c) => c.putWorkingMemory("s", { user_id: "ada" }, { namespace: "n", modelName: "gpt-4", contextWindowMax: 9 }),
    [["PUT", "/v1/working-memory/s?model_name=gpt-4&context_window_max=9", { session_id: "s", user_id: "ada", namespace: "n" }]],
  ],
  [(c) => c.deleteWorkingMemory("a b&/c"), [["DELETE", `${SESSION}?namespace=home`]]],
  [(c) => c.deleteWorkingMemory("s", { namespace: "n", userId: "ada" }), [["DELETE", "/v1/working-memory/s?namespace=n&user_id=ada"]]],
  [(c) => c.createLongTermMemory([record("1")]), [["POST", `${MEMORIES}/?namespace=home`, { memories: [record("1")] }]]],
  [(c) => c.searchLongTermMemory({ text: "rain" }), [["POST", `${MEMORIES}/search`, { text: "rain", ...SEARCH }]]],
  [
    (c) =>
      c.searchLongTermMemory({
        text: "rain", searchMode: "hybrid", hybridAlpha: 0, textScorer: "TFIDF", limit: 1, offset: 0, distanceThreshold: 0,
        sessionId: { not_in: ["s"] }, namespace: { eq: "n" }, topics: { none: ["t"] }, entities: { all: ["e"] }, userId: { in_: ["ada"] },
        memoryType: { not_eq: "message" }, createdAt: { gte: new Date(0) }, lastAccessed: { lte: "2026-01-02T03:04:05Z" },
        eventDate: { eq: new Date(0) }, recency: RECENCY, optimizeQuery: true,
      }),
    [
      [
        "POST", `${MEMORIES}/search`,
        {
          text: "rain", search_mode: "hybrid", hybrid_alpha: 0, text_scorer: "TFIDF", limit: 1, offset: 0, distance_threshold: 0,
          session_id: { not_in: ["s"] }, namespace: { eq: "n" }, topics: { none: ["t"] }, entities: { all: ["e"] }, user_id: { in_: ["ada"] },
          memory_type: { not_eq: "message" }, created_at: { gte: "1970-01-01T00:00:00.000Z" },
          last_accessed: { lte: "2026-01-02T03:04:05Z" }, event_date: { eq: "1970-01-01T00:00:00.000Z" },
          recency_boost: false, recency_semantic_weight: 0.1, recency_recency_weight: 0.2, recency_freshness_weight: 0.3,
          recency_novelty_weight: 0.4, recency_half_life_last_access_days: 5, recency_half_life_created_days: 6, server_side_recency: true,
        },
      ],
    ],
  ],
  [(c) => c.getLongTermMemory("m/1"), [["GET", `${MEMORIES}/m%2F1?namespace=home`]]],
  [(c) => c.deleteLongTermMemories(["1", "2"]), [["DELETE", `${MEMORIES}?memory_ids=1&memory_ids=2&namespace=home`]]],
  [(c) => c.deleteLongTermMemories([], { namespace: "n" }), [["DELETE", `${MEMORIES}?namespace=n`]]],
  [
    (c) => c.memoryPrompt({ query: "q", session: { session_id: "s" }, long_term_search: true }),
    [["POST", "/v1/memory/prompt", { query: "q", session: { session_id: "s" }, long_term_search: true }]],
  ],
  [(c) => c.editLongTermMemory("m/1", { text: "x", topics: null }), [["PATCH", `${MEMORIES}/m%2F1`, { text: "x", topics: null }]]],
  [(c) => c.forgetLongTermMemories({ policy: { budget: 1 } }), [["POST", `${MEMORIES}/forget`, { policy: { budget: 1 } }]]],
  [
    (c) =>
      c.forgetLongTermMemories({ policy: {}, namespace: "n", userId: "ada", sessionId: "s", limit: 3, dryRun: false, pinnedIds: ["1"] }),
    [["POST", `${MEMORIES}/forget?namespace=n&user_id=ada&session_id=s&limit=3&dry_run=false`, { policy: {}, pinned_ids: ["1"] }]],
  ],
  [(c) => c.listSummaryViews(), [["GET", "/v1/summary-views"]], [[]]],
  [
    (c) => c.createSummaryView({ source: "long_term", group_by: ["user_id"] }),
    [["POST", "/v1/summary-views", { source: "long_term", group_by: ["user_id"] }]],
  ],
  [(c) => c.getSummaryView("v/1"), [["GET", VIEW]]],
  [(c) => c.deleteSummaryView("v/1"), [["DELETE", VIEW]]],
  [(c) => c.runSummaryViewPartition("v/1", { user_id: "ada" }), [["POST", `${VIEW}/partitions/run`, { group: { user_id: "ada" } }]]],
  [(c) => c.listSummaryViewPartitions("v/1"), [["GET", `${VIEW}/partitions`]], [[]]],
  [
    (c) => c.listSummaryViewPartitions("v/1", { namespace: "n", userId: "ada", sessionId: "s", memoryType: "semantic" }),
    [["GET", `${VIEW}/partitions?namespace=n&user_id=ada&session_id=s&memory_type=semantic`]],
    [[]],
  ],
  [(c) => c.runSummaryView("v/1"), [["POST", `${VIEW}/run`, {}]]],
  [(c) => c.runSummaryView("v/1", { force: true }), [["POST", `${VIEW}/run`, { force: true }]]],
  [(c) => c.getTask("t/1"), [["GET", "/v1/tasks/t%2F1"]]],
  [
    (c) => c.bulkCreateLongTermMemories([[record("1"), record("2")], [record("3")]], { batchSize: 1, delayBetweenBatches: 0, namespace: "n" }),
    ["1", "2", "3"].map((id) => ["POST", `${MEMORIES}/?namespace=n`, { memories: [record(id)] }]),
  ],
  [
    async (c) => assert.equal((await Array.fromAsync(c.searchAllLongTermMemories({ text: "rain", batchSize: 1 }))).length, 1),
    [0, 1].map((offset) => ["POST", `${MEMORIES}/search`, { text: "rain", ...SEARCH, limit: 1, offset }]),
    [{ memories: [record("1")] }, { memories: [] }],
  ],
];

/** Answers 404 with null exactly where the client does. */
const OR_NULL = [(c) => c.getWorkingMemory("s"), (c) => c.getLongTermMemory("m"), (c) => c.getSummaryView("v"), (c) => c.getTask("t")];
const OR_ERROR = [(c) => c.deleteWorkingMemory("s"), (c) => c.editLongTermMemory("m", { text: "x" }), (c) => c.runSummaryView("v")];

/** Calls every method that talks HTTP and compares what would be sent. */
export async function wire({ MemoryAPIClient, MemoryNotFoundError }) {
  const sent = [];
  const answers = [];
  const fetch = async (url, { method, headers, body }) => {
    assert.equal(headers["Content-Type"], JSON_TYPE);
    assert.match(headers["User-Agent"], /^agent-memory-client-js\//);
    const { pathname, search } = new URL(url);
    sent.push([method, pathname + search, ...(body === undefined ? [] : [JSON.parse(body)])]);
    const answer = answers.length ? answers.shift() : {};
    return new Response(JSON.stringify(answer ?? { detail: "none" }), { status: answer === null ? 404 : 200 });
  };
  const client = new MemoryAPIClient({ baseUrl: "http://nowhere.invalid/", fetch, ...DEFAULTS });
  for (const [call, wanted, given = []] of CALLS) {
    sent.length = 0;
    answers.splice(0, answers.length, ...given);
    await call(client);
    assert.deepEqual(sent, wanted, String(call));
  }
  const missing = async (call) => {
    answers.splice(0, answers.length, null);
    return call(client);
  };
  for (const call of OR_NULL) assert.equal(await missing(call), null, String(call));
  for (const call of OR_ERROR) await assert.rejects(missing(call), MemoryNotFoundError, String(call));
}
