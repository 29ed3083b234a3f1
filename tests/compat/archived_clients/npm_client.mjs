// Speaks HTTP as the archived project's npm client (agent-memory-client 0.3.2) does: the same 26 methods, paths, queries, bodies and headers,
// from the description of its requests in the contract. It stands in where that package cannot be had; see test_npm_client.py.

export class MemoryClientError extends Error {}
export class MemoryNotFoundError extends MemoryClientError {}
export class MemoryValidationError extends MemoryClientError {}
export class MemoryServerError extends MemoryClientError {
  constructor(message, statusCode) {
    super(message);
    this.statusCode = statusCode;
  }
}

const SEARCH_FIELDS = {
  sessionId: "session_id",
  namespace: "namespace",
  topics: "topics",
  entities: "entities",
  createdAt: "created_at",
  lastAccessed: "last_accessed",
  userId: "user_id",
  memoryType: "memory_type",
  eventDate: "event_date",
};

export class MemoryAPIClient {
  constructor(config) {
    this.config = { timeout: 30_000, ...config };
  }

  async #send(method, path, { query = {}, body } = {}) {
    const url = new URL(path, this.config.baseUrl);
    for (const [name, value] of Object.entries(query)) {
      for (const item of Array.isArray(value) ? value : [value]) {
        if (item !== undefined) url.searchParams.append(name, String(item));
      }
    }
    const headers = {
      "Content-Type": "application/json",
      "User-Agent": "agent-memory-client-js/0.3.2",
      "X-Client-Version": "0.3.2",
      ...(this.config.apiKey && { "X-API-Key": this.config.apiKey }),
      ...(this.config.bearerToken && { Authorization: `Bearer ${this.config.bearerToken}` }),
    };
    const send = this.config.fetch ?? fetch;
    const signal = AbortSignal.timeout(this.config.timeout);
    const answer = await send(url.toString(), { method, headers, signal, body: body && JSON.stringify(body) });
    if (answer.ok) return answer.json();
    const text = await answer.text();
    let message = text;
    try {
      const problem = JSON.parse(text);
      message = problem.detail ?? problem.message ?? text;
    } catch {
      // not JSON: the text is the message
    }
    throw answer.status === 404 ? new MemoryNotFoundError(message) : new MemoryServerError(message, answer.status);
  }

  async #orNull(call) {
    try {
      return await call;
    } catch (error) {
      if (error instanceof MemoryNotFoundError) return null;
      throw error;
    }
  }

  #space(options) {
    return options.namespace ?? this.config.defaultNamespace;
  }

  #window(options) {
    return {
      model_name: options.modelName ?? this.config.defaultModelName,
      context_window_max: options.contextWindowMax ?? this.config.defaultContextWindowMax,
    };
  }

  healthCheck() {
    return this.#send("GET", "/v1/health");
  }

  listSessions(options = {}) {
    const query = { namespace: this.#space(options), user_id: options.userId, limit: options.limit, offset: options.offset };
    return this.#send("GET", "/v1/working-memory/", { query });
  }

  getWorkingMemory(sessionId, options = {}) {
    const query = { namespace: this.#space(options), user_id: options.userId, ...this.#window(options) };
    return this.#orNull(this.#send("GET", `/v1/working-memory/${encodeURIComponent(sessionId)}`, { query }));
  }

  async getOrCreateWorkingMemory(sessionId, options = {}) {
    const found = await this.getWorkingMemory(sessionId, options);
    if (found) return found;
    const session = {
      session_id: sessionId,
      namespace: this.#space(options),
      user_id: options.userId,
      messages: [],
      memories: [],
      ttl_seconds: options.ttlSeconds,
      long_term_memory_strategy: options.longTermMemoryStrategy,
    };
    return this.putWorkingMemory(sessionId, session, options);
  }

  putWorkingMemory(sessionId, session, options = {}) {
    const body = { session_id: sessionId, ...session, namespace: session.namespace ?? this.#space(options) };
    const query = { ...this.#window(options), background: options.background };
    return this.#send("PUT", `/v1/working-memory/${encodeURIComponent(sessionId)}`, { query, body });
  }

  deleteWorkingMemory(sessionId, options = {}) {
    const query = { namespace: this.#space(options), user_id: options.userId };
    return this.#send("DELETE", `/v1/working-memory/${encodeURIComponent(sessionId)}`, { query });
  }

  createLongTermMemory(memories, options = {}) {
    return this.#send("POST", "/v1/long-term-memory/", { query: { namespace: this.#space(options) }, body: { memories } });
  }

  searchLongTermMemory(options) {
    const body = {
      text: options.text,
      search_mode: options.searchMode ?? "semantic",
      hybrid_alpha: options.hybridAlpha ?? 0.7,
      text_scorer: options.textScorer ?? "BM25STD",
      limit: options.limit,
      offset: options.offset,
      distance_threshold: options.distanceThreshold,
    };
    for (const [option, field] of Object.entries(SEARCH_FIELDS)) {
      if (options[option]) body[field] = options[option];
    }
    for (const [name, value] of Object.entries(options.recency ?? {})) {
      body[["recency_boost", "server_side_recency"].includes(name) ? name : `recency_${name}`] = value;
    }
    return this.#send("POST", "/v1/long-term-memory/search", { body });
  }

  getLongTermMemory(memoryId, options = {}) {
    const query = { namespace: this.#space(options) };
    return this.#orNull(this.#send("GET", `/v1/long-term-memory/${encodeURIComponent(memoryId)}`, { query }));
  }

  deleteLongTermMemories(memoryIds, options = {}) {
    return this.#send("DELETE", "/v1/long-term-memory", { query: { memory_ids: memoryIds, namespace: this.#space(options) } });
  }

  memoryPrompt(request) {
    return this.#send("POST", "/v1/memory/prompt", { body: request });
  }

  editLongTermMemory(memoryId, updates) {
    return this.#send("PATCH", `/v1/long-term-memory/${encodeURIComponent(memoryId)}`, { body: updates });
  }

  forgetLongTermMemories(options) {
    const query = {
      namespace: options.namespace,
      user_id: options.userId,
      session_id: options.sessionId,
      limit: options.limit,
      dry_run: options.dryRun,
    };
    return this.#send("POST", "/v1/long-term-memory/forget", { query, body: { policy: options.policy, pinned_ids: options.pinnedIds } });
  }

  listSummaryViews() {
    return this.#send("GET", "/v1/summary-views");
  }

  createSummaryView(request) {
    return this.#send("POST", "/v1/summary-views", { body: request });
  }

  getSummaryView(viewId) {
    return this.#orNull(this.#send("GET", `/v1/summary-views/${encodeURIComponent(viewId)}`));
  }

  deleteSummaryView(viewId) {
    return this.#send("DELETE", `/v1/summary-views/${encodeURIComponent(viewId)}`);
  }

  runSummaryViewPartition(viewId, group) {
    return this.#send("POST", `/v1/summary-views/${encodeURIComponent(viewId)}/partitions/run`, { body: { group } });
  }

  listSummaryViewPartitions(viewId, options = {}) {
    const query = {
      namespace: options.namespace,
      user_id: options.userId,
      session_id: options.sessionId,
      memory_type: options.memoryType,
    };
    return this.#send("GET", `/v1/summary-views/${encodeURIComponent(viewId)}/partitions`, { query });
  }

  runSummaryView(viewId, options = {}) {
    return this.#send("POST", `/v1/summary-views/${encodeURIComponent(viewId)}/run`, { body: options });
  }

  getTask(taskId) {
    return this.#orNull(this.#send("GET", `/v1/tasks/${encodeURIComponent(taskId)}`));
  }

  close() {}

  validateMemoryRecord(memory) {
    if (!memory.text?.trim()) throw new MemoryValidationError("the text is empty");
    const kinds = ["episodic", "semantic", "message"];
    if (memory.memory_type && !kinds.includes(memory.memory_type)) throw new MemoryValidationError("no such type of memory");
    if (memory.id && !/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i.test(memory.id)) throw new MemoryValidationError("the id is not a ULID");
  }

  validateSearchFilters({ limit = 1, offset = 0, distanceThreshold = 0 }) {
    if (!(limit > 0) || !(offset >= 0) || !(distanceThreshold >= 0)) throw new MemoryValidationError("out of range");
  }

  async bulkCreateLongTermMemories(batches, { batchSize = 50, delayBetweenBatches = 100, namespace } = {}) {
    const answers = [];
    for (const batch of batches) {
      for (let start = 0; start < batch.length; start += batchSize) {
        answers.push(await this.createLongTermMemory(batch.slice(start, start + batchSize), { namespace }));
        await new Promise((resolve) => setTimeout(resolve, delayBetweenBatches));
      }
    }
    return answers;
  }

  async *searchAllLongTermMemories({ batchSize = 50, ...options }) {
    for (let offset = 0, full = true; full; offset += batchSize) {
      const { memories } = await this.searchLongTermMemory({ ...options, limit: batchSize, offset });
      yield* memories;
      full = memories.length === batchSize;
    }
  }
}
