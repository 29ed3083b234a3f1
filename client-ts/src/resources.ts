/** The resources of the API. Each is an attribute of the client, and most calls send one request. */

import { MemoryNotFoundError } from "./errors.ts";
import { newId } from "./transport.ts";
import type { Answer, Body, Options, Transport } from "./transport.ts";
import type {
  AppendMessagesRequest,
  BlockAttachRequest,
  ClientMemoryRecord,
  MemoryMessage,
  MemoryRecord,
  Operations,
  SearchRequest,
} from "./types.ts";

class Resource {
  protected readonly transport: Transport;

  constructor(transport: Transport) {
    this.transport = transport;
  }

  /** Adds the client's namespace to `values` without one. Null stays, and means no namespace. */
  protected within<Values extends object>(values: Values & { namespace?: string | null }): Values {
    const { namespace = this.transport.namespace } = values;
    return namespace === undefined ? values : { ...values, namespace };
  }

  /** Adds `namespace`, or the client's namespace, to a search without one. */
  protected filtered(search: SearchRequest, namespace: string | null = this.transport.namespace ?? null): SearchRequest {
    return search.namespace === undefined && namespace !== null ? { ...search, namespace: { eq: namespace } } : search;
  }
}

type SessionPath = "/v1/working-memory/{session_id}";

/** A message in the form of chat APIs. The server adds a missing id and time, and stores other fields such as `tool_calls`. */
export type MessageInput = Omit<MemoryMessage, "content"> & { role: string; content?: MemoryMessage["content"] };

/** The messages and data that replace a session. */
export type SessionInput = Omit<Body<`PUT ${SessionPath}`>, "messages"> & { messages?: MessageInput[] };

/** A stored session. It always has `messages`. */
export type Session = Answer<`GET ${SessionPath}`> & { messages: MemoryMessage[] };

/** Working memory: the messages and data of sessions. */
export class WorkingMemory extends Resource {
  /** Lists the ids of sessions, newest first. */
  list(options: Options<"GET /v1/working-memory/"> = {}) {
    return this.transport.request("GET /v1/working-memory/", {}, this.within(options));
  }

  /** Returns a session. Rejects with MemoryNotFoundError. */
  get(sessionId: string, options: Options<`GET ${SessionPath}`> = {}) {
    return this.transport.request(`GET ${P.session}`, { session_id: sessionId }, this.within(options)) as Promise<Session>;
  }

  /** Creates or replaces a session. Pass `user_id` and `namespace` in either argument. */
  put(sessionId: string, session: SessionInput, options: Options<`PUT ${SessionPath}`> = {}) {
    const body = this.within({ ...session, ...owner(options, session) }) as Body<`PUT ${SessionPath}`>;
    const { user_id: _user, namespace: _namespace, ...rest } = options;
    return this.transport.request(`PUT ${P.session}`, { session_id: sessionId }, rest, body) as Promise<Session>;
  }

  /** Appends messages to a session, and creates it if it does not exist. The client adds missing ids, so that a retry stores nothing twice. */
  append(
    sessionId: string,
    messages: MessageInput[],
    options: Options<`POST ${SessionPath}/messages`> & Omit<AppendMessagesRequest, "messages"> = {},
  ) {
    const { namespace, user_id, agent_id, model_name, context_window_max, ...rest } = options;
    const named = messages.map((message) => ({ ...message, id: message.id ?? newId() })) as MemoryMessage[];
    const body = this.within({ messages: named, namespace, user_id, agent_id, model_name, context_window_max });
    return this.transport.request(`POST ${P.session}/messages`, { session_id: sessionId }, rest, body);
  }

  /** Sets keys of a session's `data`. Null removes a key. */
  updateData(sessionId: string, data: Record<string, unknown>, options: Options<`PATCH ${SessionPath}/data`> = {}) {
    const body = { data } as Body<`PATCH ${SessionPath}/data`>;
    return this.transport.request(`PATCH ${P.session}/data`, { session_id: sessionId }, this.within(options), body) as Promise<Session>;
  }

  /** Deletes a session, and with `memories` also its memories. A missing session is no error. */
  delete(sessionId: string, options: Options<`DELETE ${SessionPath}`> = {}) {
    return this.transport.request(`DELETE ${P.session}`, { session_id: sessionId }, this.within(options));
  }

  /** Starts the waiting work of a session now: promotion, summary, facts. */
  flush(sessionId: string, options: Options<`POST ${SessionPath}/flush`> = {}) {
    return this.transport.request(`POST ${P.session}/flush`, { session_id: sessionId }, this.within(options));
  }
}

type MemoryPath = "/v1/long-term-memory/{memory_id}";

/** The maximum number of ids in a delete request, whose URL contains them. */
const MOST_DELETED = 100;

/** Long-term memory: memories across sessions. */
export class LongTermMemory extends Resource {
  /** Stores memories. The client adds missing ids. A memory with the id of a stored memory replaces it. */
  create(memories: ClientMemoryRecord[], options: Options<"POST /v1/long-term-memory/"> & { deduplicate?: boolean } = {}) {
    const { deduplicate = true, ...rest } = options;
    const records = memories.map((memory) => this.within({ ...memory, id: memory.id ?? newId() })) as MemoryRecord[];
    return this.transport.request("POST /v1/long-term-memory/", {}, rest, { memories: records, deduplicate });
  }

  /** Returns the memories that match a text and filters, best first: `search({ text: "tea", user_id: { eq: "ada" } })`. */
  search(search: Body<"POST /v1/long-term-memory/search">, options: Options<"POST /v1/long-term-memory/search"> = {}) {
    return this.transport.request("POST /v1/long-term-memory/search", {}, options, this.filtered(search));
  }

  /** Returns a memory. Rejects with MemoryNotFoundError. */
  get(memoryId: string, options: Options<`GET ${MemoryPath}`> = {}) {
    return this.transport.request(`GET ${P.memory}`, { memory_id: memoryId }, options);
  }

  /** Changes the given fields of a memory. Null clears a field. Rejects with MemoryNotFoundError. */
  edit(memoryId: string, changes: Body<`PATCH ${MemoryPath}`>, options: Options<`PATCH ${MemoryPath}`> = {}) {
    return this.transport.request(`PATCH ${P.memory}`, { memory_id: memoryId }, options, changes);
  }

  /** Deletes memories by their ids, in requests of at most 100 ids. `status` counts the deleted memories. */
  async delete(memoryIds: string[], options: Omit<Options<"DELETE /v1/long-term-memory">, "memory_ids"> = {}) {
    let deleted = 0;
    for (let start = 0; start === 0 || start < memoryIds.length; start += MOST_DELETED) {
      const memory_ids = memoryIds.slice(start, start + MOST_DELETED);
      const { status } = await this.transport.request("DELETE /v1/long-term-memory", {}, { ...options, memory_ids });
      deleted += Number(/\d+/.exec(status)?.[0] ?? 0);
    }
    return { status: `ok, deleted ${deleted} memories` };
  }

  /** Deletes memories of a user, namespace or session by a policy (age, inactivity, budget). `dry_run` only lists them. */
  forget(policy: Body<"POST /v1/long-term-memory/forget">, options: Options<"POST /v1/long-term-memory/forget"> = {}) {
    return this.transport.request("POST /v1/long-term-memory/forget", {}, this.within(options), policy);
  }

  /** Deletes the memories that a user asks to forget, by the user's words or by ids. Undo it with the receipt's id. Retried only if it did not reach the server. */
  forgetByRequest(request: Body<"POST /v1/memory/forget">, options: Options<"POST /v1/memory/forget"> = {}) {
    return this.transport.request("POST /v1/memory/forget", {}, options, this.within(request));
  }

  /** Returns what `forgetByRequest` deleted, or what `undoForget` restored. */
  getForgotten(receiptId: string, options: Options<"GET /v1/memory/forget/{receipt_id}"> = {}) {
    return this.transport.request("GET /v1/memory/forget/{receipt_id}", { receipt_id: receiptId }, options);
  }

  /** Restores what `forgetByRequest` deleted. */
  undoForget(receiptId: string, options: Options<"POST /v1/memory/forget/{receipt_id}/undo"> = {}) {
    return this.transport.request("POST /v1/memory/forget/{receipt_id}/undo", { receipt_id: receiptId }, options);
  }
}

/** Memory prompts: messages ready for a chat model. */
export class Prompts extends Resource {
  /** Returns a session and the memories that match a query as messages, for the API named by `format`. */
  render(request: Body<"POST /v1/memory/prompt">, options: Options<"POST /v1/memory/prompt"> = {}) {
    const { session, long_term_search: search } = request;
    const namespace = request.namespace === undefined ? session?.namespace : request.namespace;
    const body = {
      ...request,
      session: session ? this.within(session) : session,
      long_term_search: typeof search === "object" && search !== null ? this.filtered(search, namespace) : search,
    };
    return this.transport.request("POST /v1/memory/prompt", {}, options, this.within(body));
  }
}

/** Profiles: stable and current facts about a user. */
export class Profiles extends Resource {
  /** Returns the profile of `user_id`. */
  get(options: Options<"GET /v1/profile">) {
    return this.transport.request("GET /v1/profile", {}, this.within(options));
  }

  /** Starts to rebuild a profile from the memories. */
  rebuild(options: Options<"POST /v1/profile/rebuild">) {
    return this.transport.request("POST /v1/profile/rebuild", {}, this.within(options));
  }
}

/** Timelines: events by time. */
export class Timelines extends Resource {
  /** Returns the events of `user_id` between `from` and `to`. */
  get(options: Options<"GET /v1/timeline">) {
    return this.transport.request("GET /v1/timeline", {}, this.within(options));
  }
}

type BlockPath = "/v1/blocks/{label}";

/** Memory blocks: labeled texts in every prompt of their owner. An owner is an agent, user or namespace, or a combination. */
export class Blocks extends Resource {
  /** Lists the blocks of exactly this owner, or with `shown` all blocks that a prompt for these ids shows. */
  list(options: Options<"GET /v1/blocks"> = {}) {
    return this.transport.request("GET /v1/blocks", {}, this.within(options));
  }

  /** Returns a block. Rejects with MemoryNotFoundError. */
  get(label: string, options: Options<`GET ${BlockPath}`> = {}) {
    return this.transport.request(`GET ${P.block}`, { label }, this.within(options));
  }

  /** Creates a block, or changes the given fields. */
  put(label: string, block: Body<`PUT ${BlockPath}`>, options: Options<`PUT ${BlockPath}`> = {}) {
    return this.transport.request(`PUT ${P.block}`, { label }, this.within(options), block);
  }

  /** Edits the text: `append`, `insert`, `replace` or `rethink`. Retried only if it did not reach the server. Use `ifMatch`, not `idempotencyKey`. */
  edit(label: string, edit: Body<`PATCH ${BlockPath}`>, options: Options<`PATCH ${BlockPath}`> = {}) {
    return this.transport.request(`PATCH ${P.block}`, { label }, this.within(options), edit);
  }

  /** Deletes a block with its history. A missing block is no error. */
  delete(label: string, options: Options<`DELETE ${BlockPath}`> = {}) {
    return this.transport.request(`DELETE ${P.block}`, { label }, this.within(options));
  }

  /** Returns the changes of a block, oldest first. */
  history(label: string, options: Options<`GET ${BlockPath}/history`> = {}) {
    return this.transport.request(`GET ${P.block}/history`, { label }, this.within(options));
  }

  /** Undoes the change that created `version`, or the newest change. */
  undo(label: string, change: Body<`POST ${BlockPath}/undo`> = {}, options: Options<`POST ${BlockPath}/undo`> = {}) {
    return this.transport.request(`POST ${P.block}/undo`, { label }, this.within(options), change);
  }

  /** Also shows a block in the prompts of another owner. */
  attach(label: string, to: BlockAttachRequest, options: Options<`POST ${BlockPath}/attach`> = {}) {
    return this.transport.request(`POST ${P.block}/attach`, { label }, this.within(options), to);
  }

  /** Stops showing a block in the prompts of another owner. */
  detach(label: string, from: BlockAttachRequest, options: Options<`POST ${BlockPath}/detach`> = {}) {
    return this.transport.request(`POST ${P.block}/detach`, { label }, this.within(options), from);
  }
}

type ProcedurePath = "/v1/procedures/{procedure_id}";

/** Procedures: steps that worked, and when to use them. */
export class Procedures extends Resource {
  /** Stores a procedure. */
  create(procedure: Body<"POST /v1/procedures">, options: Options<"POST /v1/procedures"> = {}) {
    return this.transport.request("POST /v1/procedures", {}, options, this.within(procedure));
  }

  /** Lists the procedures of an owner. */
  list(options: Options<"GET /v1/procedures"> = {}) {
    return this.transport.request("GET /v1/procedures", {}, this.within(options));
  }

  /** Returns the procedures that match a situation, best first. */
  search(search: Body<"POST /v1/procedures/search">, options: Options<"POST /v1/procedures/search"> = {}) {
    return this.transport.request("POST /v1/procedures/search", {}, options, this.within(search));
  }

  /** Returns a procedure. Rejects with MemoryNotFoundError. */
  get(procedureId: string, options: Options<`GET ${ProcedurePath}`> = {}) {
    return this.transport.request(`GET ${P.procedure}`, { procedure_id: procedureId }, options);
  }

  /** Changes a procedure. */
  update(procedureId: string, changes: Body<`PATCH ${ProcedurePath}`>, options: Options<`PATCH ${ProcedurePath}`> = {}) {
    return this.transport.request(`PATCH ${P.procedure}`, { procedure_id: procedureId }, options, changes);
  }

  /** Deletes a procedure. */
  delete(procedureId: string, options: Options<`DELETE ${ProcedurePath}`> = {}) {
    return this.transport.request(`DELETE ${P.procedure}`, { procedure_id: procedureId }, options);
  }

  /** Reports whether a procedure helped. */
  giveFeedback(
    procedureId: string,
    feedback: Body<`POST ${ProcedurePath}/feedback`>,
    options: Options<`POST ${ProcedurePath}/feedback`> = {},
  ) {
    return this.transport.request(`POST ${P.procedure}/feedback`, { procedure_id: procedureId }, options, feedback);
  }
}

/** JSON values by namespace path and key. */
export class Items extends Resource {
  /** Stores a value: `put({ path: ["settings"], key: "theme", value: { dark: true } }, { user_id: "ada" })`. */
  put(item: Body<"PUT /v1/items">, options: Options<"PUT /v1/items"> = {}) {
    return this.transport.request("PUT /v1/items", {}, this.within(options), item);
  }

  /** Returns a value, or undefined if it does not exist. */
  async get(path: string[], key: string, options: Owned<"GET /v1/items"> = {}): Promise<Answer<"GET /v1/items"> | undefined> {
    try {
      return await this.transport.request("GET /v1/items", {}, this.within({ ...options, path, key }));
    } catch (error) {
      if (error instanceof MemoryNotFoundError) return undefined;
      throw error;
    }
  }

  /** Deletes a value. A missing value is no error. */
  delete(path: string[], key: string, options: Owned<"DELETE /v1/items"> = {}) {
    return this.transport.request("DELETE /v1/items", {}, this.within({ ...options, path, key }));
  }

  /** Returns the items under a path: matches of a query, best first, or all items by path and key without a query. */
  search(search: Body<"POST /v1/items/search">, options: Options<"POST /v1/items/search"> = {}) {
    return this.transport.request("POST /v1/items/search", {}, this.within(options), search);
  }

  /** Lists the namespace paths that contain items, sorted. */
  listNamespaces(filter: Body<"POST /v1/items/namespaces"> = {}, options: Options<"POST /v1/items/namespaces"> = {}) {
    return this.transport.request("POST /v1/items/namespaces", {}, this.within(options), filter);
  }
}

type FilePath = "/v1/files/{file_id}";

/** Files: documents whose passages searches and prompts find. */
export class Files extends Resource {
  /** Uploads a file, which a worker then reads. Other content under the same name replaces the file. The same content changes nothing. */
  upload(name: string, data: string | Uint8Array<ArrayBuffer> | Blob, options: Omit<Options<"POST /v1/files">, "name"> = {}) {
    return this.transport.request("POST /v1/files", {}, this.within({ ...options, name }), data as Body<"POST /v1/files">);
  }

  /** Lists a user's files, newest first. */
  list(options: Options<"GET /v1/files"> = {}) {
    return this.transport.request("GET /v1/files", {}, this.within(options));
  }

  /** Returns a file: its state, its counts, and why the server could not read it. Rejects with MemoryNotFoundError. */
  get(fileId: string, options: Options<`GET ${FilePath}`> = {}) {
    return this.transport.request("GET /v1/files/{file_id}", { file_id: fileId }, this.within(options));
  }

  /** Deletes a file, its passages, and the facts that came only from it. */
  delete(fileId: string, options: Options<`DELETE ${FilePath}`> = {}) {
    return this.transport.request("DELETE /v1/files/{file_id}", { file_id: fileId }, this.within(options));
  }
}

/** The options of an item's call, without the fields that identify the item. */
type Owned<Name extends keyof Operations> = Omit<Options<Name>, "path" | "key">;

/** Paths that several calls use. */
const P = {
  session: "/v1/working-memory/{session_id}",
  memory: "/v1/long-term-memory/{memory_id}",
  block: "/v1/blocks/{label}",
  procedure: "/v1/procedures/{procedure_id}",
} as const;

/** Returns the user and namespace from either argument. The options take precedence. */
function owner(
  options: { user_id?: string | null; namespace?: string | null },
  session: { user_id?: string | null; namespace?: string | null },
) {
  return { user_id: options.user_id ?? session.user_id, namespace: options.namespace ?? session.namespace };
}
