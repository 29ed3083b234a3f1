export { MemoryClient } from "./client.ts";
export {
  MemoryAuthError,
  MemoryClientError,
  MemoryConflictError,
  MemoryNotFoundError,
  MemoryPreconditionFailedError,
  MemoryProtocolError,
  MemoryRateLimitError,
  MemoryRequestUnderWayError,
  MemoryServerError,
  MemoryTimeoutError,
  MemoryUnavailableError,
  MemoryValidationError,
} from "./errors.ts";
export type { Problem } from "./errors.ts";
export type { MessageInput, Session, SessionInput } from "./resources.ts";
export type { CallOptions, MemoryClientConfig } from "./transport.ts";
export type * from "./types.ts";
