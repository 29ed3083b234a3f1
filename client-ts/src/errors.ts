/**
 * Every error of the client, and how a server's refusal becomes one of them.
 *
 * MemoryClientError
 * ├── MemoryValidationError                     refused here, before anything was sent
 * ├── MemoryNotFoundError                       404
 * ├── MemoryProtocolError                       the server's address cannot be used, or what came back cannot be read
 * └── MemoryServerError                         every other refusal: status, code, problems, retryAfter
 *     ├── MemoryAuthError                       401, 403
 *     ├── MemoryConflictError                   409
 *     │   ├── MemoryPreconditionFailedError     412: what was to be changed has another version
 *     │   └── MemoryRequestUnderWayError        409: the first request of an idempotency key has not ended
 *     └── MemoryUnavailableError                502, 503, 504, or no connection (no status): try again later
 *         ├── MemoryRateLimitError              429
 *         └── MemoryTimeoutError                no answer in time: the request may have been carried out
 */

const MAX_MESSAGE_CHARS = 500;

/** Root of all errors of this client. */
export class MemoryClientError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The input is wrong; nothing was sent. */
export class MemoryValidationError extends MemoryClientError {}

/** The server's address cannot be used, or its answer is not one of this API. */
export class MemoryProtocolError extends MemoryClientError {}

/** No such session, memory, block or procedure. */
export class MemoryNotFoundError extends MemoryClientError {
  readonly status = 404;
}

/** One field that the server refused. */
export interface Problem {
  /** The field's path in the body or among the parameters, such as `messages.0.content`. */
  field: string;
  /** What is wrong with it. */
  message: string;
  /** The server's stable word for that. */
  type: string;
}

/** What is known of a refusal. */
export interface Refusal {
  status?: number;
  code?: string;
  retryAfter?: number;
  problems?: Problem[];
  cause?: unknown;
}

/** The server refused or failed. */
export class MemoryServerError extends MemoryClientError {
  /** The HTTP status; undefined when there was no answer. */
  readonly status: number | undefined;
  /** The server's stable word for the reason, if it gave one. */
  readonly code: string | undefined;
  /** How many seconds the server asks to wait. */
  readonly retryAfter: number | undefined;
  /** The fields that a 422 is about. */
  readonly problems: readonly Problem[];

  constructor(message: string, refusal: Refusal = {}) {
    super(message, refusal.cause === undefined ? undefined : { cause: refusal.cause });
    this.status = refusal.status;
    this.code = refusal.code;
    this.retryAfter = refusal.retryAfter;
    this.problems = refusal.problems ?? [];
  }
}

/** The credentials are missing, wrong, or do not allow this. */
export class MemoryAuthError extends MemoryServerError {}

/** The request conflicts with stored data or with work in progress. */
export class MemoryConflictError extends MemoryServerError {}

/** What was to be changed is not at the version that the request named. */
export class MemoryPreconditionFailedError extends MemoryConflictError {}

/** The first request under this idempotency key is being carried out: after `retryAfter` seconds ask again. */
export class MemoryRequestUnderWayError extends MemoryConflictError {}

/** The server cannot be reached or is busy. */
export class MemoryUnavailableError extends MemoryServerError {}

/** A limit of the caller's is reached; `retryAfter` is how many seconds the server asks to wait. */
export class MemoryRateLimitError extends MemoryUnavailableError {}

/** No answer came in time; the request may have been carried out all the same. */
export class MemoryTimeoutError extends MemoryUnavailableError {}

const BY_STATUS: Record<number, typeof MemoryServerError> = {
  401: MemoryAuthError,
  403: MemoryAuthError,
  409: MemoryConflictError,
  412: MemoryPreconditionFailedError,
  429: MemoryRateLimitError,
  502: MemoryUnavailableError,
  503: MemoryUnavailableError,
  504: MemoryUnavailableError,
};

/** The error that an answer outside 2xx means; `place` is method and path, `text` the body. */
export function errorOfResponse(place: string, response: Response, text: string): MemoryClientError {
  const body = jsonObject(text);
  const problems = Array.isArray(body["detail"]) ? body["detail"].flatMap(problemOf) : [];
  const message = (messageOf(body, problems) || `${place} answered ${response.status}${text ? `: ${text.trim()}` : ""}`).slice(
    0,
    MAX_MESSAGE_CHARS,
  );
  const { status } = response;
  if (status === 404) return new MemoryNotFoundError(message);
  if (status < 400) return new MemoryProtocolError(`${place} answered ${status || "with a redirection"}: is baseUrl right?`);
  const code = typeof body["code"] === "string" ? body["code"] : undefined;
  const kind = code === "request_under_way" ? MemoryRequestUnderWayError : (BY_STATUS[status] ?? MemoryServerError);
  return new kind(message, { status, code, problems, retryAfter: retryAfterOf(response.headers) });
}

function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get("Retry-After")?.trim();
  if (!value) return undefined;
  if (/^[0-9]{1,9}$/.test(value)) return Number(value);
  const moment = Date.parse(value);
  return Number.isNaN(moment) ? undefined : Math.max(0, (moment - Date.now()) / 1000);
}

function jsonObject(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function messageOf(body: Record<string, unknown>, problems: Problem[]): string {
  const detail = body["detail"] ?? body["message"];
  if (typeof detail === "string") return detail;
  return problems.map(({ field, message }) => (!field || message.startsWith(field) ? message : `${field}: ${message}`)).join("; ");
}

function problemOf(entry: unknown): Problem[] {
  if (typeof entry !== "object" || entry === null) return [];
  const { loc, msg, type } = entry as Record<string, unknown>;
  const parts = Array.isArray(loc) ? loc.map(String) : [];
  const field = ["body", "query", "path", "header"].includes(parts[0] ?? "") ? parts.slice(1) : parts;
  return [{ field: field.join("."), message: String(msg ?? "is not accepted"), type: String(type ?? "") }];
}
