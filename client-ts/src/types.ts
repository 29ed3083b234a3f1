// Made by client-ts/scripts/make_types.py of the server's OpenAPI document. Do not edit.

/** The request was carried out; `status` begins with "ok". */
export interface AckResponse {
  /** `ok`, possibly with what was done (`ok, deleted 2 memories`), or `pending` when the work goes on in the background. */
  status: string;
  /** What was done otherwise than asked, in words; null or left out when nothing was. */
  notices?: string[] | null;
}

/** The audience and importance of a block. */
export interface Annotations {
  /** For whom it is meant, the `user` or the `assistant`; for both when null. */
  audience?: ("user" | "assistant")[] | null;
  /** How important it is, from 0 (optional) to 1 (required). */
  priority?: number | null;
  [name: string]: unknown;
}

/** How an answer came about. */
export interface AnswerExplanation {
  /** How it was searched: `semantic`, `keyword` (also when there was no vector in time) or `hybrid`; null for a listing. */
  mode?: string | null;
  /** What was compared by meaning. */
  query?: string | null;
  /** Words of the text that most memories share, which were not compared. */
  left_out?: string[];
  /** The begin of the time that the text names, included; null when it names none. */
  time_start?: string | null;
  /** The end of that time, not included. */
  time_end?: string | null;
  /** How many memories were near enough to be ranked. */
  ranked?: number;
  /** How many were looked at and were too far. */
  below_threshold?: number;
  /** Memories that were ranked and left out for another reason than the limit. */
  cut?: Cut[];
  /** In a prompt, how many tokens memories may take. */
  memory_tokens?: number | null;
  /** In a prompt, how many of the session's messages did not fit. */
  messages_left_out?: number | null;
}

/**
 * Messages to append to a session. Known messages (id, role and content) are skipped, so a repeat is harmless.
 *
 * A known id with other words is another message, which gets a new id (see `notices`).
 */
export interface AppendMessagesRequest {
  /** The messages to add, oldest first; at most 1,000. */
  messages: MemoryMessage[];
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** The agent that talks in the session; one that it has stays when not given. */
  agent_id?: string | null;
  /** The model whose context window decides when old messages are summarized; any name. */
  model_name?: string | null;
  /** That window in tokens; beats `model_name`. */
  context_window_max?: number | null;
}

/** The session after an append, without its messages. */
export interface AppendMessagesResponse {
  /** The session's id. */
  session_id: string;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** How many messages are new; those that the session had already do not count. */
  appended: number;
  /** How many messages the session holds now. */
  total_messages: number;
  /** How many tokens these messages have. */
  tokens: number;
  /** The session's version, for `If-Match`. */
  version: number;
  /** How much of the context window its messages fill, from 0 to 100; null unless a model or a window was named. */
  context_percentage_total_used?: number | null;
  /** How near it is to being summarized, from 0 to 100; null unless a model or a window was named. */
  context_percentage_until_summarization?: number | null;
  /**
   * How far all messages of the request had come when `wait` ended: `stored` in the session, `promoted` to long-term memory, or
   * `searchable` by meaning; null without `wait`.
   */
  reached?: "stored" | "promoted" | "searchable" | null;
  /** What was done otherwise than asked, in words; null or left out when nothing was. */
  notices?: string[] | null;
}

/** Sound, in base64. */
export interface AudioContent {
  /** Which kind of content this is. */
  type: "audio";
  /** The sound in base64. */
  data: string;
  /** The sound's media type, such as `audio/wav`. */
  mimeType: string;
  /** For whom it is meant, and how important it is. */
  annotations?: Annotations | null;
  /** Data of the protocol's own; this server sends none. */
  _meta?: { [name: string]: unknown } | null;
  [name: string]: unknown;
}

/** A resource's bytes, in base64. */
export interface BlobResourceContents {
  /** Where it can be read. */
  uri: string;
  /** Its media type, if known. */
  mimeType?: string | null;
  /** Data of the protocol's own; this server sends none. */
  _meta?: { [name: string]: unknown } | null;
  /** The resource's bytes in base64. */
  blob: string;
  [name: string]: unknown;
}

/** A memory block as it is stored. */
export interface Block {
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** The agent whose it is; null for every agent's. */
  agent_id?: string | null;
  /** What it is called, such as `human` or `persona`. */
  label: string;
  /** Its text. */
  value: string;
  /** What it is for: the agent reads it in each prompt. */
  description?: string;
  /** How many characters the text may have. */
  limit?: number;
  /** How many tokens the text may take; null for any number. */
  limit_tokens?: number | null;
  /** Whether edits are refused; only a PUT changes it then. */
  read_only?: boolean;
  /** How many characters the text has. */
  chars: number;
  /** How many tokens the text takes. */
  tokens: number;
  /** Counts its changes from 1; the ETag of the answer, for `If-Match`. */
  version: number;
  /** When it was made. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
  /** Whose prompts show it beside its owner's: the first ten of them. */
  attached_to?: BlockOwner[];
  /** How many owners' prompts show it beside its owner's. */
  attached_count?: number;
}

/** Whose prompts are to show a block, too: exactly the names that are given, at least one. */
export interface BlockAttachRequest {
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** The agent whose it is; null for every agent's. */
  agent_id?: string | null;
}

/** A change of a block: in the text before it, at `position`, `removed` was replaced by `inserted`. */
export interface BlockChange {
  /** The version of the block that the change made. */
  version: number;
  /** What was done: `put`, `append`, `replace`, `insert`, `rethink` or `undo`. */
  operation: string;
  /** Before which character of the former text the change stands, counted from 0. */
  position: number;
  /** The text that went. */
  removed: string;
  /** The text that came in its place. */
  inserted: string;
  /** What changed beside the text, each as [before, after]; left out when nothing did. */
  settings?: { [name: string]: string | number | boolean | unknown[] | { [name: string]: unknown } | null } | null;
  /** The version whose change it undoes; left out for other changes. */
  undoes?: number | null;
  /** When it was done. */
  at: string;
  /** Whose credentials did it; empty where none are asked for. */
  actor?: string;
  /** What was done, in words. */
  said: string;
}

/** A block after a change, and what was done. */
export interface BlockEdit {
  /** The block as it is now. */
  block: Block;
  /** What was done; null when the block was like this already. */
  change?: BlockChange | null;
}

/** The changes of a block, oldest first: applied to `base` one after the other, they make its text. */
export interface BlockHistoryResponse {
  /** The block's label. */
  label: string;
  /** The text before the first of these changes: empty, unless the oldest changes are no longer kept. */
  base: string;
  /** The changes that are kept, at most 500. */
  changes: BlockChange[];
}

/** Blocks by label. */
export interface BlockListResponse {
  /** The blocks, in the order of their labels. */
  blocks: Block[];
}

/** Whose a block is: exactly the names that are given. */
export interface BlockOwner {
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** The agent whose it is; null for every agent's. */
  agent_id?: string | null;
}

/** What a prompt says of memory beside the blocks. */
export interface BlocksInPrompt {
  /** Whether it says when a block was last edited, and how many memories and messages can be searched beside the blocks. */
  counts?: boolean;
}

/** A recorded change of memories. */
export interface Change {
  /** The change's id: it is undone, approved or rejected by it. */
  id: string;
  /** What was done: an update, a supersession by a newer fact, a merge of repeats, a forgetting, or the undoing of one of these. */
  kind: ChangeKindEnum;
  /** Whether it counts (`applied`), was taken back (`undone`), waits for approval (`proposed`), or was turned down (`rejected`). */
  state: ChangeStateEnum;
  /** The run that it belongs to; the changes of one run can be undone together by this id. */
  batch_id: string;
  /** When the change was made or proposed. */
  at: string;
  /** What made it, such as `client`, `extraction`, `compaction`, `forgetting`, `import` or `undo`. */
  actor: string;
  /** Why it was made, in words. */
  reason?: string | null;
  /** The extraction strategy that made it; null when no extraction did. */
  strategy?: string | null;
  /** The language model that decided it; null when none did. */
  model?: string | null;
  /** The version of the server's prompt that the model was asked with; null without a model. */
  prompt_version?: string | null;
  /** The memories that it changed. */
  memories: ChangedMemory[];
  /** Of a forgetting that was just approved: the receipt, by which `undo_forget_memory` brings it back. */
  receipt_id?: string | null;
  /** Until when that is possible; null when it is not. */
  undo_until?: string | null;
}

/** What was done to memories. */
export type ChangeKindEnum = "update" | "supersede" | "merge" | "forget" | "undo";

/** A page of changes, the newest first. */
export interface ChangeListResponse {
  /** This page's changes. */
  changes: Change[];
  /** How many there are on all pages. */
  total: number;
  /** The `offset` of the next page; null on the last one. */
  next_offset?: number | null;
}

/** State of a change: applied or undone, or a proposal that waits or was rejected. */
export type ChangeStateEnum = "applied" | "undone" | "proposed" | "rejected";

/** A memory before and after a change. */
export interface ChangedMemory {
  /** The memory's id. */
  memory_id: string;
  /** The memory as it was before the change; null when it did not exist. */
  before?: MemoryRecord | null;
  /** The memory as the change left it; null when the change took it away, or is only proposed to. */
  after?: MemoryRecord | null;
  /** The fields that differ, each with its value before and after: `{"text": ["old", "new"]}`. */
  diff: { [name: string]: unknown[] };
}

/** A message of an answer to a request with a `format`; with the fields that it was sent with (`tool_calls`, …). */
export interface ChatMessage {
  /** Who speaks, as the API names it. */
  role: string;
  /** What is said. */
  content: string;
  [name: string]: unknown;
}

/** A memory whose id may be left out: a ULID is made for it. */
export interface ClientMemoryRecord {
  /** The memory's id, at most 512 bytes; one is made when it is left out. */
  id?: string;
  /** What is remembered, in words that can be understood alone; at most 64 KiB. */
  text: string;
  /** The session that it comes from; null when it comes from none. */
  session_id?: string | null;
  /** The user whose memory it is; null when it is nobody's in particular. */
  user_id?: string | null;
  /** The namespace that it is kept in, such as a project's or an application's name; null when it is in none. */
  namespace?: string | null;
  /** When a search or a read last gave it out. */
  last_accessed?: string;
  /** When it was made, now when not given. */
  created_at?: string;
  /** When it was last changed. */
  updated_at?: string;
  /** Whether it is spared when memories are forgotten, and never merged with others. */
  pinned?: boolean;
  /** How often searches and reads gave it out. */
  access_count?: number;
  /** What it is about, in a few words; at most 64, without commas. */
  topics?: string[] | null;
  /** The persons, places and things that it names; at most 64, without commas. */
  entities?: string[] | null;
  /** A SHA-256 of text, scope and type, which the server computes. */
  memory_hash?: string | null;
  /** `t` when nothing more is to be extracted from it, `f` when facts may still be. */
  discrete_memory_extracted?: "t" | "f";
  /** A fact (`semantic`), an event (`episodic`), a message word for word (`message`), or a way of doing something (`procedural`). */
  memory_type?: MemoryTypeEnum;
  /** When it was stored as a long-term memory; in a session's `memories`, null until then. */
  persisted_at?: string | null;
  /** The ids of the messages that it was made of. */
  extracted_from?: string[] | null;
  /** When what it tells happened; null when that is no one time. */
  event_date?: string | null;
  /** The strategy that made it; `message` for a message word for word. */
  extraction_strategy?: string;
  /** The options of that strategy. */
  extraction_strategy_config?: { [name: string]: unknown };
  /** Any JSON object of the caller's own; its first 64 keys can be searched by. */
  metadata?: { [name: string]: string | number | boolean | unknown[] | { [name: string]: unknown } | null };
  /** The agent that it belongs to; agents do not replace each other's facts. */
  agent_id?: string | null;
  /**
   * What the fact is about, such as `home_city`: of one slot of a user, namespace and agent one fact is current, and a new one ends
   * it.
   */
  slot?: string | null;
  /** The category of the extraction rules that it was put in. */
  category?: string | null;
  /** Since when it is true; since it was made when not given. */
  valid_from?: string | null;
  /** Until when it is true; it is not found afterwards unless history is asked for. Left out while it is true. */
  valid_to?: string | null;
  /** From when on nobody is shown it any more. */
  expires_at?: string | null;
  /** When the server began to know this version; the server writes it. */
  recorded_at?: string | null;
  /** When the server knew better; the server writes it, and leaves it out for what is current. */
  retired_at?: string | null;
  /** The ids of the memories that it took the place of; the server writes it. */
  supersedes?: string[] | null;
  /** The id of the memory that took its place; the server writes it. */
  superseded_by?: string | null;
  /** What it rests on: messages, or a program's own statement. */
  evidence?: Evidence[] | null;
  /** Where it comes from: said by the `user`, the `assistant` or a `tool`, or stated by a program (`client`), imported or inferred. */
  source_class?: "user" | "assistant" | "tool" | "import" | "inference" | "client" | null;
  /** How far its source goes, from 0 to 1: 1 for a user's or a program's own words, 0.3 for what a tool fetched. */
  trust?: number | null;
  /** Why it waits for a review and is neither found nor shown to a model; left out when it does not. */
  quarantine?: string | null;
  /** A digest of the text that an administrator approved in quarantine; the server writes it. */
  approved?: string | null;
  /** How sure the language model was of it, from 0 to 1. */
  confidence?: number | null;
  /** The language model that extracted it. */
  model?: string | null;
  /** The version of the server's prompt that it was extracted with. */
  prompt_version?: string | null;
}

/** What must hold: every field that is given, all of `and`, one of `or`, and not `not`. At most 8 levels and 64 conditions. */
export interface Condition {
  /** All of these conditions must hold. */
  and?: Condition[] | null;
  /** At least one of these conditions must hold. */
  or?: Condition[] | null;
  /** This condition must not hold. */
  not?: Condition | null;
  /** Filters by session. */
  session_id?: SessionId | null;
  /** Filters by user. `exists: false` asks for what has no user. */
  user_id?: UserId | null;
  /** Filters by namespace. */
  namespace?: Namespace | null;
  /** Filters by topics. */
  topics?: Topics | null;
  /** Filters by entities. */
  entities?: Entities | null;
  /** Filters by the kind of memory. */
  memory_type?: MemoryType | null;
  /** Filters by the strategy that made the memories. */
  extraction_strategy?: ExtractionStrategy | null;
  /** Filters by when a memory was made. */
  created_at?: CreatedAt | null;
  /** Filters by when a memory was last read. */
  last_accessed?: LastAccessed | null;
  /** Filters by when the thing that a memory tells happened. */
  event_date?: EventDate | null;
  /** The agent that it belongs to. */
  agent_id?: TagFilter | null;
  /** What the fact is about, such as `home_city`. */
  slot?: TagFilter | null;
  /** The category of the extraction rules that it was put in. */
  category?: TagFilter | null;
  /** Where it comes from: `user`, `assistant`, `tool`, `import`, `inference` or `client`. */
  source_class?: TagFilter | null;
  /** A filter for each key of the memory's own metadata: `{"tool": {"eq": "web"}}`. */
  metadata?: { [name: string]: MetadataFilter } | null;
}

/** Memories to store. With `deduplicate`, one that says the same as a stored one is not stored twice. */
export interface CreateMemoryRecordRequest {
  /** The memories to store. */
  memories: ExtractedMemoryRecord[];
  /** Whether one that says the same as a stored one becomes evidence of that instead of a second memory. */
  deduplicate?: boolean;
}

/** A procedure to keep: when to use it, and what to do, as `steps` or as `text`. */
export interface CreateProcedureRequest {
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** The agent whose it is; null for no agent's. */
  agent_id?: string | null;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The situation in which it is to be used; it is found by this. */
  when_to_use: string;
  /** What to do, one step each, in order. */
  steps?: string[];
  /** What to do in free words, beside the steps or instead of them. */
  text?: string | null;
  /** Whether this worked; a `failure` is kept as a warning. */
  result?: "success" | "failure";
  /** The tools that it uses, by name. */
  tools?: string[];
  /** What did not work in this situation. */
  pitfalls?: string[];
}

/** A view to make: which memories (`filters`, `time_window_days`), how they are grouped, and who writes the summary. */
export interface CreateSummaryViewRequest {
  /** A name for people to know it by. */
  name?: string | null;
  /** Where the memories come from; only `long_term` is supported. */
  source: "long_term" | "working_memory";
  /**
   * The fields whose values make the groups, each with a summary of its own: `user_id`, `namespace`, `session_id`, `memory_type`.
   * One summary of all when empty.
   */
  group_by?: string[];
  /**
   * Which memories count, by field: a value, a list of values, or operators as in a search, such as `{"topics": {"any":
   * ["travel"]}}`.
   */
  filters?: { [name: string]: unknown };
  /** Only memories that were made in the last so many days; all when not given. */
  time_window_days?: number | null;
  /** Whether the server keeps the summaries up to date by itself, in the background. */
  continuous?: boolean;
  /** What the summary is to say, in words for the language model; a general summary when not given. */
  prompt?: string | null;
  /** The language model that writes it; the server's when not given. */
  model_name?: string | null;
}

/** An API key to make. Without `namespaces`, `users` or `agents` it reaches all of the tenant's. */
export interface CreateTokenRequest {
  /** What the key is for, in words; it is shown in lists. */
  description?: string;
  /** What the key may do: only read, also write, or also administer. */
  role?: RoleEnum;
  /** The tenant whose data it reaches; the caller's own when not given. Only operators may name another one. */
  tenant?: string | null;
  /** The only namespaces that it reaches; all of the tenant's when not given. */
  namespaces?: string[] | null;
  /** The only users whose data it reaches; all of the tenant's when not given. */
  users?: string[] | null;
  /** The only agents whose memories it reaches; all of the tenant's when not given. */
  agents?: string[] | null;
  /** How many days it counts; for ever when neither this nor `expires_at` is given. */
  expires_days?: number | null;
  /** When it ceases to count; give this or `expires_days`. */
  expires_at?: string | null;
  /** A secret of the caller's own with 256 random bits; the server makes one when it is left out. */
  token?: string | null;
}

/** Filters by when a memory was made. */
export interface CreatedAt {
  /** Later than this time, or than this whole day. */
  gt?: string | null;
  /** Earlier than this time, or than this whole day. */
  lt?: string | null;
  /** At this time or later; of a day, from its beginning. */
  gte?: string | null;
  /** At this time or earlier; of a day, until its end. */
  lte?: string | null;
  /** At exactly this time, or on this day. */
  eq?: string | null;
  /** At any time but this one, or on any other day. */
  ne?: string | null;
  /** From the first to the second of two times; it cannot be combined with other operators. */
  between?: string[] | null;
  /** Which ends of `between` count: `both`, `neither`, only the first (`left`), or only the second (`right`). */
  inclusive?: "both" | "neither" | "left" | "right";
  /** The name of the field that is filtered; it may be left out, and must be this one. */
  field?: "created_at";
}

/** A new API key with its secret, which is shown this once. */
export interface CreatedToken {
  /** The id that it is read and changed by. */
  id: string;
  /** The digest of the secret that the key is found by. */
  hash: string;
  /** The tenant whose data it reaches. */
  tenant: string;
  /** What the key may do: only read, also write, or also administer. */
  role: RoleEnum;
  /** What the key is for. */
  description: string;
  /** When it was made. */
  created_at: string;
  /** When it ceases to count; null for never. */
  expires_at?: string | null;
  /** When it was last used; null when it never was. */
  last_used_at?: string | null;
  /** The only namespaces that it reaches; null for all. */
  namespaces?: string[] | null;
  /** The only users whose data it reaches; null for all. */
  users?: string[] | null;
  /** The only agents whose memories it reaches; null for all. */
  agents?: string[] | null;
  /** The secret, which is sent as `Authorization: Bearer …`; no other answer shows it. */
  token: string;
}

/** A memory that was ranked, but left out of the answer. */
export interface Cut {
  /** The memory's id. */
  memory_id: string;
  /** Why it was left out: `collapsed` (another one says the same), `already_shown` (among the prompt's messages), or `over_budget`. */
  reason: string;
  /** The id of the memory that says the same, when `reason` is `collapsed`. */
  by?: string | null;
  /** How many tokens the memories would need for it to be shown, when `reason` is `over_budget`. */
  tokens_needed?: number | null;
  /** How many tokens there were for memories, when `reason` is `over_budget`. */
  tokens_available?: number | null;
}

/** Deletes a value; one that is not there is no error. */
export interface DeleteItem {
  /** Which operation this is, in a batch. */
  op?: "delete";
  /** The namespace path that it is stored under. */
  path: string[];
  /** Its key within the path. */
  key: string;
}

/** One edit of a block's text. */
export interface EditBlockRequest {
  /** What to do: `append` a line, `replace` an exact text, `insert` a line, or `rethink`: write the whole text anew. */
  operation: "append" | "replace" | "insert" | "rethink";
  /** The new text: the line, what stands in the place of the old text (empty removes it), or the whole. */
  content: string;
  /** For `replace`: the exact text to replace, which the block must hold once. */
  old_content?: string | null;
  /** For `insert`: which line the new one becomes, 1 being the first; behind the last line it is appended. */
  line?: number | null;
}

/** Fields to change. Null, an empty list or an empty string clears a field; null leaves `text`, `memory_type` and `pinned`. */
export interface EditMemoryRecordRequest {
  /** What is remembered, instead of the former text. */
  text?: string | null;
  /** All topics that it is to have; an empty list removes them. */
  topics?: string[] | null;
  /** All entities that it is to have; an empty list removes them. */
  entities?: string[] | null;
  /** The kind that it is to be of. */
  memory_type?: MemoryTypeEnum | null;
  /** The namespace to move it to; an empty string takes it out of its namespace. */
  namespace?: string | null;
  /** The user to give it to; an empty string makes it nobody's. */
  user_id?: string | null;
  /** The session that it is to belong to; an empty string removes it from its session. */
  session_id?: string | null;
  /** When what it tells happened; null removes the date. */
  event_date?: string | null;
  /** Whether it is spared when memories are forgotten or merged. */
  pinned?: boolean | null;
  /** The agent that it is to belong to; an empty string removes it. */
  agent_id?: string | null;
  /** What the fact is about, such as `home_city`: it ends the slot's current fact. An empty string removes it. */
  slot?: string | null;
  /** The category that it is put in; an empty string removes it. */
  category?: string | null;
  /** Since when it is true; null: since it was made. */
  valid_from?: string | null;
  /** Until when it is true; null: it still is. */
  valid_to?: string | null;
  /** From when on nobody is shown it any more; null: it lasts. */
  expires_at?: string | null;
  /** The metadata that it is to have, in place of the former ones; null removes them. */
  metadata?: { [name: string]: string | number | boolean | unknown[] | { [name: string]: unknown } | null } | null;
}

/** A resource with its contents. */
export interface EmbeddedResource {
  /** Which kind of content this is. */
  type: "resource";
  /** The resource with its contents. */
  resource: TextResourceContents | BlobResourceContents;
  /** For whom it is meant, and how important it is. */
  annotations?: Annotations | null;
  /** Data of the protocol's own; this server sends none. */
  _meta?: { [name: string]: unknown } | null;
  [name: string]: unknown;
}

/** Filters by entities. */
export interface Entities {
  /** The value must be this one. */
  eq?: string | null;
  /** The value must not be this one. */
  ne?: string | null;
  /** Another name of `ne`. */
  not_eq?: string | null;
  /** At least one of these values must be there. */
  any?: string[] | null;
  /** Another name of `any`. */
  in_?: string[] | null;
  /** None of these values may be there. */
  not_in?: string[] | null;
  /** All of these values must be there, which only fields with several values (topics, entities) can fulfil. */
  all?: string[] | null;
  /** Another name of `not_in`. */
  none?: string[] | null;
  /** The value must begin with this text; it cannot be combined with other operators. */
  startswith?: string | null;
  /** The name of the field that is filtered; it may be left out, and must be this one. */
  field?: "entities";
}

/** Every other refusal; `code` is a stable word for programs. */
export interface ErrorResponse {
  /** What is wrong and how to put it right. */
  detail: string;
  /** A stable word for programs, such as `not_found`. */
  code?: string | null;
}

/** Filters by when the thing that a memory tells happened. */
export interface EventDate {
  /** Later than this time, or than this whole day. */
  gt?: string | null;
  /** Earlier than this time, or than this whole day. */
  lt?: string | null;
  /** At this time or later; of a day, from its beginning. */
  gte?: string | null;
  /** At this time or earlier; of a day, until its end. */
  lte?: string | null;
  /** At exactly this time, or on this day. */
  eq?: string | null;
  /** At any time but this one, or on any other day. */
  ne?: string | null;
  /** From the first to the second of two times; it cannot be combined with other operators. */
  between?: string[] | null;
  /** Which ends of `between` count: `both`, `neither`, only the first (`left`), or only the second (`right`). */
  inclusive?: "both" | "neither" | "left" | "right";
  /** The name of the field that is filtered; it may be left out, and must be this one. */
  field?: "event_date";
}

/** A source of a memory: messages of a session, or a program's own statement. */
export interface Evidence {
  /** The session that it was said in; null when a program stated it. */
  session_id?: string | null;
  /** The messages of the session that say it. */
  message_ids?: string[];
  /** Who said it: the role of these messages. */
  role?: string | null;
  /** The words that say it; they stay when the messages are gone. */
  quote?: string | null;
  /** Where it comes from: said by the `user`, the `assistant` or a `tool`, or stated by a program (`client`), imported or inferred. */
  source?: "user" | "assistant" | "tool" | "import" | "inference" | "client" | null;
  /** The id under which it was stored before it was found to say the same as this memory. */
  memory_id?: string | null;
  /** When it was said or stated. */
  at?: string | null;
}

/** A piece of evidence with its messages, as far as they still exist. */
export interface EvidenceItem {
  /** The session that it was said in; null when a program stated it. */
  session_id?: string | null;
  /** The messages of the session that say it. */
  message_ids?: string[];
  /** Who said it: the role of these messages. */
  role?: string | null;
  /** The words that say it; they stay when the messages are gone. */
  quote?: string | null;
  /** Where it comes from: said by the `user`, the `assistant` or a `tool`, or stated by a program (`client`), imported or inferred. */
  source?: "user" | "assistant" | "tool" | "import" | "inference" | "client" | null;
  /** The id under which it was stored before it was found to say the same as this memory. */
  memory_id?: string | null;
  /** When it was said or stated. */
  at?: string | null;
  /** Those of the named messages that still exist. */
  messages: MemoryMessage[];
}

/** Asks why a search or a prompt did or did not return a memory. Give one of the two. */
export interface ExplainRequest {
  /** The memory that was expected in the answer. */
  memory_id: string;
  /** The search that it was expected of; give either this or `prompt`. */
  search?: SearchRequest | null;
  /** The prompt that it was expected in; give either this or `search`. */
  prompt?: MemoryPromptRequest | null;
}

/** Why a search or a prompt did not return a memory, or where it did. */
export interface Explanation {
  /** The memory that was asked about. */
  memory_id: string;
  /** Whether the answer has it. */
  returned: boolean;
  /**
   * Why it is in the answer or not: `returned`, `not_found`, `quarantined` (it waits for a review), `filtered`, `not_ranked`
   * (neither near nor sharing a word), `below_threshold`, `beyond_limit`, `collapsed` (another one says the same); of prompts also
   * `already_shown` (among the session's messages) and `over_budget`.
   */
  reason: string;
  /** The filters that exclude it, when `reason` is `filtered`. */
  filters?: string[];
  /** Its place among all that was found, from 1: a `limit` of at least this shows it. Null when it was not ranked. */
  rank?: number | null;
  /** The id of the memory that says the same and is shown instead, when `reason` is `collapsed`. */
  by?: string | null;
  /** How many tokens the memories of the prompt would need for it to be shown, when `reason` is `over_budget`. */
  tokens_needed?: number | null;
  /** How many tokens the prompt had for memories, when `reason` is `over_budget`. */
  tokens_available?: number | null;
  /** How the search scored it; null when it was not scored. */
  explanation?: HitExplanation | null;
}

/** A memory that its author states: a fact by default, and nothing is to be extracted from it. */
export interface ExtractedMemoryRecord {
  /** The memory's id, at most 512 bytes; storing another text under a known id replaces what was there. */
  id: string;
  /** What is remembered, in words that can be understood alone; at most 64 KiB. */
  text: string;
  /** The session that it comes from; null when it comes from none. */
  session_id?: string | null;
  /** The user whose memory it is; null when it is nobody's in particular. */
  user_id?: string | null;
  /** The namespace that it is kept in, such as a project's or an application's name; null when it is in none. */
  namespace?: string | null;
  /** When a search or a read last gave it out. */
  last_accessed?: string;
  /** When it was made, now when not given. */
  created_at?: string;
  /** When it was last changed. */
  updated_at?: string;
  /** Whether it is spared when memories are forgotten, and never merged with others. */
  pinned?: boolean;
  /** How often searches and reads gave it out. */
  access_count?: number;
  /** What it is about, in a few words; at most 64, without commas. */
  topics?: string[] | null;
  /** The persons, places and things that it names; at most 64, without commas. */
  entities?: string[] | null;
  /** A SHA-256 of text, scope and type, which the server computes. */
  memory_hash?: string | null;
  /** Stored as `t` whatever is sent: nothing is extracted from what its author states. */
  discrete_memory_extracted?: "t" | "f";
  /**
   * A fact (`semantic`, the default), an event (`episodic`), a message word for word (`message`), or a way of doing something
   * (`procedural`).
   */
  memory_type?: MemoryTypeEnum;
  /** When it was stored as a long-term memory; in a session's `memories`, null until then. */
  persisted_at?: string | null;
  /** The ids of the messages that it was made of. */
  extracted_from?: string[] | null;
  /** When what it tells happened; null when that is no one time. */
  event_date?: string | null;
  /** The strategy that made it; `message` for a message word for word. */
  extraction_strategy?: string;
  /** The options of that strategy. */
  extraction_strategy_config?: { [name: string]: unknown };
  /** Any JSON object of the caller's own; its first 64 keys can be searched by. */
  metadata?: { [name: string]: string | number | boolean | unknown[] | { [name: string]: unknown } | null };
  /** The agent that it belongs to; agents do not replace each other's facts. */
  agent_id?: string | null;
  /**
   * What the fact is about, such as `home_city`: of one slot of a user, namespace and agent one fact is current, and a new one ends
   * it.
   */
  slot?: string | null;
  /** The category of the extraction rules that it was put in. */
  category?: string | null;
  /** Since when it is true; since it was made when not given. */
  valid_from?: string | null;
  /** Until when it is true; it is not found afterwards unless history is asked for. Left out while it is true. */
  valid_to?: string | null;
  /** From when on nobody is shown it any more. */
  expires_at?: string | null;
  /** When the server began to know this version; the server writes it. */
  recorded_at?: string | null;
  /** When the server knew better; the server writes it, and leaves it out for what is current. */
  retired_at?: string | null;
  /** The ids of the memories that it took the place of; the server writes it. */
  supersedes?: string[] | null;
  /** The id of the memory that took its place; the server writes it. */
  superseded_by?: string | null;
  /** What it rests on: messages, or a program's own statement. */
  evidence?: Evidence[] | null;
  /** Where it comes from: said by the `user`, the `assistant` or a `tool`, or stated by a program (`client`), imported or inferred. */
  source_class?: "user" | "assistant" | "tool" | "import" | "inference" | "client" | null;
  /** How far its source goes, from 0 to 1: 1 for a user's or a program's own words, 0.3 for what a tool fetched. */
  trust?: number | null;
  /** Why it waits for a review and is neither found nor shown to a model; left out when it does not. */
  quarantine?: string | null;
  /** A digest of the text that an administrator approved in quarantine; the server writes it. */
  approved?: string | null;
  /** How sure the language model was of it, from 0 to 1. */
  confidence?: number | null;
  /** The language model that extracted it. */
  model?: string | null;
  /** The version of the server's prompt that it was extracted with. */
  prompt_version?: string | null;
}

/** A kind of fact that is wanted: its name, which facts carry in their metadata, and what belongs to it. */
export interface ExtractionCategory {
  /** The category's name, which facts carry in `category`. */
  name: string;
  /** What belongs to it, in words for the language model. */
  description?: string;
}

/** What is worth remembering, and how it is written down. */
export interface ExtractionRules {
  /** What to keep and what never to keep, in plain words for the language model. */
  instructions?: string | null;
  /** The kinds of fact that are wanted; the model names one of them in each fact. */
  categories?: ExtractionCategory[];
  /** Plain phrases: a message or fact that has one of them, in any inflection, is not remembered. */
  do_not_record?: string[];
  /** The time zone, as an IANA name such as `Europe/Lisbon`, in which times are read and told; UTC when not given. */
  timezone?: string | null;
  /** The language that facts are written in, such as `English`; that of the conversation when not given. */
  language?: string | null;
  /** Whether a new fact that would end an old one is only proposed and waits for approval. */
  review?: boolean;
}

/** Filters by the strategy that made the memories. */
export interface ExtractionStrategy {
  /** The value must be this one. */
  eq?: string | null;
  /** The value must not be this one. */
  ne?: string | null;
  /** Another name of `ne`. */
  not_eq?: string | null;
  /** At least one of these values must be there. */
  any?: string[] | null;
  /** Another name of `any`. */
  in_?: string[] | null;
  /** None of these values may be there. */
  not_in?: string[] | null;
  /** All of these values must be there, which only fields with several values (topics, entities) can fulfil. */
  all?: string[] | null;
  /** Another name of `not_in`. */
  none?: string[] | null;
  /** The value must begin with this text; it cannot be combined with other operators. */
  startswith?: string | null;
  /** The name of the field that is filtered; it may be left out, and must be this one. */
  field?: "extraction_strategy";
}

/** Something that is meant, or could be. */
export interface ForgetMatch {
  /** A `fact`, a `message` in long-term memory, a message of a session as the session shows it, or a session's summary. */
  kind: "fact" | "message" | "session_message" | "summary";
  /** The memory's or the message's id; of a summary, the session's. */
  id: string;
  /** What it says; of a message that keeps other sentences, all of it. */
  text: string;
  /** Why it is here. */
  why: string;
  /** Whether it is surely meant. What is not stays, unless it is asked for by its id. */
  clear?: boolean;
  /** The session that it is in. */
  session_id?: string | null;
  /** What is left of a message when only some of its sentences go; null when all of it goes. */
  left?: string | null;
}

/** What is to be forgotten, and whose: `text` or `ids`. */
export interface ForgetMemoryRequest {
  /** What is meant, in words: `I am allergic to peanuts`, `my address`, `everything about Anna`. */
  text?: string | null;
  /** Exactly these memories, or messages of sessions, with the messages that the memories rest on. */
  ids?: string[] | null;
  /** The user whose memories are meant. Needed with `text`, unless the caller is limited to one user. */
  user_id?: string | null;
  /** The namespace that is meant; null for all of the user's. */
  namespace?: string | null;
  /** Only what was said in this session; `that` then means what the user said there last. */
  session_id?: string | null;
  /** Only show what would go. */
  dry_run?: boolean;
}

/** What goes, went, or could be meant. */
export interface ForgetMemoryResponse {
  /** All that is meant or could be, the clear ones first. */
  matches: ForgetMatch[];
  /** Several different things could be meant, or nothing surely is: nothing went. Ask which one, and send its `ids`. */
  ambiguous?: boolean;
  /** Whether this only shows. */
  dry_run?: boolean;
  /** How much went: `facts`, `messages`, `sentences` that were struck out of messages that stay, `session_messages`, `summaries`. */
  forgotten?: { [name: string]: number };
  /** The receipt, by which it is undone; null when nothing went. */
  receipt_id?: string | null;
  /** Until when it can be undone; null when it cannot. */
  undo_until?: string | null;
}

/** A policy, and the ids that it must spare. */
export interface ForgetRequest {
  /**
   * Which memories may go: `max_age_days` (since they were made), `max_inactive_days` (since they were last read), `budget` (how
   * many stay), `memory_type_allowlist` (only these types may go) and `hard_age_multiplier` (12). With both ages a memory must be
   * past both, or be older than `max_age_days * hard_age_multiplier`. Other keys are ignored.
   */
  policy: { [name: string]: unknown };
  /** Ids of memories to spare, beside those that are pinned. */
  pinned_ids?: string[] | null;
}

/** What was forgotten, or in a dry run what would be. */
export interface ForgetResponse {
  /** How many memories were looked at. */
  scanned: number;
  /** How many were forgotten, or in a dry run would be. */
  deleted: number;
  /** Their ids. */
  deleted_ids: string[];
  /** Whether this was only a trial that deleted nothing. */
  dry_run: boolean;
}

/** What came back. */
export interface ForgetUndoResponse {
  /** The receipt of what was forgotten. */
  receipt_id: string;
  /**
   * How much came back: `memories`, `messages` of sessions. `kept_newer` counts memories that stayed away, as something newer stands
   * in their place.
   */
  restored: { [name: string]: number };
}

/** Reads a value. */
export interface GetItem {
  /** Which operation this is, in a batch. */
  op?: "get";
  /** The namespace path that it is stored under. */
  path: string[];
  /** Its key within the path. */
  key: string;
  /** Whether reading it makes it stay for its time to live again. */
  refresh_ttl?: boolean;
}

/** All problems of a request (status 422). */
export interface HTTPValidationError {
  /** Each problem that was found. */
  detail?: ValidationError[];
}

/** The process answers; `now` is its clock in epoch milliseconds. */
export interface HealthCheckResponse {
  /** The process' clock, in milliseconds since 1970 UTC. */
  now: number;
}

/** How a search scored a memory: its place in the whole answer and in each list, and the parts of its score. */
export interface HitExplanation {
  /** Its place in the whole answer, from 1. */
  rank: number;
  /** What it was ranked by; higher is better. */
  score?: number | null;
  /** The cosine similarity of query and memory: 1 is the same. */
  similarity?: number | null;
  /** Its place among the memories by meaning, from 1; null when it is not among them. */
  similarity_rank?: number | null;
  /** How well its words fit the query's, as a BM25 score; words of a time that the query names do not count. */
  words?: number | null;
  /** Its place among the memories by words, from 1; null when it is not among them. */
  words_rank?: number | null;
  /** Whether it belongs to the time that the query names. */
  in_time?: boolean;
  /** How recent it is, from 0 to 1; it moves places, not the score. */
  recency?: number | null;
  /** The score of a reranking model; it moves places, not the score. */
  reranked?: number | null;
}

/** A picture for a resource; `sizes` are like "48x48". */
export interface Icon {
  /** The picture's address, or a data URI. */
  src: string;
  /** The picture's media type, such as `image/png`. */
  mimeType?: string | null;
  /** The sizes that it fits, such as `48x48`. */
  sizes?: string[] | null;
  [name: string]: unknown;
}

/** A picture, in base64. */
export interface ImageContent {
  /** Which kind of content this is. */
  type: "image";
  /** The picture in base64. */
  data: string;
  /** The picture's media type, such as `image/png`. */
  mimeType: string;
  /** For whom it is meant, and how important it is. */
  annotations?: Annotations | null;
  /** Data of the protocol's own; this server sends none. */
  _meta?: { [name: string]: unknown } | null;
  [name: string]: unknown;
}

/** A line that was not imported. Its content is not repeated. */
export interface ImportProblem {
  /** The number of the line in the file, from 1. */
  line: number;
  /** What the line holds, such as `memory` or `session`; null when it could not be read. */
  kind?: string | null;
  /** The id of the memory, change or session of the line, if it has one. */
  id?: string | null;
  /** Why it was not brought in. */
  reason: string;
}

/** What became of the lines of an import. */
export interface ImportReport {
  /** How many lines were brought in, by kind: `{"memory": 12, "session": 1}`. */
  imported?: { [name: string]: number };
  /** How many lines were here already as the file has them, by kind. */
  present?: { [name: string]: number };
  /** The lines that were not brought in, at most the first 1,000. */
  problems?: ImportProblem[];
  /** How many lines were not brought in. */
  problem_count?: number;
  /** How many vectors were taken over from the file. */
  vectors_reused?: number;
  /** How many vectors workers have to compute anew. */
  vectors_to_embed?: number;
  /** Whether the file's last line was among them and counts all that came before it. */
  complete?: boolean;
}

/** A stored value. */
export interface Item {
  /** The namespace path that it is stored under. */
  path: string[];
  /** Its key within the path. */
  key: string;
  /** The value, as it was put. */
  value: { [name: string]: unknown };
  /** When it was first put. */
  created_at: string;
  /** When it was last put. */
  updated_at: string;
}

/** Operations for one round trip. Reads see what was stored before the batch; of several writes of one key the last counts. */
export interface ItemBatch {
  /** The operations, each with its `op`. */
  operations: (PutItem | GetItem | DeleteItem | SearchItems | ListItemPaths)[];
}

/** The answers to a batch. */
export interface ItemBatchResults {
  /** One for each operation, in their order. */
  results: ItemResult[];
}

/** Namespace paths that hold items. */
export interface ItemPaths {
  /** The paths, sorted. */
  namespaces: string[][];
}

/** The answer to one operation of a batch: the field of its kind, none for a put or a delete. */
export interface ItemResult {
  /** Of a get: the item, null when there is none. */
  item?: Item | null;
  /** Of a search: the items. */
  items?: ScoredItem[] | null;
  /** Of a list: the paths. */
  namespaces?: string[][] | null;
}

/** What a search brought. */
export interface ItemSearchResults {
  /** The items, those that fit best first. */
  items: ScoredItem[];
}

/** Filters by when a memory was last read. */
export interface LastAccessed {
  /** Later than this time, or than this whole day. */
  gt?: string | null;
  /** Earlier than this time, or than this whole day. */
  lt?: string | null;
  /** At this time or later; of a day, from its beginning. */
  gte?: string | null;
  /** At this time or earlier; of a day, until its end. */
  lte?: string | null;
  /** At exactly this time, or on this day. */
  eq?: string | null;
  /** At any time but this one, or on any other day. */
  ne?: string | null;
  /** From the first to the second of two times; it cannot be combined with other operators. */
  between?: string[] | null;
  /** Which ends of `between` count: `both`, `neither`, only the first (`left`), or only the second (`right`). */
  inclusive?: "both" | "neither" | "left" | "right";
  /** The name of the field that is filtered; it may be left out, and must be this one. */
  field?: "last_accessed";
}

/** Lists the namespace paths that hold items. */
export interface ListItemPaths {
  /** Which operation this is, in a batch. */
  op?: "list_namespaces";
  /** What a path must begin and end with; every one counts. */
  match_conditions?: PathCondition[];
  /** Longer paths are cut off after so many labels. */
  max_depth?: number | null;
  /** How many paths to return. */
  limit?: number;
  /** How many to leave out before them. */
  offset?: number;
}

/** What a memory rests on. */
export interface MemoryEvidence {
  /** The memory's id. */
  memory_id: string;
  /** What it rests on; several pieces when it was said or stated more than once. */
  evidence: EvidenceItem[];
}

/** All versions and changes of a memory. */
export interface MemoryHistory {
  /** The memory's id. */
  memory_id: string;
  /** All versions, the newest first. */
  versions: MemoryVersion[];
  /** The changes that it was part of. */
  changes: Change[];
}

/**
 * One message as chat APIs have it; `to_chat` returns it as it was sent.
 *
 * `content` may be text, a list of parts, null or absent; here and in answers it is the text of the parts. Other
 * fields (`tool_calls`, `tool_call_id`, `name`, `refusal`, ...) are kept as they are.
 */
export interface MemoryMessage {
  /** Who speaks, such as `user`, `assistant`, `tool` or a name; at most 64 characters. */
  role: string;
  /** What was said: text, a list of parts as chat APIs have them, or null beside `tool_calls`; answers have the text of the parts. */
  content: string | { [name: string]: unknown }[] | null;
  /** The message's id, by which a repeat is known; one is made when it is left out. */
  id?: string;
  /** When it was said; the time of the request when not given. */
  created_at?: string;
  /** When it was remembered as a long-term memory; null until then. */
  persisted_at?: string | null;
  /** `t` when facts were extracted from it, `f` when they may still be. */
  discrete_memory_extracted?: "t" | "f";
  /** The parts of a content that was sent as a list; left out when it was text. */
  content_parts?: unknown[] | null;
  /** Why `content` is empty: it was sent as null (`null`), or not at all (`missing`); left out when there is one. */
  no_content?: "null" | "missing" | null;
  [name: string]: unknown;
}

/** A question, the session it belongs to, and whether (or how) to search long-term memory for it. */
export interface MemoryPromptRequest {
  /** The user's new message: memory is searched for it, and it becomes the prompt's last message. */
  query: string;
  /** The session's user, where `session` names none; without a session, the user whose memories are searched. */
  user_id?: string | null;
  /** The session's namespace, where `session` names none; without a session, the namespace that is searched. */
  namespace?: string | null;
  /** The agent whose memory blocks the prompt shows, where `session` names none. */
  agent_id?: string | null;
  /**
   * The time zone of the prompt's days, as an IANA name such as `Europe/Lisbon`; that of `long_term_search`, else of the user's
   * extraction rules, else UTC, when not given.
   */
  timezone?: string | null;
  /** The conversation whose summary and messages belong to the prompt; none when not given. */
  session?: WorkingMemoryRequest | null;
  /** Whether long-term memory is searched (true), or how: a search whose text is `query`. */
  long_term_search?: SearchRequest | boolean | null;
  /**
   * How many tokens summary, messages, memories and query may take together; the session's context window when not given, and with a
   * `format` 16,000.
   */
  max_tokens?: number | null;
  /**
   * For which API the answer is written: `openai` (messages with string contents, at most one system message, at the front),
   * `anthropic` (`system` apart, messages of user and assistant in turns) or `text` (one string); as the archived server has it when
   * not given.
   */
  format?: "openai" | "anthropic" | "text" | null;
  /** Whether each line of a memory ends with its id; one costs some twenty tokens. */
  include_ids?: boolean;
  /** Shows what is stable and what is current about the user, the same bytes while nothing changed; not when not given. */
  profile?: ProfileInPrompt | null;
  /**
   * Shows what happened to the user in the time that `query` names, else in the latest days, weeks and months that are over; not
   * when not given.
   */
  timeline?: TimelineInPrompt | null;
  /** Shows the user's pinned memories whatever is asked, the same bytes while none of them changed; not when not given. */
  pinned?: PinnedInPrompt | null;
  /** How many procedures for situations like `query` are shown behind the memories, and in how many tokens; none when not given. */
  procedures?: ProcedurePromptOptions | null;
  /** Says beside the memory blocks when one was last edited, and how many memories and messages can be searched; not when not given. */
  blocks?: BlocksInPrompt | null;
}

/** Messages ready for a chat model, and the long-term memories in them. */
export interface MemoryPromptResponse {
  /** The prompt, in the order in which a chat model takes it; the query comes last. Empty for the format `text`. */
  messages: (Message | SystemMessage | ChatMessage)[];
  /** The memories that went into it; null when none were searched for. */
  long_term_memories?: MemoryRecordResult[] | null;
  /** What was done otherwise than asked, in words; null or left out when nothing was. */
  notices?: string[] | null;
  /** How the answer came about, when the search asked for that with `explain`. */
  explanation?: AnswerExplanation | null;
  /** The format of the request; left out when it named none. */
  format?: "openai" | "anthropic" | "text" | null;
  /** What the format `anthropic` takes as `system`; left out when there is nothing to say, and with another format. */
  system?: string | null;
  /** The whole prompt in the format `text`; left out with another one. */
  text?: string | null;
  /** Whether memory had anything to add (a summary, memories), and not only the session's messages; left out without a format. */
  relevant?: boolean | null;
}

/**
 * A memory: who owns it, what it says, since when it is true, and where it comes from.
 *
 * Scope fields that are empty strings count as not given. The server writes `recorded_at`, `retired_at`, `supersedes`
 * and `superseded_by`.
 */
export interface MemoryRecord {
  /** The memory's id, at most 512 bytes; storing another text under a known id replaces what was there. */
  id: string;
  /** What is remembered, in words that can be understood alone; at most 64 KiB. */
  text: string;
  /** The session that it comes from; null when it comes from none. */
  session_id?: string | null;
  /** The user whose memory it is; null when it is nobody's in particular. */
  user_id?: string | null;
  /** The namespace that it is kept in, such as a project's or an application's name; null when it is in none. */
  namespace?: string | null;
  /** When a search or a read last gave it out. */
  last_accessed?: string;
  /** When it was made, now when not given. */
  created_at?: string;
  /** When it was last changed. */
  updated_at?: string;
  /** Whether it is spared when memories are forgotten, and never merged with others. */
  pinned?: boolean;
  /** How often searches and reads gave it out. */
  access_count?: number;
  /** What it is about, in a few words; at most 64, without commas. */
  topics?: string[] | null;
  /** The persons, places and things that it names; at most 64, without commas. */
  entities?: string[] | null;
  /** A SHA-256 of text, scope and type, which the server computes. */
  memory_hash?: string | null;
  /** `t` when nothing more is to be extracted from it, `f` when facts may still be. */
  discrete_memory_extracted?: "t" | "f";
  /** A fact (`semantic`), an event (`episodic`), a message word for word (`message`), or a way of doing something (`procedural`). */
  memory_type?: MemoryTypeEnum;
  /** When it was stored as a long-term memory; in a session's `memories`, null until then. */
  persisted_at?: string | null;
  /** The ids of the messages that it was made of. */
  extracted_from?: string[] | null;
  /** When what it tells happened; null when that is no one time. */
  event_date?: string | null;
  /** The strategy that made it; `message` for a message word for word. */
  extraction_strategy?: string;
  /** The options of that strategy. */
  extraction_strategy_config?: { [name: string]: unknown };
  /** Any JSON object of the caller's own; its first 64 keys can be searched by. */
  metadata?: { [name: string]: string | number | boolean | unknown[] | { [name: string]: unknown } | null };
  /** The agent that it belongs to; agents do not replace each other's facts. */
  agent_id?: string | null;
  /**
   * What the fact is about, such as `home_city`: of one slot of a user, namespace and agent one fact is current, and a new one ends
   * it.
   */
  slot?: string | null;
  /** The category of the extraction rules that it was put in. */
  category?: string | null;
  /** Since when it is true; since it was made when not given. */
  valid_from?: string | null;
  /** Until when it is true; it is not found afterwards unless history is asked for. Left out while it is true. */
  valid_to?: string | null;
  /** From when on nobody is shown it any more. */
  expires_at?: string | null;
  /** When the server began to know this version; the server writes it. */
  recorded_at?: string | null;
  /** When the server knew better; the server writes it, and leaves it out for what is current. */
  retired_at?: string | null;
  /** The ids of the memories that it took the place of; the server writes it. */
  supersedes?: string[] | null;
  /** The id of the memory that took its place; the server writes it. */
  superseded_by?: string | null;
  /** What it rests on: messages, or a program's own statement. */
  evidence?: Evidence[] | null;
  /** Where it comes from: said by the `user`, the `assistant` or a `tool`, or stated by a program (`client`), imported or inferred. */
  source_class?: "user" | "assistant" | "tool" | "import" | "inference" | "client" | null;
  /** How far its source goes, from 0 to 1: 1 for a user's or a program's own words, 0.3 for what a tool fetched. */
  trust?: number | null;
  /** Why it waits for a review and is neither found nor shown to a model; left out when it does not. */
  quarantine?: string | null;
  /** A digest of the text that an administrator approved in quarantine; the server writes it. */
  approved?: string | null;
  /** How sure the language model was of it, from 0 to 1. */
  confidence?: number | null;
  /** The language model that extracted it. */
  model?: string | null;
  /** The version of the server's prompt that it was extracted with. */
  prompt_version?: string | null;
}

/** A memory that a search found. */
export interface MemoryRecordResult {
  /** The memory's id, at most 512 bytes; storing another text under a known id replaces what was there. */
  id: string;
  /** What is remembered, in words that can be understood alone; at most 64 KiB. */
  text: string;
  /** The session that it comes from; null when it comes from none. */
  session_id?: string | null;
  /** The user whose memory it is; null when it is nobody's in particular. */
  user_id?: string | null;
  /** The namespace that it is kept in, such as a project's or an application's name; null when it is in none. */
  namespace?: string | null;
  /** When a search or a read last gave it out. */
  last_accessed?: string;
  /** When it was made, now when not given. */
  created_at?: string;
  /** When it was last changed. */
  updated_at?: string;
  /** Whether it is spared when memories are forgotten, and never merged with others. */
  pinned?: boolean;
  /** How often searches and reads gave it out. */
  access_count?: number;
  /** What it is about, in a few words; at most 64, without commas. */
  topics?: string[] | null;
  /** The persons, places and things that it names; at most 64, without commas. */
  entities?: string[] | null;
  /** A SHA-256 of text, scope and type, which the server computes. */
  memory_hash?: string | null;
  /** `t` when nothing more is to be extracted from it, `f` when facts may still be. */
  discrete_memory_extracted?: "t" | "f";
  /** A fact (`semantic`), an event (`episodic`), a message word for word (`message`), or a way of doing something (`procedural`). */
  memory_type?: MemoryTypeEnum;
  /** When it was stored as a long-term memory; in a session's `memories`, null until then. */
  persisted_at?: string | null;
  /** The ids of the messages that it was made of. */
  extracted_from?: string[] | null;
  /** When what it tells happened; null when that is no one time. */
  event_date?: string | null;
  /** The strategy that made it; `message` for a message word for word. */
  extraction_strategy?: string;
  /** The options of that strategy. */
  extraction_strategy_config?: { [name: string]: unknown };
  /** Any JSON object of the caller's own; its first 64 keys can be searched by. */
  metadata?: { [name: string]: string | number | boolean | unknown[] | { [name: string]: unknown } | null };
  /** The agent that it belongs to; agents do not replace each other's facts. */
  agent_id?: string | null;
  /**
   * What the fact is about, such as `home_city`: of one slot of a user, namespace and agent one fact is current, and a new one ends
   * it.
   */
  slot?: string | null;
  /** The category of the extraction rules that it was put in. */
  category?: string | null;
  /** Since when it is true; since it was made when not given. */
  valid_from?: string | null;
  /** Until when it is true; it is not found afterwards unless history is asked for. Left out while it is true. */
  valid_to?: string | null;
  /** From when on nobody is shown it any more. */
  expires_at?: string | null;
  /** When the server began to know this version; the server writes it. */
  recorded_at?: string | null;
  /** When the server knew better; the server writes it, and leaves it out for what is current. */
  retired_at?: string | null;
  /** The ids of the memories that it took the place of; the server writes it. */
  supersedes?: string[] | null;
  /** The id of the memory that took its place; the server writes it. */
  superseded_by?: string | null;
  /** What it rests on: messages, or a program's own statement. */
  evidence?: Evidence[] | null;
  /** Where it comes from: said by the `user`, the `assistant` or a `tool`, or stated by a program (`client`), imported or inferred. */
  source_class?: "user" | "assistant" | "tool" | "import" | "inference" | "client" | null;
  /** How far its source goes, from 0 to 1: 1 for a user's or a program's own words, 0.3 for what a tool fetched. */
  trust?: number | null;
  /** Why it waits for a review and is neither found nor shown to a model; left out when it does not. */
  quarantine?: string | null;
  /** A digest of the text that an administrator approved in quarantine; the server writes it. */
  approved?: string | null;
  /** How sure the language model was of it, from 0 to 1. */
  confidence?: number | null;
  /** The language model that extracted it. */
  model?: string | null;
  /** The version of the server's prompt that it was extracted with. */
  prompt_version?: string | null;
  /** The cosine distance from the query, from 0 (the same) to 2; 0 in listings, which have no query. */
  dist: number;
  /** How well it fits; higher is better, comparable within one answer only. */
  score?: number | null;
  /** Which kind of search made the score; null in listings. */
  score_type?: SearchScoreTypeEnum | null;
  /** How it was scored, when the search asked for that with `explain`. */
  explanation?: HitExplanation | null;
  /** How probable it is that the query asks for it, from 0 to 1; left out in listings. */
  relevance?: number | null;
  /** The part of a long text that fits the query best; left out for a text that is shorter than about 300 tokens. */
  passage?: Passage | null;
}

/** A page of memories. */
export interface MemoryRecordResultsResponse {
  /** This page's memories, the best first. */
  memories: MemoryRecordResult[];
  /** How many there are on all pages. */
  total: number;
  /** The `offset` of the next page; null on the last one. */
  next_offset?: number | null;
  /** What was done otherwise than asked, in words; null or left out when nothing was. */
  notices?: string[] | null;
  /** How the answer came about, when `explain` asked for that. */
  explanation?: AnswerExplanation | null;
}

/** How long-term memories are made from a session's messages. */
export interface MemoryStrategyConfig {
  /**
   * What is made: facts, events and ways of doing things (`discrete`), one summary of the session (`summary`), `preferences` only,
   * or what `config.custom_prompt` asks for (`custom`).
   */
  strategy?: "discrete" | "summary" | "preferences" | "custom";
  /**
   * Options of the strategy, such as `custom_prompt`, or `max_summary_length` in words, and extraction rules that hold for this
   * session.
   */
  config?: { [name: string]: unknown };
}

/** Filters by the kind of memory. */
export interface MemoryType {
  /** The name of the field that is filtered; it may be left out, and must be this one. */
  field?: "memory_type";
  /** Not used; it may be left out. */
  enum_class?: null;
  /** The value must be this one. */
  eq?: MemoryTypeEnum | null;
  /** The value must not be this one. */
  ne?: MemoryTypeEnum | null;
  /** Another name of `ne`. */
  not_eq?: MemoryTypeEnum | null;
  /** At least one of these values must be there. */
  any?: MemoryTypeEnum[] | null;
  /** Another name of `any`. */
  in_?: MemoryTypeEnum[] | null;
  /** All of these values must be there, which only fields with several values (topics, entities) can fulfil. */
  all?: MemoryTypeEnum[] | null;
  /** None of these values may be there. */
  not_in?: MemoryTypeEnum[] | null;
  /** Another name of `not_in`. */
  none?: MemoryTypeEnum[] | null;
}

/** What kind of thing a memory is: an event with a time, a fact, a message word for word, or a way of doing something. */
export type MemoryTypeEnum = "episodic" | "semantic" | "message" | "procedural";

/** A version of a memory, with the time in which the server knew it. */
export interface MemoryVersion {
  /** The number of the version; a higher one is newer. */
  version: number;
  /** The memory as this version had it. */
  record: MemoryRecord;
  /** When the server began to know this version. */
  recorded_at?: string | null;
  /** When another version took its place; null for the current one. */
  retired_at?: string | null;
  /** The fields in which it differs from the version before, each with its value before and after. */
  diff: { [name: string]: unknown[] };
}

/** A turn of the user or the assistant, with the fields that its message was sent with (`tool_calls`, ...). */
export interface Message {
  /** Who speaks: the `user`, or the `assistant` for everybody else. */
  role: "user" | "assistant";
  /** What is said; this server sends text. */
  content: TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource;
  /** Who spoke when it was neither, such as `tool` or a name; left out otherwise. */
  original_role?: string | null;
  /** The parts of a content that was sent as a list; left out when it was text. */
  content_parts?: unknown[] | null;
  /** Why the content is empty: it was sent as null (`null`), or not at all (`missing`); left out when there is one. */
  no_content?: "null" | "missing" | null;
  [name: string]: unknown;
}

/** A filter on one key of the metadata. Bounds are numbers or ISO 8601 dates; text, numbers and booleans never equal each other. */
export interface MetadataFilter {
  /** The value must be this one; text, numbers and booleans never equal each other. */
  eq?: boolean | number | string | null;
  /** The value must not be this one. */
  ne?: boolean | number | string | null;
  /** The value, or one of a list, must be among these. */
  any?: (boolean | number | string)[] | null;
  /** The list must have all of these values. */
  all?: (boolean | number | string)[] | null;
  /** None of these values may be there. */
  none?: (boolean | number | string)[] | null;
  /** More than this number, or later than this ISO 8601 date. */
  gt?: number | string | null;
  /** At least this number, or at this ISO 8601 date or later. */
  gte?: number | string | null;
  /** Less than this number, or earlier than this ISO 8601 date. */
  lt?: number | string | null;
  /** At most this number, or at this ISO 8601 date or earlier. */
  lte?: number | string | null;
  /** Whether the metadata must have the key (true) or must not have it (false). */
  exists?: boolean | null;
}

/** Filters by namespace. */
export interface Namespace {
  /** The value must be this one. */
  eq?: string | null;
  /** The value must not be this one. */
  ne?: string | null;
  /** Another name of `ne`. */
  not_eq?: string | null;
  /** At least one of these values must be there. */
  any?: string[] | null;
  /** Another name of `any`. */
  in_?: string[] | null;
  /** None of these values may be there. */
  not_in?: string[] | null;
  /** All of these values must be there, which only fields with several values (topics, entities) can fulfil. */
  all?: string[] | null;
  /** Another name of `not_in`. */
  none?: string[] | null;
  /** The value must begin with this text; it cannot be combined with other operators. */
  startswith?: string | null;
  /** The name of the field that is filtered; it may be left out, and must be this one. */
  field?: "namespace";
}

/**
 * What the work is about: a deletion, session, extraction, memory, derived data, item, order or export.
 *
 * An export runs while its caller reads it; its operation is a receipt and not listed.
 */
export type OperationKind = "deletion" | "session" | "extraction" | "memory" | "follow" | "item" | "order" | "export";

/** A page of operations. */
export interface OperationListResponse {
  /** This page's operations. */
  operations: OperationRecord[];
  /** The `offset` of the next page; null on the last one. */
  next_offset?: number | null;
}

/** One piece of background work. */
export interface OperationRecord {
  /** The operation's id, as the header `X-Operation-Id` gives it. */
  id: string;
  /** What the work is. */
  kind: OperationKind;
  /** Where the work stands; `dead` when it was given up after too many tries. */
  state: OperationState;
  /** How often it was tried without success. */
  attempts?: number;
  /** Why the last try failed; of an erasure or a purge that is done, which records it could not read. */
  reason?: string | null;
  /** When it is tried, or tried again. */
  due_at?: string | null;
  /** The namespace that it works in; null for none, or for all. */
  namespace?: string | null;
  /** The user whose data it works on; null for nobody's, or for everybody's. */
  user_id?: string | null;
  /** The session that it works on. */
  session_id?: string | null;
  /** The memory that it works on. */
  memory_id?: string | null;
  /** Counts of what is done and what is to be done: `{"promoted": 12, "messages": 14}`. */
  stages?: { [name: string]: number };
  /** How quickly the model answered about the last batch of messages; null for work without a model. */
  messages_per_minute?: number | null;
  /** What was left out of the work, such as facts of a model's answer that could not be used. */
  notices?: string[];
}

/** State of the work. `dead`: it failed too often, and stays until replayed or dropped. */
export type OperationState = "pending" | "running" | "retrying" | "done" | "dead";

/** A part of a memory's text: `text[start:end]`, counted in Unicode characters. */
export interface Passage {
  /** The words themselves. */
  text: string;
  /** Its first character, from 0. */
  start: number;
  /** The character behind its last. */
  end: number;
}

/** What a namespace path begins or ends with. */
export interface PathCondition {
  /** Which end of the path is looked at. */
  match_type: "prefix" | "suffix";
  /** The labels there; `*` stands for any label. */
  path: string[];
}

/** What happened in a day, a week or a month, in short. */
export interface PeriodSummary {
  /** The summary, with days and who told what. */
  text: string;
  /** Whether it is put together from the events themselves, or a language model wrote it. */
  by: "events" | "model";
  /** How many events there are in the period. */
  events: number;
  /** When it was made. */
  made_at: string;
}

/** How many of the user's pinned memories a prompt shows. */
export interface PinnedInPrompt {
  /** At most so many tokens. */
  tokens?: number;
}

/** A stored procedure with what was said of it. */
export interface Procedure {
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** The agent whose it is; null for no agent's. */
  agent_id?: string | null;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The id that it is read and changed by. */
  id: string;
  /** The situation in which it is to be used. */
  when_to_use: string;
  /** What to do, one step each, in order. */
  steps?: string[];
  /** What to do in free words. */
  text?: string | null;
  /** Whether this worked. */
  result?: "success" | "failure";
  /** The tools that it uses, by name. */
  tools?: string[];
  /** What did not work in this situation. */
  pitfalls?: string[];
  /** Whether it is found: `active`, `retired` or `quarantined`. */
  state?: "active" | "retired" | "quarantined";
  /** `stated` by a caller, or `learned` from sessions. */
  origin?: "stated" | "learned";
  /** The sessions that it was learned from. */
  learned_from?: ProcedureSource[];
  /** When it was made. */
  created_at: string;
  /** When its content changed last. */
  updated_at: string;
  /** Its version, for `If-Match`; feedback does not change it. */
  version: number;
  /** How often feedback said that it helped. */
  helped?: number;
  /** How often feedback said that it did not. */
  failed?: number;
  /** How often it helps, smoothed: (helped + 1) / (helped + failed + 2), which is 0.5 while nothing was said. */
  rate?: number;
  /** The mean of the scores in feedback; null without any. */
  score?: number | null;
  /** When feedback came last. */
  last_feedback_at?: string | null;
}

/** A change of a procedure's content, which can be undone while it is the last. */
export interface ProcedureChange {
  /** The version that it made. */
  version: number;
  /** What was done; workers `learn`, `merge` and `retire`. */
  kind: "create" | "edit" | "learn" | "merge" | "retire" | "restore" | "undo";
  /** When. */
  at: string;
  /** Who did it: the caller's name in audit events, or `worker`. */
  by?: string;
  /** Why, where a worker did it. */
  reason?: string;
  /** What it was before; null for its beginning. */
  before?: ProcedureContent | null;
}

/** A procedure without its counts: what an edit changes and an undo brings back. */
export interface ProcedureContent {
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** The agent whose it is; null for no agent's. */
  agent_id?: string | null;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The id that it is read and changed by. */
  id: string;
  /** The situation in which it is to be used. */
  when_to_use: string;
  /** What to do, one step each, in order. */
  steps?: string[];
  /** What to do in free words. */
  text?: string | null;
  /** Whether this worked. */
  result?: "success" | "failure";
  /** The tools that it uses, by name. */
  tools?: string[];
  /** What did not work in this situation. */
  pitfalls?: string[];
  /** Whether it is found: `active`, `retired` or `quarantined`. */
  state?: "active" | "retired" | "quarantined";
  /** `stated` by a caller, or `learned` from sessions. */
  origin?: "stated" | "learned";
  /** The sessions that it was learned from. */
  learned_from?: ProcedureSource[];
  /** When it was made. */
  created_at: string;
  /** When its content changed last. */
  updated_at: string;
}

/** Feedback as it was given. */
export interface ProcedureFeedback {
  /** Whether it did. */
  helped: boolean;
  /** How well it went, from 0 to 1. */
  score?: number | null;
  /** What there is to say about it. */
  comment?: string | null;
  /** When it was given. */
  at: string;
}

/** Whether a procedure helped when it was used. */
export interface ProcedureFeedbackRequest {
  /** Whether it did. */
  helped: boolean;
  /** How well it went, from 0 to 1. */
  score?: number | null;
  /** What there is to say about it. */
  comment?: string | null;
}

/** The last changes of a procedure and the last feedback on it, each the oldest first. */
export interface ProcedureHistory {
  /** At most 50 changes. */
  changes: ProcedureChange[];
  /** At most 100 pieces of feedback; the counts know of all. */
  feedback: ProcedureFeedback[];
}

/** A page of procedures, the newest first. */
export interface ProcedureListResponse {
  /** The procedures of this page, the newest first. */
  procedures: Procedure[];
  /** How many there are on all pages. */
  total: number;
}

/** A procedure that fits a situation. */
export interface ProcedureMatch {
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** The agent whose it is; null for no agent's. */
  agent_id?: string | null;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The id that it is read and changed by. */
  id: string;
  /** The situation in which it is to be used. */
  when_to_use: string;
  /** What to do, one step each, in order. */
  steps?: string[];
  /** What to do in free words. */
  text?: string | null;
  /** Whether this worked. */
  result?: "success" | "failure";
  /** The tools that it uses, by name. */
  tools?: string[];
  /** What did not work in this situation. */
  pitfalls?: string[];
  /** Whether it is found: `active`, `retired` or `quarantined`. */
  state?: "active" | "retired" | "quarantined";
  /** `stated` by a caller, or `learned` from sessions. */
  origin?: "stated" | "learned";
  /** The sessions that it was learned from. */
  learned_from?: ProcedureSource[];
  /** When it was made. */
  created_at: string;
  /** When its content changed last. */
  updated_at: string;
  /** Its version, for `If-Match`; feedback does not change it. */
  version: number;
  /** How often feedback said that it helped. */
  helped?: number;
  /** How often feedback said that it did not. */
  failed?: number;
  /** How often it helps, smoothed: (helped + 1) / (helped + failed + 2), which is 0.5 while nothing was said. */
  rate?: number;
  /** The mean of the scores in feedback; null without any. */
  score?: number | null;
  /** When feedback came last. */
  last_feedback_at?: string | null;
  /** How well its `when_to_use` fits the situation, by meaning and words, from 0 to 1. */
  fit: number;
  /** What the answer is ordered by: fit × (1 + rate) / 2. */
  rank_score: number;
}

/** How many procedures a prompt shows, and how many tokens they may take. */
export interface ProcedurePromptOptions {
  /** At most so many procedures. */
  limit?: number;
  /** At most so many tokens. */
  tokens?: number;
}

/** A situation to find procedures for. Of user, agent and namespace, what is given must be the procedure's. */
export interface ProcedureSearchRequest {
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** The agent whose it is; null for no agent's. */
  agent_id?: string | null;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** What is to be done, in plain words. */
  situation: string;
  /** At most so many procedures. */
  limit?: number;
  /** Only procedures that worked (`success`), only those that did not (`failure`), or both (null). */
  result?: "success" | "failure" | null;
}

/** The procedures that fit a situation, the best first. */
export interface ProcedureSearchResponse {
  /** Those that fit, by `rank_score`; at most `limit`. */
  procedures: ProcedureMatch[];
  /** What was done otherwise than asked, in words; null or left out when nothing was. */
  notices?: string[] | null;
}

/** A session that a procedure was learned from. */
export interface ProcedureSource {
  /** The session's id. */
  session_id: string;
  /** How the session ended. */
  result: "success" | "failure";
  /** How well it went, from 0 to 1. */
  score?: number | null;
  /** When it was learned. */
  learned_at: string;
  /** What did not work in it. */
  pitfalls?: string[];
}

/** What is known of a user in one namespace. */
export interface Profile {
  /** The user whose it is; null for nobody's. */
  user_id: string;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** What is stable: names, allergies, home, family, work, languages, and what was said on three days within fourteen. */
  static?: ProfileEntry[];
  /** What is current, the latest first. */
  dynamic?: ProfileEntry[];
  /** The values of slots, by topic and sub-topic of the schema. */
  slots?: { [name: string]: { [name: string]: ProfileEntry } };
  /** What fits `q`, as a search answers it; null without `q`. */
  memories?: { [name: string]: unknown }[] | null;
  /** The time that it is of. */
  as_of: string;
  /** Changes when the profile does; 0 for a profile that was never written, and of other times than now. */
  version: number;
}

/** Something that is known of a user. */
export interface ProfileEntry {
  /** The memory that says it. */
  id: string;
  /** What is known, at most 600 characters of it. */
  text: string;
  /** Since when it is true: as it was said, else since it was made. */
  since: string;
  /** When it was last said. */
  last_said: string;
  /** When what it tells happened; left out when that is not known. */
  event_date?: string | null;
  /** How often it was said. */
  times_said?: number;
  /** How sure it is, from 0 to 1. */
  confidence?: number;
  /** The slot that it is the value of, if any. */
  slot?: string | null;
  /** The latest five pieces of what it rests on. */
  evidence?: ProfileEvidence[];
}

/** What an entry rests on. */
export interface ProfileEvidence {
  /** The session that it was said in; null when a program stated it. */
  session_id?: string | null;
  /** The messages of the session that say it. */
  message_ids?: string[];
  /** When it was said. */
  at?: string | null;
}

/** How much of the user's profile a prompt shows. */
export interface ProfileInPrompt {
  /** At most so many tokens. */
  tokens?: number;
}

/** A step of a memory into, within or out of a profile. */
export interface ProfileMove {
  /** The id of the memory that moved. */
  memory_id: string;
  /** When it was noticed. */
  at: string;
  /** `static` or `dynamic`; null when it came in. */
  before?: string | null;
  /** `static` or `dynamic`; null when it went. */
  after?: string | null;
}

/** The latest moves of a profile, newest first. */
export interface ProfileMoves {
  /** At most a thousand are kept. */
  moves?: ProfileMove[];
}

/** Topics and sub-topics: which slots a profile shows. */
export interface ProfileSchema {
  /** The topics by name. */
  topics: { [name: string]: ProfileTopic };
}

/** A topic of a profile's slots. */
export interface ProfileTopic {
  /** What belongs here, in words for the model that takes facts. */
  description?: string;
  /** The slots of the topic, each with what it is about. `home_city` is the slot of that name, or `home.home_city`. */
  sub_topics?: { [name: string]: string };
}

/** A source whose memories are to be deleted; all given conditions must hold, and at least one is required. */
export interface PurgeRequest {
  /** Who said or made it: `user`, `assistant`, `tool`, `import`, `inference` or `client`; any of these. */
  source_class?: ("user" | "assistant" | "tool" | "import" | "inference" | "client")[] | null;
  /** The session that it comes from. */
  session_id?: string | null;
  /** The agent that wrote it. */
  agent_id?: string | null;
  /** The name that the import was given as `import_source`. */
  import_source?: string | null;
  /** Values that the memory's own metadata have: `{"tool": "web"}`. */
  metadata?: { [name: string]: string | number | boolean | unknown[] | { [name: string]: unknown } | null } | null;
}

/** How far a purge is, and what it did; of a dry run, what it would do. */
export interface PurgeResponse {
  /** `ok` when it is done, `pending` while a worker is at it. */
  status: "ok" | "pending";
  /** Whether this is only a trial that deletes nothing. */
  dry_run: boolean;
  /** The operation that keeps the counts, for 7 days. */
  operation_id: string;
  /**
   * What was done: memories of the source that are gone (`matched`), with those made of nothing else (`inferred`); memories that
   * have their last clean content back (`restored`) or lost a piece of `evidence`; `proposals` and `summaries` that are gone,
   * `messages` that were struck out of sessions, and their summaries (`contexts`). Records that could not be read stay, and are
   * counted as `unreadable`; the operation names them. Null while it is pending.
   */
  counts?: { [name: string]: number } | null;
  /** In a dry run, up to 100 memories that would go. */
  memory_ids?: string[] | null;
}

/** What a block is to be. Of one that exists, what is not given stays as it is. */
export interface PutBlockRequest {
  /** The whole text; a new block is empty when it is not given. */
  value?: string | null;
  /** What the block is for: the agent reads it in each prompt. */
  description?: string | null;
  /** How many characters the text may have; 2,000 for a new block when not given. */
  limit?: number | null;
  /** How many tokens the text may take; 0 for any number. */
  limit_tokens?: number | null;
  /** Whether edits are refused, so that only a PUT changes the block. */
  read_only?: boolean | null;
}

/** Stores a value; one under the same path and key is replaced, and keeps the time it was created. */
export interface PutItem {
  /** Which operation this is, in a batch. */
  op?: "put";
  /** The namespace path that it is stored under. */
  path: string[];
  /** Its key within the path. */
  key: string;
  /** The value: a JSON object. */
  value: { [name: string]: unknown };
  /**
   * The fields whose text is searched by meaning and words, such as `title`, `author.name`, `chapters[*].text`; all when not given,
   * none when `false`.
   */
  index?: false | string[] | null;
  /** After so many minutes without being read or put the item is gone; never when not given. */
  ttl_minutes?: number | null;
}

/** A page of the memories that wait for a review. */
export interface QuarantineListResponse {
  /** This page's memories; `quarantine` says why each of them waits. */
  memories: MemoryRecord[];
  /** How many there are on all pages. */
  total: number;
  /** The `offset` of the next page; null on the last one. */
  next_offset?: number | null;
}

/** A reference to something that can be read elsewhere; `size` is in bytes. */
export interface ResourceLink {
  /** The resource's name for programs. */
  name: string;
  /** The resource's name for people. */
  title?: string | null;
  /** Where it can be read. */
  uri: string;
  /** What it holds. */
  description?: string | null;
  /** Its media type, if known. */
  mimeType?: string | null;
  /** Its size in bytes, if known. */
  size?: number | null;
  /** Pictures to show for it. */
  icons?: Icon[] | null;
  /** For whom it is meant, and how important it is. */
  annotations?: Annotations | null;
  /** Data of the protocol's own; this server sends none. */
  _meta?: { [name: string]: unknown } | null;
  /** Which kind of content this is. */
  type: "resource_link";
  [name: string]: unknown;
}

/** What a key may do; each may what stands before it, too. */
export type RoleEnum = "read" | "write" | "admin";

/** Another secret for a key, beside which the former one counts for a while. */
export interface RotateTokenRequest {
  /** For how many more seconds the former secret counts; an hour when not given, at most a week. */
  grace_seconds?: number;
}

/** One partition to compute now: a value for every field in the view's `group_by`. */
export interface RunSummaryViewPartitionRequest {
  /** A value for each field of the view's `group_by`: `{"user_id": "ada"}`. */
  group: { [name: string]: string };
}

/** A full run of a view, under a task id of the caller's or a new one. */
export interface RunSummaryViewRequest {
  /** An id for the task to follow it by; one is made when it is left out. */
  task_id?: string | null;
}

/** A value that a search brought. */
export interface ScoredItem {
  /** The namespace path that it is stored under. */
  path: string[];
  /** Its key within the path. */
  key: string;
  /** The value, as it was put. */
  value: { [name: string]: unknown };
  /** When it was first put. */
  created_at: string;
  /** When it was last put. */
  updated_at: string;
  /** How well it fits the query, at most 1; null without a query, and for what is not indexed. */
  score?: number | null;
}

/** Finds values under a path: by a filter, and in the order of how well they fit a query. */
export interface SearchItems {
  /** Which operation this is, in a batch. */
  op?: "search";
  /** Items under this path, at any depth; all when empty. */
  prefix?: string[];
  /** Words to look for, by meaning and by the words themselves; without one, items come in the order of their paths and keys. */
  query?: string | null;
  /**
   * Which items count, by field: a value, an object of such filters for nested fields, or operators (`$eq`, `$ne`, `$gt`, `$gte`,
   * `$lt`, `$lte`).
   */
  filter?: { [name: string]: unknown } | null;
  /** How many items to return. */
  limit?: number;
  /** How many to leave out before them. */
  offset?: number;
  /** Whether the items that are returned stay for their time to live again. */
  refresh_ttl?: boolean;
}

/** By meaning, by words, or by both. */
export type SearchModeEnum = "semantic" | "keyword" | "hybrid";

/**
 * A search. Without text, all memories that the filters allow are listed.
 *
 * Only current memories are found, unless `as_of`, `known_at` or `history` says otherwise. Quarantined ones are only
 * found with `quarantined`, and never by a prompt.
 */
export interface SearchRequest {
  /** What to look for, as a question or in words; without it, all memories that the filters allow are listed. */
  text?: string | null;
  /**
   * By meaning (`semantic`), by words (`keyword`) or by both (`hybrid`); left out, `hybrid`, or `semantic` with a
   * `distance_threshold`.
   */
  search_mode?: SearchModeEnum;
  /** In hybrid mode, the weight of meaning against words, from 0 to 1; left out, the two lists are fused by rank. */
  hybrid_alpha?: number;
  /** How the engine scores words: `BM25STD` or another of its scorers. */
  text_scorer?: string;
  /** Filters by session. */
  session_id?: SessionId | null;
  /** Filters by namespace. */
  namespace?: Namespace | null;
  /** Filters by topics. */
  topics?: Topics | null;
  /** Filters by entities. */
  entities?: Entities | null;
  /** Filters by when a memory was made. */
  created_at?: CreatedAt | null;
  /** Filters by when a memory was last read. */
  last_accessed?: LastAccessed | null;
  /** Filters by user. `exists: false` asks for what has no user. */
  user_id?: UserId | null;
  /** The largest cosine distance of a result, from 0 (the same) to 2; in semantic mode only. */
  distance_threshold?: number | null;
  /** Filters by the kind of memory. */
  memory_type?: MemoryType | null;
  /** Filters by the strategy that made the memories. */
  extraction_strategy?: ExtractionStrategy | null;
  /** Filters by when the thing that a memory tells happened. */
  event_date?: EventDate | null;
  /** At most so many results. */
  limit?: number;
  /** How many results to skip: `next_offset` of the page before. */
  offset?: number;
  /** Whether newer memories rank higher; false switches that off whatever else is given. */
  recency_boost?: boolean | null;
  /** The weight of the fit to the query when age counts; 0.8 when not given. */
  recency_semantic_weight?: number | null;
  /** The weight of recency when age counts; 0.2 when not given. */
  recency_recency_weight?: number | null;
  /** Within recency, the weight of when a memory was last read; 0.6 when not given. */
  recency_freshness_weight?: number | null;
  /** Within recency, the weight of when it was made; 0.4 when not given. */
  recency_novelty_weight?: number | null;
  /** After how many days without being read freshness is halved; 7 when not given. */
  recency_half_life_last_access_days?: number | null;
  /** After how many days since it was made novelty is halved; 30 when not given. */
  recency_half_life_created_days?: number | null;
  /** As `recency_boost`, with the similarity of a semantic search on the scale from 0 to 1. */
  server_side_recency?: boolean | null;
  /** The time zone, as an IANA name such as `Europe/Lisbon`, in which a time that the text names is read; UTC when not given. */
  timezone?: string | null;
  /** The time that "yesterday" and "last week" in the text are seen from; now when not given. */
  reference_time?: string | null;
  /**
   * Whether memories that only repeat one before them are left out; a search does not unless this is true, a prompt does unless it
   * is false.
   */
  distinct?: boolean | null;
  /** Whether the answer and each result say how they came about. */
  explain?: boolean;
  /**
   * Leaves out what is less relevant, from 0 to 1. A search shows the nearest however far they are when this is not given; a prompt
   * shows what has 0.015 at least.
   */
  min_relevance?: number | null;
  /** The agent that they belong to. */
  agent_id?: TagFilter | null;
  /** What the facts are about, such as `home_city`. */
  slot?: TagFilter | null;
  /** The category of the extraction rules that they were put in. */
  category?: TagFilter | null;
  /** Where they come from: `user`, `assistant`, `tool`, `import`, `inference` or `client`. */
  source_class?: TagFilter | null;
  /** The least trust of a result, from 0 to 1: 1 a user's own words, 0.3 what a tool fetched. */
  min_trust?: number | null;
  /** Whether memories that wait for a review are searched instead of the others; never in a prompt. */
  quarantined?: boolean;
  /** A filter for each key of the memories' own metadata: `{"tool": {"eq": "web"}}`. */
  metadata?: { [name: string]: MetadataFilter } | null;
  /** Conditions that are joined by `and`, `or` and `not`, beside the filters above. */
  filter?: Condition | null;
  /** What was true at this time, instead of now. */
  as_of?: string | null;
  /** What this server knew at this time; with `as_of`, of what was true then. */
  known_at?: string | null;
  /** Whether every version is found, also what is no longer current. */
  history?: boolean;
}

/** Which kind of search made a score. */
export type SearchScoreTypeEnum = "semantic" | "keyword" | "hybrid";

/** Filters by session. */
export interface SessionId {
  /** The value must be this one. */
  eq?: string | null;
  /** The value must not be this one. */
  ne?: string | null;
  /** Another name of `ne`. */
  not_eq?: string | null;
  /** At least one of these values must be there. */
  any?: string[] | null;
  /** Another name of `any`. */
  in_?: string[] | null;
  /** None of these values may be there. */
  not_in?: string[] | null;
  /** All of these values must be there, which only fields with several values (topics, entities) can fulfil. */
  all?: string[] | null;
  /** Another name of `not_in`. */
  none?: string[] | null;
  /** The value must begin with this text; it cannot be combined with other operators. */
  startswith?: string | null;
  /** The name of the field that is filtered; it may be left out, and must be this one. */
  field?: "session_id";
}

/** A session's id, and whose it is. */
export interface SessionIdentity {
  /** The session's id. */
  session_id: string;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
}

/** A page of session ids. */
export interface SessionListResponse {
  /** The sessions' ids. */
  sessions: string[];
  /** How many there are on all pages. */
  total: number;
  /** Whose the sessions are, in the same order; only if the request asks for it. */
  identities?: SessionIdentity[] | null;
}

/** How a session ended, and what was learned from it. */
export interface SessionResult {
  /** Whether it reached what it was for. */
  result: "success" | "failure";
  /** How well it went, from 0 to 1. */
  score?: number | null;
  /** What there is to say about it; a model that learns from the session reads it. */
  comment?: string | null;
  /** The agent whose work it was; what is learned becomes this agent's. */
  agent_id?: string | null;
  /** The session's id. */
  session_id: string;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** When it was marked. */
  marked_at: string;
  /** `waiting` for a worker; then a procedure was `created`, `merged` with an existing one, or there was `nothing` to learn. */
  learned?: "waiting" | "created" | "merged" | "nothing";
  /** The procedure that came of it. */
  procedure_id?: string | null;
}

/** How a session ended. */
export interface SessionResultRequest {
  /** Whether it reached what it was for. */
  result: "success" | "failure";
  /** How well it went, from 0 to 1. */
  score?: number | null;
  /** What there is to say about it; a model that learns from the session reads it. */
  comment?: string | null;
  /** The agent whose work it was; what is learned becomes this agent's. */
  agent_id?: string | null;
}

/** A stored view. */
export interface SummaryView {
  /** A name for people to know it by. */
  name?: string | null;
  /** Where the memories come from; only `long_term` is supported. */
  source: "long_term" | "working_memory";
  /**
   * The fields whose values make the groups, each with a summary of its own: `user_id`, `namespace`, `session_id`, `memory_type`.
   * One summary of all when empty.
   */
  group_by?: string[];
  /**
   * Which memories count, by field: a value, a list of values, or operators as in a search, such as `{"topics": {"any":
   * ["travel"]}}`.
   */
  filters?: { [name: string]: unknown };
  /** Only memories that were made in the last so many days; all when not given. */
  time_window_days?: number | null;
  /** Whether the server keeps the summaries up to date by itself, in the background. */
  continuous?: boolean;
  /** What the summary is to say, in words for the language model; a general summary when not given. */
  prompt?: string | null;
  /** The language model that writes it; the server's when not given. */
  model_name?: string | null;
  /** The id that it is read and changed by. */
  id: string;
}

/** The summary of one partition. */
export interface SummaryViewPartitionResult {
  /** The view that it belongs to. */
  view_id: string;
  /** The values that its memories share, by field. */
  group: { [name: string]: string };
  /** The summary; empty when no memory matches. */
  summary?: string;
  /** How many memories match. */
  memory_count: number;
  /** Whether there was nothing to summarize. */
  empty?: boolean;
  /** Why it is empty: `no_matching_memories`; null when it is not. */
  empty_reason?: string | null;
  /** Why it was made without the language model, of the memories that tell most; null when the model wrote it. */
  degraded?: string | null;
  /** When it was made. */
  computed_at?: string;
}

/** Instructions or knowledge for the model. */
export interface SystemMessage {
  /** Always `system`. */
  role?: "system";
  /** The session's summary, or the memories that fit the query. */
  content: string | TextContent;
}

/** A filter on identifiers or tags. `in_` is another name of `any`, `not_eq` of `ne`, `none` of `not_in`. */
export interface TagFilter {
  /** The value must be this one. */
  eq?: string | null;
  /** The value must not be this one. */
  ne?: string | null;
  /** Another name of `ne`. */
  not_eq?: string | null;
  /** At least one of these values must be there. */
  any?: string[] | null;
  /** Another name of `any`. */
  in_?: string[] | null;
  /** None of these values may be there. */
  not_in?: string[] | null;
  /** All of these values must be there, which only fields with several values (topics, entities) can fulfil. */
  all?: string[] | null;
  /** Another name of `not_in`. */
  none?: string[] | null;
  /** The value must begin with this text; it cannot be combined with other operators. */
  startswith?: string | null;
}

/** A background task; `error_message` tells why it failed. */
export interface Task {
  /** The task's id, the caller's own or a new one. */
  id: string;
  /** What the task does. */
  type: TaskTypeEnum;
  /** Where it stands; `success` and `failed` are final. */
  status?: TaskStatusEnum;
  /** The summary view that it computes. */
  view_id?: string | null;
  /** When it was ordered. */
  created_at?: string;
  /** When a worker began; null before that. */
  started_at?: string | null;
  /** When it ended, well or not; null before that. */
  completed_at?: string | null;
  /** Why it failed; null when it did not. */
  error_message?: string | null;
}

/** How far a task is. `COMPLETED` is the name that programs know for success. */
export type TaskStatusEnum = "pending" | "running" | "success" | "failed";

/** What a task does. */
export type TaskTypeEnum = "summary_view_full_run";

/** Text. */
export interface TextContent {
  /** Which kind of content this is. */
  type: "text";
  /** What is said, in words. */
  text: string;
  /** For whom it is meant, and how important it is. */
  annotations?: Annotations | null;
  /** Data of the protocol's own; this server sends none. */
  _meta?: { [name: string]: unknown } | null;
  [name: string]: unknown;
}

/** A resource's text. */
export interface TextResourceContents {
  /** Where it can be read. */
  uri: string;
  /** Its media type, if known. */
  mimeType?: string | null;
  /** Data of the protocol's own; this server sends none. */
  _meta?: { [name: string]: unknown } | null;
  /** The resource's text. */
  text: string;
  [name: string]: unknown;
}

/** What happened to a user, in one namespace, in the order of its days. */
export interface Timeline {
  /** The user whose it is; null for nobody's. */
  user_id: string;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** How many events there are in the days that were asked for; `offset` reads on. */
  total?: number;
  /** The events; empty with `granularity`. */
  events?: TimelineEvent[];
  /** The events by period; null without `granularity`. */
  periods?: TimelinePeriod[] | null;
  /** The time that it is of. */
  as_of: string;
}

/** Something that happened, or will. */
export interface TimelineEvent {
  /** The memory that tells it; a message that tells several has one event for each. */
  id: string;
  /** What happened, as it was told, at most 600 characters of it. */
  text: string;
  /** The first day, as the user counts days. */
  start: string;
  /** The last day, included; null while nothing says that it is over. */
  end?: string | null;
  /** How exactly the time is known: "in March 2024" is from the first to the last of the month, by `month`. */
  precision?: "day" | "week" | "month" | "year";
  /** The moment, where the time of day is known. */
  at?: string | null;
  /**
   * What the time rests on: the memory's own date (`event`), a time that its text names (`text`), or only the day it was told
   * (`said`).
   */
  dated_by?: "event" | "text" | "said";
  /** The speaker who told it, where one is named; else the user. */
  who?: string | null;
  /** What it is about. */
  topics?: string[];
  /** The persons, places and things that it names. */
  entities?: string[];
  /** How often it was told. */
  times_said?: number;
  /** When it was last told. */
  last_said: string;
  /** The latest five pieces of what it rests on. */
  evidence?: ProfileEvidence[];
}

/** How much of the user's timeline a prompt shows. */
export interface TimelineInPrompt {
  /** At most so many tokens. */
  tokens?: number;
}

/** The events of a day, a week or a month; of a longer period, those that are known no more exactly. */
export interface TimelinePeriod {
  /** Such as 2024-03-05, 2024-W10, 2024-03 or 2024. */
  name: string;
  /** Its first day. */
  start: string;
  /** Its last day, included. */
  end: string;
  /** What began in it, in order. */
  events?: TimelineEvent[];
  /** What happened in all of the period; null unless `state` is `current`. */
  summary?: PeriodSummary | null;
  /**
   * `current`; `open` while the period is not over; `pending` until its summary is made, or made again after a change. Null for
   * years, for a topic or an entity, and for the timeline of another time.
   */
  state?: "open" | "pending" | "current" | null;
}

/** An API key without its secret. */
export interface TokenInfo {
  /** The id that it is read and changed by. */
  id: string;
  /** The digest of the secret that the key is found by. */
  hash: string;
  /** The tenant whose data it reaches. */
  tenant: string;
  /** What the key may do: only read, also write, or also administer. */
  role: RoleEnum;
  /** What the key is for. */
  description: string;
  /** When it was made. */
  created_at: string;
  /** When it ceases to count; null for never. */
  expires_at?: string | null;
  /** When it was last used; null when it never was. */
  last_used_at?: string | null;
  /** The only namespaces that it reaches; null for all. */
  namespaces?: string[] | null;
  /** The only users whose data it reaches; null for all. */
  users?: string[] | null;
  /** The only agents whose memories it reaches; null for all. */
  agents?: string[] | null;
}

/** API keys, the oldest first. */
export interface TokenList {
  /** The keys, the oldest first. */
  tokens: TokenInfo[];
}

/** A shape that the arguments of a tool had. */
export interface ToolArguments {
  /** The names of the arguments with their JSON types. */
  shape: { [name: string]: string };
  /** How many calls of this shape worked. */
  succeeded?: number;
  /** How many did not. */
  failed?: number;
  /** Arguments of the last call of this shape that worked, without secrets and cut to 1,000 characters; null before any did. */
  example?: { [name: string]: unknown } | null;
}

/** One call of a tool, as it went. */
export interface ToolCallRequest {
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** The agent whose it is; null for no agent's. */
  agent_id?: string | null;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The tool's name. */
  tool: string;
  /** The arguments of the call. */
  arguments?: { [name: string]: unknown };
  /** Whether it worked. */
  success?: boolean;
  /** How long it took, in milliseconds. */
  duration_ms?: number | null;
  /** What it cost, in the caller's own unit. */
  cost?: number | null;
  /** What it said when it did not work. */
  error?: string | null;
}

/** What is known of a tool from its calls. */
export interface ToolMemory {
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** The agent whose it is; null for no agent's. */
  agent_id?: string | null;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The tool's name. */
  tool: string;
  /** How many calls worked. */
  succeeded?: number;
  /** How many did not. */
  failed?: number;
  /** How often it works, smoothed as a procedure's rate. */
  rate?: number;
  /** How long a call takes on average; null when that was never known. */
  mean_duration_ms?: number | null;
  /** What a call costs on average; null when that was never known. */
  mean_cost?: number | null;
  /** What all calls cost whose cost is known. */
  total_cost?: number | null;
  /** The shapes of arguments, at most 8, those that worked most often first. */
  arguments?: ToolArguments[];
  /** What the last failures said, at most 3. */
  errors?: string[];
  /** When it was called last. */
  last_called_at?: string | null;
}

/** What is known of tools. */
export interface ToolMemoryListResponse {
  /** The tools of this page, the newest first. */
  tools: ToolMemory[];
  /** How many there are on all pages. */
  total: number;
}

/** Filters by topics. */
export interface Topics {
  /** The value must be this one. */
  eq?: string | null;
  /** The value must not be this one. */
  ne?: string | null;
  /** Another name of `ne`. */
  not_eq?: string | null;
  /** At least one of these values must be there. */
  any?: string[] | null;
  /** Another name of `any`. */
  in_?: string[] | null;
  /** None of these values may be there. */
  not_in?: string[] | null;
  /** All of these values must be there, which only fields with several values (topics, entities) can fulfil. */
  all?: string[] | null;
  /** Another name of `not_in`. */
  none?: string[] | null;
  /** The value must begin with this text; it cannot be combined with other operators. */
  startswith?: string | null;
  /** The name of the field that is filtered; it may be left out, and must be this one. */
  field?: "topics";
}

/** Which change of a block is undone. */
export interface UndoBlockRequest {
  /** The version that the change made; the newest when not given. */
  version?: number | null;
}

/** Changes of a session's data. */
export interface UpdateDataRequest {
  /** A JSON merge patch (RFC 7396) of the session's data: objects are merged, null removes a key, anything else replaces. */
  data: { [name: string]: string | number | boolean | unknown[] | { [name: string]: unknown } | null };
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
}

/** Fields to change. Null clears `steps`, `text`, `tools` and `pitfalls`, and leaves the others. */
export interface UpdateProcedureRequest {
  /** The situation in which it is to be used. */
  when_to_use?: string | null;
  /** All of its steps. */
  steps?: string[] | null;
  /** What to do in free words; null or an empty text removes it. */
  text?: string | null;
  /** Whether this worked. */
  result?: "success" | "failure" | null;
  /** All tools that it uses. */
  tools?: string[] | null;
  /** All that did not work. */
  pitfalls?: string[] | null;
  /** `retired` takes it out of searches, `active` brings it back. */
  state?: "active" | "retired" | null;
}

/** A session to store under the id in the path; a `session_id` in the body is ignored. */
export interface UpdateWorkingMemory {
  /** The conversation, oldest first, all of it: it takes the place of what was stored. */
  messages?: MemoryMessage[];
  /** Facts that are to become long-term memories. */
  memories?: (MemoryRecord | ClientMemoryRecord)[];
  /** Any JSON object of the caller's own that belongs to the session. */
  data?: { [name: string]: string | number | boolean | unknown[] | { [name: string]: unknown } | null } | null;
  /** The summary of what came before the messages. */
  context?: string | null;
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** A count of tokens of the caller's own, which is given back as it is. */
  tokens?: number;
  /** The session's namespace, such as an application's name; null for none. */
  namespace?: string | null;
  /** The agent that talks in the session: prompts of the session show its memory blocks. Left out when there is none. */
  agent_id?: string | null;
  /** How long-term memories are made of the session's messages. */
  long_term_memory_strategy?: MemoryStrategyConfig;
  /** After how many seconds without a write the session ends; null keeps it until it is deleted, 0 or less ends it at once. */
  ttl_seconds?: number | null;
  /** When the session was last read or written. */
  last_accessed?: string;
  /** When the session was made, now when not given. */
  created_at?: string;
  /** When the session was last written. */
  updated_at?: string;
}

/** Filters by user. `exists: false` asks for what has no user. */
export interface UserId {
  /** The value must be this one. */
  eq?: string | null;
  /** The value must not be this one. */
  ne?: string | null;
  /** Another name of `ne`. */
  not_eq?: string | null;
  /** At least one of these values must be there. */
  any?: string[] | null;
  /** Another name of `any`. */
  in_?: string[] | null;
  /** None of these values may be there. */
  not_in?: string[] | null;
  /** All of these values must be there, which only fields with several values (topics, entities) can fulfil. */
  all?: string[] | null;
  /** Another name of `not_in`. */
  none?: string[] | null;
  /** The value must begin with this text; it cannot be combined with other operators. */
  startswith?: string | null;
  /** The name of the field that is filtered; it may be left out, and must be this one. */
  field?: "user_id";
  /** Whether there must be a user (true) or none (false). */
  exists?: boolean | null;
}

/** One problem: where (`loc`, from "body", "query" or "path" down to the field), what, and which kind. */
export interface ValidationError {
  /** Where the problem is: `body`, `query`, `path` or `header`, then the names and positions down to the field. */
  loc: (string | number)[];
  /** What is wrong and how to put it right. */
  msg: string;
  /** A stable word for programs that says which kind of problem it is. */
  type: string;
  /** Left out by this server, which repeats nothing that was sent. */
  input?: unknown;
  /** Values that belong to the message, such as a limit. */
  ctx?: { [name: string]: unknown };
}

/** Which session a prompt is made from, and how large it may be. Any model name is accepted. */
export interface WorkingMemoryRequest {
  /** The session's id. */
  session_id: string;
  /** The namespace that it is in; null for none. */
  namespace?: string | null;
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** The agent whose memory blocks the prompt shows; the session's own, if it has one, when not given. */
  agent_id?: string | null;
  /** The model that the prompt is for, whose context window bounds it; any name. */
  model_name?: string | null;
  /** That window in tokens; beats `model_name`. */
  context_window_max?: number | null;
  /** Accepted and not used: a prompt makes no memories. */
  long_term_memory_strategy?: MemoryStrategyConfig | null;
}

/** A stored session. This server never sends `new_session` and `unsaved`, which older programs may read. */
export interface WorkingMemoryResponse {
  /** The conversation, oldest first, all of it: it takes the place of what was stored. */
  messages?: MemoryMessage[];
  /** Facts that are to become long-term memories. */
  memories?: (MemoryRecord | ClientMemoryRecord)[];
  /** Any JSON object of the caller's own that belongs to the session. */
  data?: { [name: string]: string | number | boolean | unknown[] | { [name: string]: unknown } | null } | null;
  /** The summary of what came before the messages. */
  context?: string | null;
  /** The user whose it is; null for nobody's. */
  user_id?: string | null;
  /** A count of tokens of the caller's own, which is given back as it is. */
  tokens?: number;
  /** The session's namespace, such as an application's name; null for none. */
  namespace?: string | null;
  /** The agent that talks in the session: prompts of the session show its memory blocks. Left out when there is none. */
  agent_id?: string | null;
  /** How long-term memories are made of the session's messages. */
  long_term_memory_strategy?: MemoryStrategyConfig;
  /** After how many seconds without a write the session ends; null keeps it until it is deleted, 0 or less ends it at once. */
  ttl_seconds?: number | null;
  /** When the session was last read or written. */
  last_accessed?: string;
  /** When the session was made, now when not given. */
  created_at?: string;
  /** When the session was last written. */
  updated_at?: string;
  /** The session's id, without `/`. */
  session_id: string;
  /** Why some of its memories did not become long-term memories, by their ids; left out when there are none. */
  refused_memories?: { [name: string]: string } | null;
  /** How much of the context window its messages fill, from 0 to 100; null unless a model or a window was named. */
  context_percentage_total_used?: number | null;
  /** How near it is to being summarized, from 0 to 100; null unless a model or a window was named. */
  context_percentage_until_summarization?: number | null;
  /** What was done otherwise than asked, in words; null or left out when nothing was. */
  notices?: string[] | null;
}

/** Every operation: what it takes in its path, query and body, and what it answers. */
export interface Operations {
  /** The API keys of the caller's tenant, without their secrets; an operator sees those of all tenants. */
  "GET /v1/auth/tokens": {
    path: {};
    query: {};
    body: undefined;
    answer: TokenList;
  };
  /** Makes an API key; its secret is in this answer and nowhere else. An Idempotency-Key has no effect. */
  "POST /v1/auth/tokens": {
    path: {};
    query: {};
    body: CreateTokenRequest;
    answer: CreatedToken;
  };
  /** One API key, without its secret. */
  "GET /v1/auth/tokens/{token_id}": {
    path: {
      /** The key's id, or its hash, or the begin of that. */
      token_id: string;
    };
    query: {};
    body: undefined;
    answer: TokenInfo;
  };
  /** Revokes an API key: from the answer on no process accepts it. */
  "DELETE /v1/auth/tokens/{token_id}": {
    path: {
      /** The key's id, or its hash, or the begin of that. */
      token_id: string;
    };
    query: {};
    body: undefined;
    answer: AckResponse;
  };
  /** Gives an API key another secret, shown in this answer only; the former one counts for `grace_seconds` more. */
  "POST /v1/auth/tokens/{token_id}/rotate": {
    path: {
      /** The key's id, or its hash, or the begin of that. */
      token_id: string;
    };
    query: {};
    body: RotateTokenRequest;
    answer: CreatedToken;
  };
  /** Lists background work that is not done, the most urgent first, or (with state=dead) what was given up. */
  "GET /v1/operations": {
    path: {};
    query: {
      /** Only these; done ones are not listed. */
      state?: OperationState | null;
      /** Only this kind of work. */
      kind?: OperationKind | null;
      /** At most so many operations. */
      limit?: number;
      /** The `next_offset` of the page before. */
      offset?: number;
    };
    body: undefined;
    answer: OperationListResponse;
  };
  /** One piece of background work. */
  "GET /v1/operations/{operation_id}": {
    path: {
      /** The operation's id, as X-Operation-Id or the list gave it. */
      operation_id: string;
    };
    query: {};
    body: undefined;
    answer: OperationRecord;
  };
  /** Forgets an operation that was given up; what it worked on stays as it is. */
  "DELETE /v1/operations/{operation_id}": {
    path: {
      /** The operation's id, as X-Operation-Id or the list gave it. */
      operation_id: string;
    };
    query: {};
    body: undefined;
    answer: AckResponse;
  };
  /** Tries an operation again that was given up. */
  "POST /v1/operations/{operation_id}/replay": {
    path: {
      /** The operation's id, as X-Operation-Id or the list gave it. */
      operation_id: string;
    };
    query: {};
    body: undefined;
    answer: OperationRecord;
  };
  /** Works off what waits on a session now: promotion, summary, facts. With `wait`, answers `pending` when that takes longer. */
  "POST /v1/working-memory/{session_id}/flush": {
    path: {
      /** The session's id; without `/`. */
      session_id: string;
    };
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** Seconds to wait for background work; `true` waits up to 10, 0 does not wait. */
      wait?: number;
    };
    body: undefined;
    answer: AckResponse;
  };
  /** Searches by meaning, by words or by both; without a text, lists what the filters let through. */
  "POST /v1/long-term-memory/search": {
    path: {};
    query: {
      /** Let the model rewrite the query for the search. */
      optimize_query?: boolean;
    };
    body: SearchRequest;
    answer: MemoryRecordResultsResponse;
  };
  /** What a memory rests on, with the messages that still exist. */
  "GET /v1/long-term-memory/{memory_id}/evidence": {
    path: {
      /** The memory's id; it may contain `/`. */
      memory_id: string;
    };
    query: {};
    body: undefined;
    answer: MemoryEvidence;
  };
  /** All versions of a memory, the newest first, and the changes that it was part of. */
  "GET /v1/long-term-memory/{memory_id}/history": {
    path: {
      /** The memory's id; it may contain `/`. */
      memory_id: string;
    };
    query: {};
    body: undefined;
    answer: MemoryHistory;
  };
  /** A page of recorded changes, the newest first. */
  "GET /v1/changes": {
    path: {};
    query: {
      /** Only changes of this memory; the other filters do not count then. */
      memory_id?: string | null;
      /** Only changes of this kind. */
      kind?: ChangeKindEnum | null;
      /** Only changes in this state; `proposed` lists what waits. */
      state?: ChangeStateEnum | null;
      /** Only changes of this batch. */
      batch_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** At most so many changes. */
      limit?: number;
      /** The `next_offset` of the page before. */
      offset?: number;
    };
    body: undefined;
    answer: ChangeListResponse;
  };
  /** One change, with what was before and after. */
  "GET /v1/changes/{change_id}": {
    path: {
      /** The change's id, as the list of changes gives it. */
      change_id: string;
    };
    query: {};
    body: undefined;
    answer: Change;
  };
  /** Brings back what was before a change; the answer is the change that this is, which can be undone in turn. */
  "POST /v1/changes/{change_id}/undo": {
    path: {
      /** The change's id, as the list of changes gives it. */
      change_id: string;
    };
    query: {};
    body: undefined;
    answer: Change;
  };
  /** Carries a proposal out. */
  "POST /v1/changes/{change_id}/approve": {
    path: {
      /** The change's id, as the list of changes gives it. */
      change_id: string;
    };
    query: {};
    body: undefined;
    answer: Change;
  };
  /** Ends a proposal; nothing of it happens. */
  "POST /v1/changes/{change_id}/reject": {
    path: {
      /** The change's id, as the list of changes gives it. */
      change_id: string;
    };
    query: {};
    body: undefined;
    answer: Change;
  };
  /** Undoes all applied changes of a batch, the last one first. */
  "POST /v1/changes/batches/{batch_id}/undo": {
    path: {
      /** The `batch_id` of the changes. */
      batch_id: string;
    };
    query: {};
    body: undefined;
    answer: ChangeListResponse;
  };
  /** Stores memories: read by id and found by words at once, by meaning when embedded; `wait` waits for that, X-Searchable says so. */
  "POST /v1/long-term-memory/": {
    path: {};
    query: {
      /** Seconds to wait for background work; `true` waits up to 10, 0 does not wait. */
      wait?: number;
    };
    body: CreateMemoryRecordRequest;
    answer: AckResponse;
  };
  /** Deletes memories; `status` says how many there were. Unknown ids are no error. */
  "DELETE /v1/long-term-memory": {
    path: {};
    query: {
      /** The ids, each in a parameter of its own. */
      memory_ids?: string[];
    };
    body: undefined;
    answer: AckResponse;
  };
  /** Reads a memory: as it is, or as it was; 404 also when it was not true, or not known, at the time that is asked for. */
  "GET /v1/long-term-memory/{memory_id}": {
    path: {
      /** The memory's id; it may contain `/`. */
      memory_id: string;
    };
    query: {
      /** As it was true at this time, as far as known now. */
      as_of?: string | null;
      /** As this server knew it at this time. */
      known_at?: string | null;
      /** Its last version, also when it is no longer current. */
      history?: boolean;
    };
    body: undefined;
    answer: MemoryRecord;
  };
  /** Changes the fields that are given and answers the changed memory. */
  "PATCH /v1/long-term-memory/{memory_id}": {
    path: {
      /** The memory's id; it may contain `/`. */
      memory_id: string;
    };
    query: {};
    body: EditMemoryRecordRequest;
    answer: MemoryRecord;
  };
  /**
   * Deletes memories that are too old, were not read for too long, or are beyond a budget; pinned ones never.
   *
   * All memories that match are looked at (`scanned`). At most `limit` are deleted, the oldest first; call again for the rest.
   */
  "POST /v1/long-term-memory/forget": {
    path: {};
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The session whose memories are meant. */
      session_id?: string | null;
      /** How many may go in one call; more than 10,000 never do. */
      limit?: number;
      /** Only say what would go. */
      dry_run?: boolean;
    };
    body: ForgetRequest;
    answer: ForgetResponse;
  };
  /**
   * Merges memories that say the same. A worker does it; the answer comes when that is done, or with `X-Pending: true` while it goes
   * on:
   * after 20 seconds, or after 3 when no worker has begun by then.
   *
   * `X-Operation-Id` names the work.
   */
  "POST /v1/long-term-memory/compact": {
    path: {};
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
    };
    body: undefined;
    answer: AckResponse;
  };
  /** Lists memories that wait for a review, the newest first; `quarantine` says why. */
  "GET /v1/quarantine": {
    path: {};
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** At most so many memories. */
      limit?: number;
      /** The `next_offset` of the page before. */
      offset?: number;
    };
    body: undefined;
    answer: QuarantineListResponse;
  };
  /** Lets a memory be found and shown as it reads now. For administrators: who writes must not vouch for what is written. */
  "POST /v1/quarantine/{memory_id}/approve": {
    path: {
      /** The memory's id; it may contain `/`. */
      memory_id: string;
    };
    query: {};
    body: undefined;
    answer: MemoryRecord;
  };
  /** Deletes a memory that is in quarantine, for good. */
  "POST /v1/quarantine/{memory_id}/reject": {
    path: {
      /** The memory's id; it may contain `/`. */
      memory_id: string;
    };
    query: {};
    body: undefined;
    answer: AckResponse;
  };
  /** Lists the ids of the sessions; `total` counts all that match. */
  "GET /v1/working-memory/": {
    path: {};
    query: {
      /** At most so many sessions. */
      limit?: number;
      /** How many sessions to skip. */
      offset?: number;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** Whether the answer also says whose each session is. */
      identities?: boolean;
    };
    body: undefined;
    answer: SessionListResponse;
  };
  /** Appends messages to a session, which is made when it does not exist. A message whose id is there already is skipped. */
  "POST /v1/working-memory/{session_id}/messages": {
    path: {
      /** The session's id; without `/`. */
      session_id: string;
    };
    query: {
      /**
       * Wait until the messages are long-term memories (`promoted`), or found by meaning, too (`searchable`), for at most 10 s.
       * `true`, and a number of seconds (at most 20), wait for `searchable`. `reached` in the answer says how far they have come.
       */
      wait?: "promoted" | "searchable" | number | boolean;
    };
    body: AppendMessagesRequest;
    answer: AppendMessagesResponse;
  };
  /** Sets keys of a session's `data`; a key with null is removed, the others stay. */
  "PATCH /v1/working-memory/{session_id}/data": {
    path: {
      /** The session's id; without `/`. */
      session_id: string;
    };
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
    };
    body: UpdateDataRequest;
    answer: WorkingMemoryResponse;
  };
  /** Reads a session. With a model or a window, its oldest messages are left out until the rest fits. */
  "GET /v1/working-memory/{session_id}": {
    path: {
      /** The session's id; without `/`. */
      session_id: string;
    };
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The model whose context window counts; any name. */
      model_name?: string | null;
      /** The context window in tokens; beats `model_name`. */
      context_window_max?: number | null;
      /** Only the last N messages; 0 and less count as not given. */
      recent_messages_limit?: number | null;
    };
    body: undefined;
    answer: WorkingMemoryResponse;
  };
  /** Stores a session, in place of what was there. `user_id` and `namespace` of the query count when the body has none. */
  "PUT /v1/working-memory/{session_id}": {
    path: {
      /** The session's id; without `/`. */
      session_id: string;
    };
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The model whose context window counts; any name. */
      model_name?: string | null;
      /** The context window in tokens; beats `model_name`. */
      context_window_max?: number | null;
    };
    body: UpdateWorkingMemory;
    answer: WorkingMemoryResponse;
  };
  /** Deletes a session; deleting one that does not exist is no error. Long-term memories made of it stay unless asked for. */
  "DELETE /v1/working-memory/{session_id}": {
    path: {
      /** The session's id; without `/`. */
      session_id: string;
    };
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** Also delete the long-term memories that came from the session. */
      memories?: boolean;
      /** Seconds to wait for background work; `true` waits up to 10, 0 does not wait. */
      wait?: number;
    };
    body: undefined;
    answer: AckResponse;
  };
  /** The rules of exactly this namespace and user (both left out: those of everybody); empty when there are none. */
  "GET /v1/extraction-rules": {
    path: {};
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
    };
    body: undefined;
    answer: ExtractionRules;
  };
  /** Replaces the rules of a namespace, a user, a user in a namespace, or everybody. Narrower rules add to wider ones. */
  "PUT /v1/extraction-rules": {
    path: {};
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
    };
    body: ExtractionRules;
    answer: ExtractionRules;
  };
  /** Forgets the rules of a place; none there is no error. */
  "DELETE /v1/extraction-rules": {
    path: {};
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
    };
    body: undefined;
    answer: AckResponse;
  };
  /** The blocks of exactly this owner, or all that a prompt of these names shows. */
  "GET /v1/blocks": {
    path: {};
    query: {
      /** The agent whose data is meant. */
      agent_id?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** Those that a prompt of these names shows, instead of those of exactly this owner. */
      shown?: boolean;
    };
    body: undefined;
    answer: BlockListResponse;
  };
  /** Reads a block of exactly this owner. */
  "GET /v1/blocks/{label}": {
    path: {
      /** What the block is called; without `/`. */
      label: string;
    };
    query: {
      /** The agent whose data is meant. */
      agent_id?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: undefined;
    answer: Block;
  };
  /** Makes a block of exactly this owner, or changes what is given of it; the rest stays as it is. */
  "PUT /v1/blocks/{label}": {
    path: {
      /** What the block is called; without `/`. */
      label: string;
    };
    query: {
      /** The agent whose data is meant. */
      agent_id?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: PutBlockRequest;
    answer: BlockEdit;
  };
  /** Edits the text of a block in one step, and says what was done. A full block answers 409: its size, its limit and what could go. */
  "PATCH /v1/blocks/{label}": {
    path: {
      /** What the block is called; without `/`. */
      label: string;
    };
    query: {
      /** The agent whose data is meant. */
      agent_id?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: EditBlockRequest;
    answer: BlockEdit;
  };
  /** Deletes a block with its history, wherever it is attached; one that is not there is no error. */
  "DELETE /v1/blocks/{label}": {
    path: {
      /** What the block is called; without `/`. */
      label: string;
    };
    query: {
      /** The agent whose data is meant. */
      agent_id?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: undefined;
    answer: AckResponse;
  };
  /** The changes of a block, oldest first; applied one after the other they make its text. */
  "GET /v1/blocks/{label}/history": {
    path: {
      /** What the block is called; without `/`. */
      label: string;
    };
    query: {
      /** The agent whose data is meant. */
      agent_id?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: undefined;
    answer: BlockHistoryResponse;
  };
  /** Undoes the change that made a version, or the newest; the undo is a change, too, and can be undone. */
  "POST /v1/blocks/{label}/undo": {
    path: {
      /** What the block is called; without `/`. */
      label: string;
    };
    query: {
      /** The agent whose data is meant. */
      agent_id?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: UndoBlockRequest;
    answer: BlockEdit;
  };
  /** Shows a block in the prompts of another owner, too, such as a second agent. */
  "POST /v1/blocks/{label}/attach": {
    path: {
      /** What the block is called; without `/`. */
      label: string;
    };
    query: {
      /** The agent whose data is meant. */
      agent_id?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: BlockAttachRequest;
    answer: Block;
  };
  /** Shows an attached block in the prompts of another owner no longer. */
  "POST /v1/blocks/{label}/detach": {
    path: {
      /** What the block is called; without `/`. */
      label: string;
    };
    query: {
      /** The agent whose data is meant. */
      agent_id?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: BlockAttachRequest;
    answer: Block;
  };
  /** Stores a value; it is readable and found at once, by meaning when a worker has embedded it a moment later. */
  "PUT /v1/items": {
    path: {};
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: PutItem;
    answer: AckResponse;
  };
  /** Reads a value. */
  "GET /v1/items": {
    path: {};
    query: {
      /** The labels of the namespace path, in order: `path=users&path=ada`. */
      path: string[];
      /** The item's key within the path. */
      key: string;
      /** Whether the item stays for its time to live again. */
      refresh_ttl?: boolean;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: undefined;
    answer: Item;
  };
  /** Deletes a value; one that is not there is no error. */
  "DELETE /v1/items": {
    path: {};
    query: {
      /** The labels of the namespace path, in order: `path=users&path=ada`. */
      path: string[];
      /** The item's key within the path. */
      key: string;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: undefined;
    answer: AckResponse;
  };
  /** Finds values under a path, by a filter on their fields and by a query. */
  "POST /v1/items/search": {
    path: {};
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: SearchItems;
    answer: ItemSearchResults;
  };
  /** Lists the namespace paths that hold items. */
  "POST /v1/items/namespaces": {
    path: {};
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: ListItemPaths;
    answer: ItemPaths;
  };
  /** Carries out several operations. Reads see what was stored before the batch; its writes are made together, after them. */
  "POST /v1/items/batch": {
    path: {};
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: ItemBatch;
    answer: ItemBatchResults;
  };
  /** Keeps what to do in a situation; the server gives it an id. It is found by words at once, and by meaning a moment later. */
  "POST /v1/procedures": {
    path: {};
    query: {};
    body: CreateProcedureRequest;
    answer: Procedure;
  };
  /** Lists procedures, the newest first; what is named of user, agent and namespace must be theirs. */
  "GET /v1/procedures": {
    path: {};
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The agent whose data is meant. */
      agent_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** Only procedures of this state. */
      state?: "active" | "retired" | "quarantined" | null;
      /** At most so many. */
      limit?: number;
      /** How many to skip. */
      offset?: number;
    };
    body: undefined;
    answer: ProcedureListResponse;
  };
  /** Finds what to do in a situation, by meaning and words, ranked by fit and by how often it helped. */
  "POST /v1/procedures/search": {
    path: {};
    query: {};
    body: ProcedureSearchRequest;
    answer: ProcedureSearchResponse;
  };
  /** Reads a procedure. */
  "GET /v1/procedures/{procedure_id}": {
    path: {
      /** The procedure's id. */
      procedure_id: string;
    };
    query: {};
    body: undefined;
    answer: Procedure;
  };
  /** Changes what is named of a procedure, retires it or brings it back. One in quarantine is approved by administrators. */
  "PATCH /v1/procedures/{procedure_id}": {
    path: {
      /** The procedure's id. */
      procedure_id: string;
    };
    query: {};
    body: UpdateProcedureRequest;
    answer: Procedure;
  };
  /** Deletes a procedure with its history and feedback; one that is not there is no error. */
  "DELETE /v1/procedures/{procedure_id}": {
    path: {
      /** The procedure's id. */
      procedure_id: string;
    };
    query: {};
    body: undefined;
    answer: AckResponse;
  };
  /** Counts whether a procedure helped. With an `Idempotency-Key` a repeat is not counted again. */
  "POST /v1/procedures/{procedure_id}/feedback": {
    path: {
      /** The procedure's id. */
      procedure_id: string;
    };
    query: {};
    body: ProcedureFeedbackRequest;
    answer: Procedure;
  };
  /** The last changes of a procedure, by callers and by workers, and the last feedback on it. */
  "GET /v1/procedures/{procedure_id}/history": {
    path: {
      /** The procedure's id. */
      procedure_id: string;
    };
    query: {};
    body: undefined;
    answer: ProcedureHistory;
  };
  /** Brings back what a procedure was before its last change, whoever made it; a second undo undoes the first. */
  "POST /v1/procedures/{procedure_id}/undo": {
    path: {
      /** The procedure's id. */
      procedure_id: string;
    };
    query: {};
    body: undefined;
    answer: Procedure;
  };
  /** Marks how a session ended. A worker then learns from it; the same result again changes nothing, another one is learned anew. */
  "PATCH /v1/working-memory/{session_id}/result": {
    path: {
      /** The session's id; without `/`. */
      session_id: string;
    };
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: SessionResultRequest;
    answer: SessionResult;
  };
  /** How a session ended, and what was learned from it. */
  "GET /v1/session-results/{session_id}": {
    path: {
      /** The session's id; without `/`. */
      session_id: string;
    };
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: undefined;
    answer: SessionResult;
  };
  /** What is known of tools: arguments that worked, how often, how long, and what it cost. */
  "GET /v1/tools/memory": {
    path: {};
    query: {
      /** Only this tool. */
      tool?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The agent whose data is meant. */
      agent_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** At most so many. */
      limit?: number;
      /** How many to skip. */
      offset?: number;
    };
    body: undefined;
    answer: ToolMemoryListResponse;
  };
  /** Counts a call of a tool; calls in sessions that are marked with a result are counted without this. */
  "POST /v1/tools/memory": {
    path: {};
    query: {};
    body: ToolCallRequest;
    answer: ToolMemory;
  };
  /**
   * What is stable and what is current about exactly this user in exactly this namespace (left out: in none), and the values of
   * slots.
   *
   * What was said on three different days within fourteen is stable until nobody has said it for 180 days.
   */
  "GET /v1/profile": {
    path: {};
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** Also search the user's memories for this. */
      q?: string | null;
      /** At most so many entries of each kind. */
      limit?: number;
      /** The profile as it was at this time, with its zone; now when not given. */
      as_of?: string | null;
      /** The time zone of the days, such as `Europe/Berlin`; the user's when not given. */
      timezone?: string | null;
    };
    body: undefined;
    answer: Profile;
  };
  /** When memories came into a profile, became stable, fell back and went; the newest first. */
  "GET /v1/profile/moves": {
    path: {};
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** At most so many moves. */
      limit?: number;
    };
    body: undefined;
    answer: ProfileMoves;
  };
  /**
   * Makes a profile anew from the memories, in the background. `X-Operation-Id` names the work.
   *
   * A profile follows its memories by itself; this is for memories from before there were profiles, and for a new time zone.
   */
  "POST /v1/profile/rebuild": {
    path: {};
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: undefined;
    answer: AckResponse;
  };
  /** The topics and slots that profiles of a namespace show: its own, else the tenant's, else the default. */
  "GET /v1/profile/schema": {
    path: {};
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: undefined;
    answer: ProfileSchema;
  };
  /** Replaces the schema of a namespace, or (left out) of the tenant. Profiles show by it at once. */
  "PUT /v1/profile/schema": {
    path: {};
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: ProfileSchema;
    answer: ProfileSchema;
  };
  /** Forgets the schema of a namespace or of the tenant; none there is no error. */
  "DELETE /v1/profile/schema": {
    path: {};
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: undefined;
    answer: AckResponse;
  };
  /**
   * What happened to exactly this user in exactly this namespace (left out: in none), in the order of its days.
   *
   * An event is here that lasted into the days that are asked for, from `from` to `to`. Days are those of `timezone`, else the
   * user's.
   */
  "GET /v1/timeline": {
    path: {};
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The first day, such as 2024-03-01. */
      from?: string | null;
      /** The last day, included. */
      to?: string | null;
      /** Only what is about this topic. */
      topic?: string | null;
      /** Only what names this person, place or thing. */
      entity?: string | null;
      /** Group the events by `day`, `week` or `month`. */
      granularity?: "day" | "week" | "month" | null;
      /** At most so many events. */
      limit?: number;
      /** Leave out so many of the first. */
      offset?: number;
      /** The timeline as it was at this time, with its zone; now when not given. */
      as_of?: string | null;
      /** By what the server knew at this time, with its zone; now when not given. */
      known_at?: string | null;
      /** The time zone of the days, such as `Europe/Berlin`; the user's when not given. */
      timezone?: string | null;
    };
    body: undefined;
    answer: Timeline;
  };
  /**
   * Makes a timeline anew from the memories, in the background. `X-Operation-Id` names the work.
   *
   * A timeline follows its memories by itself; this is for memories from before there were timelines, and for a new time zone.
   */
  "POST /v1/timeline/rebuild": {
    path: {};
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: undefined;
    answer: AckResponse;
  };
  /** All views, the oldest first. */
  "GET /v1/summary-views": {
    path: {};
    query: {};
    body: undefined;
    answer: SummaryView[];
  };
  /** Makes a view; the server gives it an id. */
  "POST /v1/summary-views": {
    path: {};
    query: {};
    body: CreateSummaryViewRequest;
    answer: SummaryView;
  };
  /** Reads a view. */
  "GET /v1/summary-views/{view_id}": {
    path: {
      /** The view's id, as it was given when the view was made. */
      view_id: string;
    };
    query: {};
    body: undefined;
    answer: SummaryView;
  };
  /** Deletes a view and its partitions; one that is not there is no error. */
  "DELETE /v1/summary-views/{view_id}": {
    path: {
      /** The view's id, as it was given when the view was made. */
      view_id: string;
    };
    query: {};
    body: undefined;
    answer: AckResponse;
  };
  /** Computes one partition now and stores it. Without a language model, or when it fails, `degraded` says so. */
  "POST /v1/summary-views/{view_id}/partitions/run": {
    path: {
      /** The view's id, as it was given when the view was made. */
      view_id: string;
    };
    query: {};
    body: RunSummaryViewPartitionRequest;
    answer: SummaryViewPartitionResult;
  };
  /** The stored partitions of a view; computes nothing. */
  "GET /v1/summary-views/{view_id}/partitions": {
    path: {
      /** The view's id, as it was given when the view was made. */
      view_id: string;
    };
    query: {
      /** The user whose data is meant. */
      user_id?: string | null;
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** Only groups of this session. */
      session_id?: string | null;
      /** Only groups of this memory type. */
      memory_type?: string | null;
    };
    body: undefined;
    answer: SummaryViewPartitionResult[];
  };
  /** Computes all partitions in the background; the task tells how far that is. The same `task_id` again starts over. */
  "POST /v1/summary-views/{view_id}/run": {
    path: {
      /** The view's id, as it was given when the view was made. */
      view_id: string;
    };
    query: {};
    body: RunSummaryViewRequest;
    answer: Task;
  };
  /** Where a task stands; it is kept for seven days. */
  "GET /v1/tasks/{task_id}": {
    path: {
      /** The task's id; it may contain `/`. */
      task_id: string;
    };
    query: {};
    body: undefined;
    answer: Task;
  };
  /** Messages ready for a chat model: the session's summary and messages, the memories that fit the query, and the query. */
  "POST /v1/memory/prompt": {
    path: {};
    query: {
      /** Let the model rewrite the query for the search. */
      optimize_query?: boolean;
    };
    body: MemoryPromptRequest;
    answer: MemoryPromptResponse;
  };
  /** Says why a search, or a prompt, did not return a memory: which filter, rank, threshold or budget; or where it stands. */
  "POST /v1/long-term-memory/explain": {
    path: {};
    query: {};
    body: ExplainRequest;
    answer: Explanation;
  };
  /**
   * Deletes for good what comes from a source, and what was made of nothing else; what rests on other evidence, too, loses this.
   *
   * A worker does it; without one, or when it takes longer than `wait`, the answer is `pending`. The operation that X-Operation-Id
   * names
   * keeps the counts as its receipt (`stages`), for 7 days.
   */
  "POST /v1/long-term-memory/purge": {
    path: {};
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The user whose data is meant. */
      user_id?: string | null;
      /** Only say what would go. */
      dry_run?: boolean;
      /** Seconds to wait for background work; `true` waits up to 10, 0 does not wait. */
      wait?: number;
    };
    body: PurgeRequest;
    answer: PurgeResponse;
  };
  /**
   * Deletes everything of an agent, in one namespace or in all; X-Operation-Id names the work.
   *
   * That is its sessions with what was said there, and the memories, blocks and procedures that bear its name, whoever's they are
   * besides.
   */
  "DELETE /v1/agents/{agent_id}": {
    path: {
      /** The agent's id. */
      agent_id: string;
    };
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** Seconds to wait for background work; `true` waits up to 10, 0 does not wait. */
      wait?: number;
    };
    body: undefined;
    answer: AckResponse;
  };
  /** Deletes all sessions and memories of a user, in one namespace or in all; X-Operation-Id names the work. */
  "DELETE /v1/users/{user_id}": {
    path: {
      /** The user's id. */
      user_id: string;
    };
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** Seconds to wait for background work; `true` waits up to 10, 0 does not wait. */
      wait?: number;
    };
    body: undefined;
    answer: AckResponse;
  };
  /**
   * Forgets what is named, in words or by ids: facts in all versions, the messages they rest on, and the sentence in live sessions.
   *
   * A message goes whole only when nothing else is left in it. All of it goes at once, with a receipt by which it comes back until
   * `undo_until`. When several different things could be meant, nothing goes: the answer is `ambiguous` and lists them, and `ids`
   * say which.
   */
  "POST /v1/memory/forget": {
    path: {};
    query: {};
    body: ForgetMemoryRequest;
    answer: ForgetMemoryResponse;
  };
  /** Brings back what was forgotten, where nothing newer stands in its place. A second time changes nothing. */
  "POST /v1/memory/forget/{receipt_id}/undo": {
    path: {
      /** The receipt of what was forgotten. */
      receipt_id: string;
    };
    query: {};
    body: undefined;
    answer: ForgetUndoResponse;
  };
  /**
   * Everything of a user, in one namespace or in all, as lines of JSON: what was acknowledged before is in it, others' data never.
   *
   * It is written while it is read. Its last line, of the kind `end`, counts those before it: without it the export is not whole.
   * X-Operation-Id names the receipt.
   */
  "POST /v1/users/{user_id}/export": {
    path: {
      /** The user's id. */
      user_id: string;
    };
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: undefined;
    answer: string;
  };
  /**
   * Brings in lines of an export as this user's, with ids, dates, versions and vectors; what is here stays as it is.
   *
   * Of another user's export, or with another namespace, it makes a copy: memories and changes get ids of their own, each time the
   * same.
   *
   * A large file is sent in parts, each with the header as its first line. Lines that cannot be taken are reported by number.
   */
  "POST /v1/users/{user_id}/import": {
    path: {
      /** The user's id. */
      user_id: string;
    };
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The number of the line after the header, in a later part. */
      first_line?: number;
      /** A name for where it comes from, by which it can be purged. */
      import_source?: string;
    };
    body: string;
    answer: ImportReport;
  };
  /**
   * Everything of an agent, in one namespace or in all, as lines of JSON like those of a user's export.
   *
   * That is its sessions with what was said there, and the memories, blocks and procedures that bear its name, whoever's they are
   * besides.
   */
  "POST /v1/agents/{agent_id}/export": {
    path: {
      /** The agent's id. */
      agent_id: string;
    };
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
    };
    body: undefined;
    answer: string;
  };
  /**
   * Brings in lines of an agent's export as this agent's; what was a user's stays that user's, and what is here stays as it is.
   *
   * Under another name, or with another namespace, it makes a copy, as the import of a user does. Sessions keep their ids: one that
   * is
   * here stays the agent's whose it is.
   */
  "POST /v1/agents/{agent_id}/import": {
    path: {
      /** The agent's id. */
      agent_id: string;
    };
    query: {
      /** The namespace whose data is meant. */
      namespace?: string | null;
      /** The number of the line after the header, in a later part. */
      first_line?: number;
      /** A name for where it comes from, by which it can be purged. */
      import_source?: string;
    };
    body: string;
    answer: ImportReport;
  };
  /** The process answers. Checks nothing else and needs no authentication. */
  "GET /v1/health": {
    path: {};
    query: {};
    body: undefined;
    answer: HealthCheckResponse;
  };
  /** Whether requests can be served: 200 or 503, with the state of every part for those whom the server knows. */
  "GET /v1/ready": {
    path: {};
    query: {};
    body: undefined;
    answer: {
      /** Whether requests can be served: always true with status 200. */
      ready: boolean;
      /** The state of each part, such as `redis`, `models` and `work` that waits; empty for callers that the server does not know. */
      checks: { [name: string]: unknown };
    };
  };
  /** All metrics for Prometheus. */
  "GET /metrics": {
    path: {};
    query: {};
    body: undefined;
    answer: string;
  };
}
