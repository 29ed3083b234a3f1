/** The nouns of the API: each is an attribute of the client, and its calls are one request each. */

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

  /** `values` with the client's namespace where they name none; null stays, and means none. */
  protected within<Values extends object>(values: Values & { namespace?: string | null }): Values {
    const { namespace = this.transport.namespace } = values;
    return namespace === undefined ? values : { ...values, namespace };
  }

  /** A search within `namespace`, or that of the client, where it names none itself. */
  protected filtered(search: SearchRequest, namespace: string | null = this.transport.namespace ?? null): SearchRequest {
    return search.namespace === undefined && namespace !== null ? { ...search, namespace: { eq: namespace } } : search;
  }
}

type SessionPath = "/v1/working-memory/{session_id}";

/** A message as chat APIs have it: the server makes its id and time where it has none, and keeps fields of its own such as `tool_calls`. */
export type MessageInput = Omit<MemoryMessage, "content"> & { role: string; content?: MemoryMessage["content"] };

/** A session's messages and data, or the body that replaces them. */
export type SessionInput = Omit<Body<`PUT ${SessionPath}`>, "messages"> & { messages?: MessageInput[] };

/** A session as it is read: `messages` are always there. */
export type Session = Answer<`GET ${SessionPath}`> & { messages: MemoryMessage[] };

/** Working memory: the messages and data of sessions. */
export class WorkingMemory extends Resource {
  /** The ids of sessions, newest first. */
  list(options: Options<"GET /v1/working-memory/"> = {}) {
    return this.transport.request("GET /v1/working-memory/", {}, this.within(options));
  }

  /** A session. Rejects with MemoryNotFoundError. */
  get(sessionId: string, options: Options<`GET ${SessionPath}`> = {}) {
    return this.transport.request(`GET ${P.session}`, { session_id: sessionId }, this.within(options)) as Promise<Session>;
  }

  /** Replaces a session, or makes it. `user_id` and `namespace` may stand in either argument. */
  put(sessionId: string, session: SessionInput, options: Options<`PUT ${SessionPath}`> = {}) {
    const body = this.within({ ...session, ...owner(options, session) }) as Body<`PUT ${SessionPath}`>;
    const { user_id: _user, namespace: _namespace, ...rest } = options;
    return this.transport.request(`PUT ${P.session}`, { session_id: sessionId }, rest, body) as Promise<Session>;
  }

  /** Adds messages to the end of a session, which is made when it does not exist. They get their ids here, so that a repeat is harmless. */
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

  /** Sets keys of a session's `data`; null removes one. */
  updateData(sessionId: string, data: Record<string, unknown>, options: Options<`PATCH ${SessionPath}/data`> = {}) {
    const body = { data } as Body<`PATCH ${SessionPath}/data`>;
    return this.transport.request(`PATCH ${P.session}/data`, { session_id: sessionId }, this.within(options), body) as Promise<Session>;
  }

  /** Deletes a session, and with `memories` what was remembered of it; one that does not exist is no error. */
  delete(sessionId: string, options: Options<`DELETE ${SessionPath}`> = {}) {
    return this.transport.request(`DELETE ${P.session}`, { session_id: sessionId }, this.within(options));
  }

  /** Lets the server do now what waits on a session: promotion, summary, facts. */
  flush(sessionId: string, options: Options<`POST ${SessionPath}/flush`> = {}) {
    return this.transport.request(`POST ${P.session}/flush`, { session_id: sessionId }, this.within(options));
  }
}

type MemoryPath = "/v1/long-term-memory/{memory_id}";

/** How many ids one request deletes: they stand in its URL. */
const MOST_DELETED = 100;

/** Long-term memory: what is remembered across sessions. */
export class LongTermMemory extends Resource {
  /** Stores memories, which get their ids here unless they have some; one with the id of a stored one replaces it. */
  create(memories: ClientMemoryRecord[], options: Options<"POST /v1/long-term-memory/"> & { deduplicate?: boolean } = {}) {
    const { deduplicate = true, ...rest } = options;
    const records = memories.map((memory) => this.within({ ...memory, id: memory.id ?? newId() })) as MemoryRecord[];
    return this.transport.request("POST /v1/long-term-memory/", {}, rest, { memories: records, deduplicate });
  }

  /** The memories that fit a text and filters, best first: `search({ text: "tea", user_id: { eq: "ada" } })`. */
  search(search: Body<"POST /v1/long-term-memory/search">, options: Options<"POST /v1/long-term-memory/search"> = {}) {
    return this.transport.request("POST /v1/long-term-memory/search", {}, options, this.filtered(search));
  }

  /** A memory. Rejects with MemoryNotFoundError. */
  get(memoryId: string, options: Options<`GET ${MemoryPath}`> = {}) {
    return this.transport.request(`GET ${P.memory}`, { memory_id: memoryId }, options);
  }

  /** Changes the given fields of a memory; null clears one. Rejects with MemoryNotFoundError. */
  edit(memoryId: string, changes: Body<`PATCH ${MemoryPath}`>, options: Options<`PATCH ${MemoryPath}`> = {}) {
    return this.transport.request(`PATCH ${P.memory}`, { memory_id: memoryId }, options, changes);
  }

  /** Deletes memories by their ids, of which at most 100 are sent at once; `status` counts those that existed. */
  async delete(memoryIds: string[], options: Omit<Options<"DELETE /v1/long-term-memory">, "memory_ids"> = {}) {
    let deleted = 0;
    for (let start = 0; start === 0 || start < memoryIds.length; start += MOST_DELETED) {
      const memory_ids = memoryIds.slice(start, start + MOST_DELETED);
      const { status } = await this.transport.request("DELETE /v1/long-term-memory", {}, { ...options, memory_ids });
      deleted += Number(/\d+/.exec(status)?.[0] ?? 0);
    }
    return { status: `ok, deleted ${deleted} memories` };
  }

  /** Forgets by a policy (age, inactivity, budget) within a user, namespace or session; `dry_run` only says what it would. */
  forget(policy: Body<"POST /v1/long-term-memory/forget">, options: Options<"POST /v1/long-term-memory/forget"> = {}) {
    return this.transport.request("POST /v1/long-term-memory/forget", {}, this.within(options), policy);
  }

  /** Forgets what a user asks to be forgotten, by their words or by ids; the receipt's id undoes it. Sent once, also with an `idempotencyKey`. */
  forgetByRequest(request: Body<"POST /v1/memory/forget">, options: Options<"POST /v1/memory/forget"> = {}) {
    return this.transport.request("POST /v1/memory/forget", {}, options, this.within(request));
  }

  /** What `forgetByRequest` took or, after `undoForget`, what came back. */
  getForgotten(receiptId: string, options: Options<"GET /v1/memory/forget/{receipt_id}"> = {}) {
    return this.transport.request("GET /v1/memory/forget/{receipt_id}", { receipt_id: receiptId }, options);
  }

  /** Brings back what `forgetByRequest` took. */
  undoForget(receiptId: string, options: Options<"POST /v1/memory/forget/{receipt_id}/undo"> = {}) {
    return this.transport.request("POST /v1/memory/forget/{receipt_id}/undo", { receipt_id: receiptId }, options);
  }
}

/** Memory prompts: messages ready for a chat model. */
export class Prompts extends Resource {
  /** A session and the memories that fit a query, as messages; `format` says for which API. */
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

/** What is stable and what is current about a user. */
export class Profiles extends Resource {
  /** The profile of `user_id`. */
  get(options: Options<"GET /v1/profile">) {
    return this.transport.request("GET /v1/profile", {}, this.within(options));
  }

  /** Orders that a profile be made anew from the memories. */
  rebuild(options: Options<"POST /v1/profile/rebuild">) {
    return this.transport.request("POST /v1/profile/rebuild", {}, this.within(options));
  }
}

/** What happened when. */
export class Timelines extends Resource {
  /** The events of `user_id` between `from` and `to`. */
  get(options: Options<"GET /v1/timeline">) {
    return this.transport.request("GET /v1/timeline", {}, this.within(options));
  }
}

type BlockPath = "/v1/blocks/{label}";

/** Memory blocks: labeled texts in every prompt of their owner, an agent, a user, a namespace or several of these. */
export class Blocks extends Resource {
  /** The blocks of exactly this owner; with `shown` all that a prompt of these names shows. */
  list(options: Options<"GET /v1/blocks"> = {}) {
    return this.transport.request("GET /v1/blocks", {}, this.within(options));
  }

  /** A block. Rejects with MemoryNotFoundError. */
  get(label: string, options: Options<`GET ${BlockPath}`> = {}) {
    return this.transport.request(`GET ${P.block}`, { label }, this.within(options));
  }

  /** Makes a block, or changes what is given of one. */
  put(label: string, block: Body<`PUT ${BlockPath}`>, options: Options<`PUT ${BlockPath}`> = {}) {
    return this.transport.request(`PUT ${P.block}`, { label }, this.within(options), block);
  }

  /** Edits the text: `append`, `insert`, `replace` or `rethink`. Sent once; takes `ifMatch`, no `idempotencyKey`. */
  edit(label: string, edit: Body<`PATCH ${BlockPath}`>, options: Options<`PATCH ${BlockPath}`> = {}) {
    return this.transport.request(`PATCH ${P.block}`, { label }, this.within(options), edit);
  }

  /** Deletes a block with its history; one that does not exist is no error. */
  delete(label: string, options: Options<`DELETE ${BlockPath}`> = {}) {
    return this.transport.request(`DELETE ${P.block}`, { label }, this.within(options));
  }

  /** The changes of a block, oldest first. */
  history(label: string, options: Options<`GET ${BlockPath}/history`> = {}) {
    return this.transport.request(`GET ${P.block}/history`, { label }, this.within(options));
  }

  /** Undoes the change that made `version`, or the newest. */
  undo(label: string, change: Body<`POST ${BlockPath}/undo`> = {}, options: Options<`POST ${BlockPath}/undo`> = {}) {
    return this.transport.request(`POST ${P.block}/undo`, { label }, this.within(options), change);
  }

  /** Shows a block in the prompts of another owner, too. */
  attach(label: string, to: BlockAttachRequest, options: Options<`POST ${BlockPath}/attach`> = {}) {
    return this.transport.request(`POST ${P.block}/attach`, { label }, this.within(options), to);
  }

  /** Shows a block in the prompts of another owner no longer. */
  detach(label: string, from: BlockAttachRequest, options: Options<`POST ${BlockPath}/detach`> = {}) {
    return this.transport.request(`POST ${P.block}/detach`, { label }, this.within(options), from);
  }
}

type ProcedurePath = "/v1/procedures/{procedure_id}";

/** Procedures: what worked, and when to use it. */
export class Procedures extends Resource {
  /** Stores a procedure. */
  create(procedure: Body<"POST /v1/procedures">, options: Options<"POST /v1/procedures"> = {}) {
    return this.transport.request("POST /v1/procedures", {}, options, this.within(procedure));
  }

  /** The procedures of an owner. */
  list(options: Options<"GET /v1/procedures"> = {}) {
    return this.transport.request("GET /v1/procedures", {}, this.within(options));
  }

  /** The procedures that fit a situation, best first. */
  search(search: Body<"POST /v1/procedures/search">, options: Options<"POST /v1/procedures/search"> = {}) {
    return this.transport.request("POST /v1/procedures/search", {}, options, this.within(search));
  }

  /** A procedure. Rejects with MemoryNotFoundError. */
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

  /** Says whether a procedure helped. */
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

  /** A value, or undefined when it is not there. */
  async get(path: string[], key: string, options: Owned<"GET /v1/items"> = {}): Promise<Answer<"GET /v1/items"> | undefined> {
    try {
      return await this.transport.request("GET /v1/items", {}, this.within({ ...options, path, key }));
    } catch (error) {
      if (error instanceof MemoryNotFoundError) return undefined;
      throw error;
    }
  }

  /** Deletes a value; one that is not there is no error. */
  delete(path: string[], key: string, options: Owned<"DELETE /v1/items"> = {}) {
    return this.transport.request("DELETE /v1/items", {}, this.within({ ...options, path, key }));
  }

  /** The items under a path: those that fit a query best first, or by path and key without one. */
  search(search: Body<"POST /v1/items/search">, options: Options<"POST /v1/items/search"> = {}) {
    return this.transport.request("POST /v1/items/search", {}, this.within(options), search);
  }

  /** The namespace paths that hold items, sorted. */
  listNamespaces(filter: Body<"POST /v1/items/namespaces"> = {}, options: Options<"POST /v1/items/namespaces"> = {}) {
    return this.transport.request("POST /v1/items/namespaces", {}, this.within(options), filter);
  }
}

type FilePath = "/v1/files/{file_id}";

/** Files: documents whose text becomes passages that searches and prompts find. */
export class Files extends Resource {
  /** Uploads a file, which a worker then reads. Other bytes under the same name replace it; the same bytes change nothing. */
  upload(name: string, data: string | Uint8Array<ArrayBuffer> | Blob, options: Omit<Options<"POST /v1/files">, "name"> = {}) {
    return this.transport.request("POST /v1/files", {}, this.within({ ...options, name }), data as Body<"POST /v1/files">);
  }

  /** A user's files, newest first. */
  list(options: Options<"GET /v1/files"> = {}) {
    return this.transport.request("GET /v1/files", {}, this.within(options));
  }

  /** A file: its state, its counts, and why the server could not read it. Rejects with MemoryNotFoundError. */
  get(fileId: string, options: Options<`GET ${FilePath}`> = {}) {
    return this.transport.request("GET /v1/files/{file_id}", { file_id: fileId }, this.within(options));
  }

  /** Deletes a file, its passages, and the facts that came only from it. */
  delete(fileId: string, options: Options<`DELETE ${FilePath}`> = {}) {
    return this.transport.request("DELETE /v1/files/{file_id}", { file_id: fileId }, this.within(options));
  }
}

/** The options of an item's call without what says which item. */
type Owned<Name extends keyof Operations> = Omit<Options<Name>, "path" | "key">;

/** Paths that several calls share. */
const P = {
  session: "/v1/working-memory/{session_id}",
  memory: "/v1/long-term-memory/{memory_id}",
  block: "/v1/blocks/{label}",
  procedure: "/v1/procedures/{procedure_id}",
} as const;

/** The user and namespace that either says; options come first. */
function owner(
  options: { user_id?: string | null; namespace?: string | null },
  session: { user_id?: string | null; namespace?: string | null },
) {
  return { user_id: options.user_id ?? session.user_id, namespace: options.namespace ?? session.namespace };
}
