/** A middleware for the Vercel AI SDK. It adds memories to each call's system message, and stores the conversation in a session. */

import type { LanguageModelMiddleware } from "ai";
import type { MemoryClient } from "./client.ts";
import { MemoryTimeoutError, MemoryValidationError } from "./errors.ts";
import type { MessageInput } from "./resources.ts";
import type { CallOptions } from "./transport.ts";
import type { Operations } from "./types.ts";

export interface MemoryMiddlewareOptions {
  /** The user whose memories the middleware searches, and who owns the session. */
  userId: string;
  /** The session to which the middleware appends messages. */
  sessionId: string;
  /** The namespace (default: the client's namespace). */
  namespace?: string;
  /** The agent whose memory blocks the prompt shows. */
  agentId?: string;
  /** The filters and the limit of the search for memories. */
  search?: Search;
  /** The token budget of the memories (default: the server's). */
  maxTokens?: number;
  /** Set to false to append no messages to the session (default: true). */
  store?: boolean;
  /** The maximum milliseconds to wait for the memory server before and after each model call (default: 5,000). */
  timeout?: number;
  /** If true, a failure of the memory fails the model call. Otherwise the middleware calls `onError` and continues (default: false). */
  required?: boolean;
  /** Called with each failure of the memory that does not fail the model call (default: `console.warn`). */
  onError?: (error: unknown) => void;
}

type Search = Exclude<Operations["POST /v1/memory/prompt"]["body"]["long_term_search"], boolean | null | undefined>;
type Generate = NonNullable<LanguageModelMiddleware["wrapGenerate"]>;
type Stream = NonNullable<LanguageModelMiddleware["wrapStream"]>;
type Prompt = Parameters<Generate>[0]["params"]["prompt"];
type Message = Prompt[number];
type Content = Awaited<ReturnType<Generate>>["content"][number];
type Part = Awaited<ReturnType<Stream>>["stream"] extends ReadableStream<infer Chunk> ? Chunk : never;

/**
 * Returns a middleware for one user's session, for `wrapLanguageModel({ model, middleware })`. Create one for each request, which is cheap.
 *
 * Before a model call, it adds memories that match the user's newest message to the system message. After the call, it appends the new
 * messages and the model's answer to the session, with tool calls and their results. It does not store an answer that fails or breaks
 * off. Throws MemoryValidationError without a user or session.
 */
export function memoryMiddleware(client: MemoryClient, options: MemoryMiddlewareOptions): LanguageModelMiddleware {
  const { userId, sessionId, namespace, agentId, store = true, timeout = 5_000 } = options;
  if (!userId || !sessionId) throw new MemoryValidationError(`${userId ? "sessionId" : "userId"}: must not be empty`);

  /** Returns the memory's answer. The timeout includes retries. Returns undefined after a failure, unless the memory is required. */
  async function attempt<Result>(work: (call: CallOptions) => Promise<Result>, abort?: AbortSignal): Promise<Result | undefined> {
    const timer = AbortSignal.timeout(timeout);
    try {
      return await work({ timeout, signal: abort === undefined ? timer : AbortSignal.any([timer, abort]) });
    } catch (reason) {
      const error = timer.aborted && reason === timer.reason ? new MemoryTimeoutError(`no answer within ${timeout} ms`) : reason;
      if (options.required || abort?.aborted) throw error;
      (options.onError ?? warn)(error);
      return undefined;
    }
  }

  async function recall(query: string, call: CallOptions): Promise<string> {
    const search = { ...options.search, user_id: { eq: userId } };
    const owner = { user_id: userId, namespace, agent_id: agentId };
    const { system, relevant } = await client.prompts.render(
      { ...owner, query, long_term_search: search, format: "anthropic", max_tokens: options.maxTokens, include_ids: false },
      call,
    );
    return relevant && system ? system : "";
  }

  async function remember(prompt: Prompt, content: readonly Content[]): Promise<void> {
    const messages = [...newMessages(prompt).flatMap(chatMessages), ...answerMessage(content)];
    if (!store || messages.length === 0) return;
    const owner = { user_id: userId, namespace, agent_id: agentId };
    await attempt((call) => client.workingMemory.append(sessionId, messages, { ...owner, ...call }));
  }

  return {
    specificationVersion: "v4",

    async transformParams({ params }) {
      const query = newestQuestion(params.prompt);
      const memory = query && (await attempt((call) => recall(query, call), params.abortSignal));
      return memory ? { ...params, prompt: withSystem(params.prompt, memory) } : params;
    },

    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      await remember(params.prompt, result.content);
      return result;
    },

    async wrapStream({ doStream, params }) {
      const result = await doStream();
      const content: Content[] = [];
      let isWhole = false;
      const collector = new TransformStream<Part, Part>({
        transform(part, controller) {
          if (part.type === "text-delta") content.push({ type: "text", text: part.delta });
          if (part.type === "tool-call") content.push(part);
          if (part.type === "finish") isWhole = part.finishReason.unified !== "error";
          controller.enqueue(part);
        },
        async flush() {
          if (isWhole) await remember(params.prompt, content);
        },
      });
      return { ...result, stream: result.stream.pipeThrough(collector) };
    },
  };
}

function warn(error: unknown): void {
  console.warn(`agent-memory: ${error instanceof Error ? error.message : String(error)}`);
}

function withSystem(prompt: Prompt, memory: string): Prompt {
  const [first, ...rest] = prompt;
  if (first?.role !== "system") return [{ role: "system", content: memory }, ...prompt];
  return [{ ...first, content: `${first.content}\n\n${memory}` }, ...rest];
}

/** Returns the messages that the session does not have yet: all after the model's last message. */
function newMessages(prompt: Prompt): Message[] {
  const last = prompt.findLastIndex((message) => message.role === "assistant");
  return prompt.slice(last + 1).filter((message) => message.role !== "system");
}

function newestQuestion(prompt: Prompt): string {
  const message = prompt.findLast(({ role }) => role === "user");
  return message?.role === "user" ? textOf(message.content).trim() : "";
}

/** Joins the texts of parts, and the media types of files. Replaces lone surrogates, which a request cannot contain. */
function textOf(parts: readonly { type: string; text?: string; mediaType?: string }[]): string {
  return parts
    .flatMap((part) => (part.type === "text" ? [part.text ?? ""] : part.type === "file" ? [`[${part.mediaType}]`] : []))
    .join("\n")
    .toWellFormed();
}

/** Converts a message of the user or a tool to the form of chat APIs. */
function chatMessages(message: Message): MessageInput[] {
  if (message.role === "user") {
    const content = textOf(message.content);
    return content.trim() ? [{ role: "user", content }] : [];
  }
  if (message.role !== "tool") return [];
  return message.content.flatMap((part) =>
    part.type === "tool-result"
      ? [{ role: "tool", tool_call_id: part.toolCallId, name: part.toolName, content: outputOf(part.output) }]
      : [],
  );
}

function outputOf(output: { type: string; value?: unknown; reason?: string }): string {
  if (typeof output.value === "string") return output.value;
  return JSON.stringify(output.value ?? output.reason ?? output.type);
}

/** Converts the model's answer to the form of chat APIs. Returns no message for an empty answer. */
function answerMessage(content: readonly Content[]): MessageInput[] {
  const text = content
    .flatMap((part) => (part.type === "text" ? [part.text] : []))
    .join("")
    .toWellFormed();
  const calls = content.flatMap((part) =>
    part.type === "tool-call" ? [{ id: part.toolCallId, type: "function", function: { name: part.toolName, arguments: part.input } }] : [],
  );
  if (!text.trim() && calls.length === 0) return [];
  return [{ role: "assistant", content: text || null, ...(calls.length > 0 ? { tool_calls: calls } : {}) }];
}
