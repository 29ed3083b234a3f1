/**
 * All errors of the client, and their mapping from the server's error answers.
 *
 * MemoryClientError
 * ├── MemoryValidationError                     invalid input: the client sent no request
 * ├── MemoryNotFoundError                       404
 * ├── MemoryProtocolError                       the server's address is invalid, or its answer is not valid
 * └── MemoryServerError                         every other error answer: status, code, problems, retryAfter
 *     ├── MemoryAuthError                       401, 403
 *     ├── MemoryConflictError                   409
 *     │   ├── MemoryPreconditionFailedError     412: the stored version is not the requested one
 *     │   └── MemoryRequestUnderWayError        409: the first request with this idempotency key is still running
 *     └── MemoryUnavailableError                502, 503, 504, or no connection (no status): try again later
 *         ├── MemoryRateLimitError              429
 *         └── MemoryTimeoutError                no answer in time: the server may have carried out the request
 */

const MAX_MESSAGE_CHARS = 500;

/** The base class of all errors of this client. */
export class MemoryClientError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The input is invalid. The client sent no request. */
export class MemoryValidationError extends MemoryClientError {}

/** The server's address is invalid, or its answer does not belong to this API. */
export class MemoryProtocolError extends MemoryClientError {}

/** The session, memory, block or procedure does not exist. */
export class MemoryNotFoundError extends MemoryClientError {
  readonly status = 404;
}

/** A field that the server refused. */
export interface Problem {
  /** The field's path in the body or the parameters, such as `messages.0.content`. */
  field: string;
  /** The reason, for people. */
  message: string;
  /** The server's stable code for the reason. */
  type: string;
}

/** The details of an error answer. */
export interface Refusal {
  status?: number;
  code?: string;
  retryAfter?: number;
  problems?: Problem[];
  cause?: unknown;
}

/** The server refused the request, or failed. */
export class MemoryServerError extends MemoryClientError {
  /** The HTTP status, or undefined if there was no answer. */
  readonly status: number | undefined;
  /** The server's stable code for the reason, if the answer has one. */
  readonly code: string | undefined;
  /** The seconds to wait before a retry, if the server names them. */
  readonly retryAfter: number | undefined;
  /** The invalid fields of a 422. */
  readonly problems: readonly Problem[];

  constructor(message: string, refusal: Refusal = {}) {
    super(message, refusal.cause === undefined ? undefined : { cause: refusal.cause });
    this.status = refusal.status;
    this.code = refusal.code;
    this.retryAfter = refusal.retryAfter;
    this.problems = refusal.problems ?? [];
  }
}

/** The credentials are missing or invalid, or do not allow the request. */
export class MemoryAuthError extends MemoryServerError {}

/** The request conflicts with stored data or with running work. */
export class MemoryConflictError extends MemoryServerError {}

/** The stored version is not the one that the request named. */
export class MemoryPreconditionFailedError extends MemoryConflictError {}

/** The first request with this idempotency key is still running. Retry after `retryAfter` seconds. */
export class MemoryRequestUnderWayError extends MemoryConflictError {}

/** The server is unreachable or busy. */
export class MemoryUnavailableError extends MemoryServerError {}

/** The caller reached a rate limit. Retry after `retryAfter` seconds. */
export class MemoryRateLimitError extends MemoryUnavailableError {}

/** The server did not answer in time. It may still have carried out the request. */
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

/** Returns the error for an answer outside 2xx. `place` is the method and path, `text` the body. */
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
