/** Sends requests with fetch, and retries them if that is safe. */

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

/** The options of every call. */
export interface CallOptions {
  /** Cancels the call, which rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Milliseconds for each attempt (default: the client's timeout). The client adds the time of `wait`. */
  timeout?: number;
  /** The idempotency key of a POST. The server carries out one request with a key, and repeats its answer. The client adds a key where needed. */
  idempotencyKey?: string;
  /** Change only this version. Otherwise the call rejects with MemoryPreconditionFailedError. */
  ifMatch?: number;
  /** The media type of a file (default: by the extension of its name). */
  mediaType?: string;
}

/** The query parameters of an operation, with the server's names, and the options of the call. */
export type Options<Name extends OperationName> = Operations[Name]["query"] & CallOptions;

/** The server's address, credentials, and defaults of calls. */
export interface MemoryClientConfig {
  /** The server's address, such as `http://127.0.0.1:8000`. */
  baseUrl: string;
  /** Sent as `Authorization: Bearer`. */
  bearerToken?: string;
  /** Sent as `X-API-Key`. */
  apiKey?: string;
  /** Limits every call to this user's data, even calls that take only an id. Sent as `X-Acting-User`. */
  actingUser?: string;
  /** The default namespace of calls. Pass `null` in a call for no namespace. */
  namespace?: string;
  /** Milliseconds for each attempt (default: 30,000). */
  timeout?: number;
  /** The maximum number of retries of a request that is safe to retry (default: 2). */
  maxRetries?: number;
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

const FIRST_WAIT_MS = 100;
const MAX_WAIT_MS = 10_000;
/** The time that the server waits for `wait: true` and for stages. */
const WAIT_MS = 10_000;
const NOT_RECEIVED = 408;
const RETRIED = new Set([429, 502, 503, 504]);
/** Error codes of node, Deno and Bun if there was no connection. Browsers do not report the reason. */
const NEVER_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "UND_ERR_CONNECT_TIMEOUT", "ConnectionRefused"]);

/** Operations that need an idempotency key, because a second request would change data again. */
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
/** Operations whose body is the content of a file. */
const SENT_AS_IS = new Set<OperationName>(["POST /v1/files"]);
/** Operations that the client repeats only if they did not reach the server. A second request would change data again, even with a key. */
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
    // Call fetch as a plain function, because browsers refuse it as a method of another object.
    this.#fetch = (input, init) => (config.fetch ?? globalThis.fetch)(input, init);
    this.#headers = { Accept: "application/json", "X-Client-Version": VERSION, "X-Agent-Memory-Types": "procedural" };
    if (config.apiKey !== undefined) this.#headers["X-API-Key"] = printable("apiKey", config.apiKey);
    if (config.bearerToken !== undefined) this.#headers["Authorization"] = `Bearer ${printable("bearerToken", config.bearerToken)}`;
    if (config.actingUser !== undefined) this.#headers["X-Acting-User"] = encodeURIComponent(config.actingUser);
  }

  /** Sends a request, with retries if they are safe, and returns its answer. Rejects with a MemoryClientError, or with the reason of `signal`. */
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
      throw new MemoryValidationError(
        "idempotencyKey: this operation ignores it. Pass ifMatch, so that a repeated request changes nothing",
      );
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

/** True if a retry is safe. False after a timeout: a retry would double the caller's wait. */
function isRepeatable({ error, neverSent, brokenOff }: Failure, idempotent: boolean): boolean {
  if (neverSent) return true;
  if (!(error instanceof MemoryServerError)) return false;
  if (error.status === NOT_RECEIVED) return true;
  return idempotent && (brokenOff === true || error instanceof MemoryRequestUnderWayError || RETRIED.has(error.status ?? 0));
}

/**
 * Returns the milliseconds to wait before retry `attempt` (from 1), or undefined if the server asks for more than the client waits.
 *
 * Ignores the `Retry-After` of a first request that is still running. It applies if the server's process died; usually the request ends soon.
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

/** Fills in the path of an operation. Refuses `.` and `..`, because URLs resolve them, even encoded, to another path. */
function filled(template: string, values: Record<string, string>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (typeof value !== "string" || value === "") throw new MemoryValidationError(`${name}: must not be empty`);
    if (value === "." || value === "..") throw new MemoryValidationError(`${name}: must not be '.' or '..'`);
    return encoded(name, value);
  });
}

/** Returns the query of a URL. Omits undefined and null, and repeats the parameter for each value of a list. */
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

/** Returns a new ULID. */
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
