/** A middleware for the Vercel AI SDK: what is remembered goes into each call's system message, and what is said into a session. */

import type { LanguageModelMiddleware } from "ai";
import type { MemoryClient } from "./client.ts";
import { MemoryTimeoutError, MemoryValidationError } from "./errors.ts";
import type { MessageInput } from "./resources.ts";
import type { CallOptions } from "./transport.ts";
import type { Operations } from "./types.ts";

export interface MemoryMiddlewareOptions {
  /** Whose memories are searched, and whose session it is. */
  userId: string;
  /** The session that messages are appended to. */
  sessionId: string;
  /** The client's own when not given. */
  namespace?: string;
  /** The agent whose memory blocks the prompt shows. */
  agentId?: string;
  /** How memories are searched: the filters and the limit of a search. */
  search?: Search;
  /** Tokens that what is remembered may take; the server's default when not given. */
  maxTokens?: number;
  /** Whether messages are appended to the session: true when not given. */
  store?: boolean;
  /** Milliseconds that a call of the model waits for the memory at most, before it and after it: 5,000 when not given. */
  timeout?: number;
  /** Whether a failure of the memory fails the model's call, too. Otherwise `onError` is told, and the call goes on. */
  required?: boolean;
  /** Is told of failures that break nothing: `console.warn` when not given. */
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
 * The memory of one user's session, for `wrapLanguageModel({ model, middleware })`. Make one for each request: it is cheap.
 *
 * Before a call the memories that fit the user's newest message are put into the system message; after it what is new of the
 * conversation and the model's answer are appended to the session, with tool calls and their results. An answer that fails or is broken off
 * is not stored. Throws MemoryValidationError without a user or session.
 */
export function memoryMiddleware(client: MemoryClient, options: MemoryMiddlewareOptions): LanguageModelMiddleware {
  const { userId, sessionId, namespace, agentId, store = true, timeout = 5_000 } = options;
  if (!userId || !sessionId) throw new MemoryValidationError(`${userId ? "sessionId" : "userId"}: must not be empty`);

  /** What the memory answers within the timeout, its repetitions included; undefined when it fails and is not required. */
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

/** What is not the session's yet: all since the model spoke last. */
function newMessages(prompt: Prompt): Message[] {
  const last = prompt.findLastIndex((message) => message.role === "assistant");
  return prompt.slice(last + 1).filter((message) => message.role !== "system");
}

function newestQuestion(prompt: Prompt): string {
  const message = prompt.findLast(({ role }) => role === "user");
  return message?.role === "user" ? textOf(message.content).trim() : "";
}

/** The texts of parts, without halves of characters, which no request can hold; of files their media type, so that it is told of them. */
function textOf(parts: readonly { type: string; text?: string; mediaType?: string }[]): string {
  return parts
    .flatMap((part) => (part.type === "text" ? [part.text ?? ""] : part.type === "file" ? [`[${part.mediaType}]`] : []))
    .join("\n")
    .toWellFormed();
}

/** A message of the user or a tool as chat APIs have it. */
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

/** The model's answer as chat APIs have it; none when it said nothing. */
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
