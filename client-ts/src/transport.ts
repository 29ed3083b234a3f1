/** Sends requests over fetch, and repeats what is safe to repeat. */

import {
  MemoryClientError,
  MemoryProtocolError,
  MemoryRequestUnderWayError,
  MemoryServerError,
  MemoryTimeoutError,
  MemoryUnavailableError,
  MemoryValidationError,
  errorOfResponse,
} from "./errors.ts";
import type { Operations } from "./types.ts";

export const VERSION = "0.1.0";

export type OperationName = keyof Operations;
export type Body<Name extends OperationName> = Operations[Name]["body"];
export type Answer<Name extends OperationName> = Operations[Name]["answer"];

/** What every call takes beside the parameters of its operation. */
export interface CallOptions {
  /** Ends the call: it is rejected with the signal's reason. */
  signal?: AbortSignal;
  /** Milliseconds for each attempt; the client's own when not given. What `wait` asks for is added. */
  timeout?: number;
  /** A key of your own for a POST: the server carries out one request under it and answers it again. Where it counts, one is made otherwise. */
  idempotencyKey?: string;
  /** The version that what is changed must have. */
  ifMatch?: number;
  /** The media type of a file; the ending of its name counts when not given. */
  mediaType?: string;
}

/** The parameters of an operation's query, as the server names them, and those of the call. */
export type Options<Name extends OperationName> = Operations[Name]["query"] & CallOptions;

/** How a client reaches its server, and what it fills in when a call does not say. */
export interface MemoryClientConfig {
  /** The server's address, such as `http://127.0.0.1:8000`. */
  baseUrl: string;
  /** Goes out as `Authorization: Bearer`. */
  bearerToken?: string;
  /** Goes out as `X-API-Key`. */
  apiKey?: string;
  /** Limits every call to this user's data, also calls that take only an id. Goes out as `X-Acting-User`. */
  actingUser?: string;
  /** The namespace of calls that name none; `null` in a call means none. */
  namespace?: string;
  /** Milliseconds for each attempt: 30,000 when not given. */
  timeout?: number;
  /** How often a request that is safe to repeat is repeated: 2 when not given. */
  maxRetries?: number;
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

const FIRST_WAIT_MS = 100;
const MAX_WAIT_MS = 10_000;
/** What `wait: true` and stages mean to the server. */
const WAIT_MS = 10_000;
const NOT_RECEIVED = 408;
const RETRIED = new Set([429, 502, 503, 504]);
/** What fetch of node, Deno and Bun says when no connection came about; browsers do not tell. */
const NEVER_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "UND_ERR_CONNECT_TIMEOUT", "ConnectionRefused"]);

/** What would count twice if it were done twice; the server knows a repeat by its key. */
const UNDER_A_KEY = new Set<OperationName>([
  "POST /v1/long-term-memory/",
  "POST /v1/long-term-memory/forget",
  "POST /v1/working-memory/{session_id}/flush",
  "POST /v1/blocks/{label}/undo",
  "POST /v1/blocks/{label}/attach",
  "POST /v1/blocks/{label}/detach",
  "POST /v1/procedures",
  "POST /v1/procedures/{procedure_id}/feedback",
  "POST /v1/procedures/{procedure_id}/undo",
]);
/** Operations whose body is a file, sent as it is. */
const SENT_AS_IS = new Set<OperationName>(["POST /v1/files"]);
/** What would count twice even under a key: the server keeps no receipt under one, and heeds none of a PATCH. */
const SENT_ONCE = new Set<OperationName>(["PATCH /v1/blocks/{label}", "POST /v1/memory/forget"]);

export class Transport {
  readonly namespace: string | undefined;
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #timeout: number;
  readonly #maxRetries: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(config: MemoryClientConfig) {
    if (!/^https?:\/\//i.test(config.baseUrl) || !URL.canParse(config.baseUrl)) {
      throw new MemoryProtocolError(`baseUrl: must begin with http:// or https://, got ${JSON.stringify(config.baseUrl)}`);
    }
    this.#base = config.baseUrl.replace(/\/$/, "");
    this.namespace = config.namespace;
    this.#timeout = config.timeout ?? 30_000;
    this.#maxRetries = config.maxRetries ?? 2;
    // Called as a function of nobody's: that of browsers refuses to be a method.
    this.#fetch = (input, init) => (config.fetch ?? globalThis.fetch)(input, init);
    this.#headers = { Accept: "application/json", "X-Client-Version": VERSION, "X-Agent-Memory-Types": "procedural" };
    if (config.apiKey !== undefined) this.#headers["X-API-Key"] = printable("apiKey", config.apiKey);
    if (config.bearerToken !== undefined) this.#headers["Authorization"] = `Bearer ${printable("bearerToken", config.bearerToken)}`;
    if (config.actingUser !== undefined) this.#headers["X-Acting-User"] = encodeURIComponent(config.actingUser);
  }

  /** The answer to an operation, after as many attempts as are safe. Rejects with a MemoryClientError, or with the reason of `signal`. */
  async request<Name extends OperationName>(
    name: Name,
    path: Operations[Name]["path"],
    options: Options<Name>,
    body?: Body<Name>,
  ): Promise<Answer<Name>> {
    const { signal, timeout, idempotencyKey, ifMatch, mediaType, ...query } = options as CallOptions & Record<string, unknown>;
    const [method = "", template = ""] = name.split(" ");
    const place = filled(template, path as Record<string, string>);
    const headers: Record<string, string> = { ...this.#headers };
    if (ifMatch !== undefined) headers["If-Match"] = `"${ifMatch}"`;
    if (idempotencyKey !== undefined && method !== "POST" && SENT_ONCE.has(name))
      throw new MemoryValidationError("idempotencyKey: the server ignores it here: pass ifMatch, so that a repeat changes nothing");
    const key = idempotencyKey ?? (UNDER_A_KEY.has(name) ? newId() : undefined);
    if (key !== undefined && method === "POST") headers["Idempotency-Key"] = printable("idempotencyKey", key);
    const isFile = SENT_AS_IS.has(name);
    if (body !== undefined) headers["Content-Type"] = isFile ? (mediaType ?? "application/octet-stream") : "application/json";
    const sent = body === undefined ? undefined : isFile ? (body as BodyInit) : jsonOf(body);
    const init: RequestInit = { method, headers, redirect: "manual", body: sent };
    const url = this.#base + place + queryOf(query);
    const attempt = { url, init, place: `${method} ${place}`, signal, timeout: (timeout ?? this.#timeout) + waitMs(query["wait"]) };
    for (let failed = 1; ; failed += 1) {
      const outcome = await this.#attempt(attempt);
      if ("answer" in outcome) return outcome.answer as Answer<Name>;
      const wait =
        isRepeatable(outcome, !SENT_ONCE.has(name)) && failed <= this.#maxRetries ? waitBefore(failed, outcome.error) : undefined;
      if (wait === undefined) throw outcome.error;
      await sleep(wait, signal);
    }
  }

  async #attempt({ url, init, place, signal, timeout }: Attempt): Promise<Outcome> {
    signal?.throwIfAborted();
    const timer = AbortSignal.timeout(timeout);
    let response: Response;
    let text: string;
    try {
      response = await this.#fetch(url, { ...init, signal: signal === undefined ? timer : AbortSignal.any([timer, signal]) });
      text = await response.text();
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      if (timer.aborted) return { error: new MemoryTimeoutError(`the memory server did not answer within ${timeout} ms`, { cause }) };
      const reason = causeOf(cause);
      const error = new MemoryUnavailableError(`the memory server cannot be reached (${reason})`, { cause });
      return { error, neverSent: NEVER_SENT.has(reason), brokenOff: true };
    }
    if (!response.ok) return { error: errorOfResponse(place, response, text) };
    if (!response.headers.get("Content-Type")?.includes("json")) return { answer: text };
    try {
      return { answer: JSON.parse(text) };
    } catch (cause) {
      return { error: new MemoryProtocolError(`${place} did not answer with JSON: is baseUrl right?`, { cause }) };
    }
  }
}

interface Attempt {
  url: string;
  init: RequestInit;
  place: string;
  signal: AbortSignal | undefined;
  timeout: number;
}

interface Failure {
  error: MemoryClientError;
  neverSent?: boolean;
  brokenOff?: boolean;
}

type Outcome = { answer: unknown } | Failure;

/** Not after a timeout of the answer: whoever waited once that long decides again. */
function isRepeatable({ error, neverSent, brokenOff }: Failure, idempotent: boolean): boolean {
  if (neverSent) return true;
  if (!(error instanceof MemoryServerError)) return false;
  if (error.status === NOT_RECEIVED) return true;
  return idempotent && (brokenOff === true || error instanceof MemoryRequestUnderWayError || RETRIED.has(error.status ?? 0));
}

/**
 * Milliseconds to wait before repetition `attempt` (from 1), or undefined when the server asks for more than we wait.
 *
 * A first request that is under way mostly ends in a moment; its `Retry-After` is for the case that its process died.
 */
function waitBefore(attempt: number, error: MemoryClientError): number | undefined {
  const asksToWait = error instanceof MemoryServerError && !(error instanceof MemoryRequestUnderWayError);
  const requestedWait = asksToWait ? (error.retryAfter ?? 0) * 1000 : 0;
  if (requestedWait > MAX_WAIT_MS) return undefined;
  return Math.max(requestedWait, Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2));
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** The path of an operation. URLs fold `.` and `..`, however they are written, into another path: these cannot be sent. */
function filled(template: string, values: Record<string, string>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (typeof value !== "string" || value === "") throw new MemoryValidationError(`${name}: must not be empty`);
    if (value === "." || value === "..") throw new MemoryValidationError(`${name}: must not be '.' or '..'`);
    return encoded(name, value);
  });
}

/** The query of a URL: parameters that are neither undefined nor null; lists are repeated. */
function queryOf(query: Record<string, unknown>): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter((item) => item !== undefined && item !== null)
      .map((item) => `${name}=${encoded(name, String(item))}`),
  );
  return pairs.length > 0 ? `?${pairs.join("&")}` : "";
}

function encoded(name: string, value: string): string {
  try {
    return encodeURIComponent(value);
  } catch (cause) {
    throw new MemoryValidationError(`${name}: must not have lone surrogates`, { cause });
  }
}

function jsonOf(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw new MemoryValidationError(`the request cannot be sent as JSON: ${String(cause)}`, { cause });
  }
}

function printable(name: string, value: string): string {
  if (!/^[\x21-\x7e]{1,4096}$/.test(value)) throw new MemoryValidationError(`${name}: must be printable ASCII and not empty`);
  return value;
}

function causeOf(error: unknown): string {
  const { cause, code } = error as { cause?: { code?: unknown; message?: unknown }; code?: unknown };
  return String(cause?.code ?? code ?? cause?.message ?? error);
}

function waitMs(wait: unknown): number {
  if (wait === true || wait === "promoted" || wait === "searchable") return WAIT_MS;
  return Number(wait) > 0 ? Number(wait) * 1000 : 0;
}

const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** A new ULID. */
export function newId(): string {
  let time = Date.now();
  let id = "";
  for (let place = 0; place < 10; place += 1) {
    id = DIGITS[time % 32] + id;
    time = Math.floor(time / 32);
  }
  for (const byte of crypto.getRandomValues(new Uint8Array(16))) id += DIGITS[byte % 32];
  return id;
}
