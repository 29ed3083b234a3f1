/** Test the middleware for the Vercel AI SDK with a fake model server for OpenAI's chat completions. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { TestContext } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { z } from "zod";
import { MemoryClient, MemoryTimeoutError, MemoryUnavailableError, MemoryValidationError } from "../src/index.ts";
import { memoryMiddleware } from "../src/vercel.ts";
import type { MemoryMiddlewareOptions } from "../src/vercel.ts";
import { client, scripted, unique, unreachable } from "./support.ts";

type Answer = string | { name: string; arguments: object };
const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };

function messageOf(answer: Answer) {
  if (typeof answer === "string") return { role: "assistant", content: answer };
  const call = { index: 0, id: "call_1", type: "function", function: { name: answer.name, arguments: JSON.stringify(answer.arguments) } };
  return { role: "assistant", content: null, tool_calls: [call] };
}

/** Starts a model server that returns these answers in turn, whole or as streams. Also returns the requests that it received. */
async function modelOf(context: TestContext, ...answers: Answer[]) {
  const { url, seen } = await scripted(context, ({ body }, number) => {
    const answer = answers[number] ?? "ok";
    const finish_reason = typeof answer === "string" ? "stop" : "tool_calls";
    const base = { id: "c", created: 1, model: "m" };
    if (!body["stream"])
      return {
        body: { ...base, object: "chat.completion", usage: USAGE, choices: [{ index: 0, finish_reason, message: messageOf(answer) }] },
      };
    const pieces = typeof answer === "string" ? [answer.slice(0, 3), answer.slice(3)].map((content) => ({ content })) : [messageOf(answer)];
    const chunks = [...pieces.map((delta) => ({ delta, finish_reason: null })), { delta: {}, finish_reason }];
    const lines = chunks.map((choice) =>
      JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, ...choice }], usage: USAGE }),
    );
    return { body: [...lines, "[DONE]"].map((line) => `data: ${line}\n\n`).join("") };
  });
  return { model: createOpenAICompatible({ name: "lookalike", baseURL: url, apiKey: "sk-test-0000" })("m"), seen };
}

type Model = Awaited<ReturnType<typeof modelOf>>["model"];

function remembering(model: Model, options: Partial<MemoryMiddlewareOptions>, memory = client) {
  const whole = { userId: unique(), sessionId: unique("s"), ...options };
  return { model: wrapLanguageModel({ model, middleware: memoryMiddleware(memory, whole) }), ...whole };
}

const stored = async (sessionId: string, user_id: string) =>
  (await client.workingMemory.get(sessionId, { user_id })).messages.map(({ role, content }) => `${role}: ${content}`);

describe("a conversation", () => {
  test("appears in the system message of another session, but not in another user's prompt", async (context) => {
    const { model, seen } = await modelOf(context, "Lovely!", "You keep bees.", "I do not know.");
    const first = remembering(model, {});
    await generateText({ model: first.model, prompt: "I keep bees in Oslo." });
    assert.deepEqual(await stored(first.sessionId, first.userId), ["user: I keep bees in Oslo.", "assistant: Lovely!"]);
    const second = remembering(model, { userId: first.userId });
    const { text } = await generateText({ model: second.model, instructions: "Be brief.", prompt: "Which animals do I keep? Bees?" });
    assert.equal(text, "You keep bees.");
    const [system, question] = seen[1]?.body["messages"];
    assert.equal(system.role, "system");
    assert.match(system.content, /^Be brief\.\n\n[^]*I keep bees in Oslo\./);
    assert.deepEqual([question.role, question.content], ["user", "Which animals do I keep? Bees?"]);
    assert.deepEqual(await stored(second.sessionId, second.userId), ["user: Which animals do I keep? Bees?", "assistant: You keep bees."]);
    await generateText({ model: remembering(model, {}).model, prompt: "Which animals do I keep? Bees?" });
    assert.deepEqual(seen[2]?.body["messages"], [{ role: "user", content: "Which animals do I keep? Bees?" }]);
  });

  test("is stored once over many turns, also with streams", async (context) => {
    const { model } = await modelOf(context, "Hello Ada!", "Porto.");
    const chat = remembering(model, {});
    const messages = [{ role: "user" as const, content: "I am Ada." }];
    const first = streamText({ model: chat.model, messages });
    const pieces = [];
    for await (const piece of first.textStream) pieces.push(piece);
    assert.deepEqual(pieces, ["Hel", "lo Ada!"]);
    const more = [
      ...messages,
      { role: "assistant" as const, content: "Hello Ada!" },
      { role: "user" as const, content: "Where do I live?" },
    ];
    assert.equal(await streamText({ model: chat.model, messages: more }).text, "Porto.");
    assert.deepEqual(await stored(chat.sessionId, chat.userId), [
      "user: I am Ada.",
      "assistant: Hello Ada!",
      "user: Where do I live?",
      "assistant: Porto.",
    ]);
  });

  for (const kind of ["generate", "stream"]) {
    test(`keeps tool calls and their results: ${kind}`, async (context) => {
      const { model } = await modelOf(context, { name: "weather", arguments: { city: "Oslo" } }, "It is cold.");
      const chat = remembering(model, {});
      const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => ({ city, celsius: 4 }) });
      const call = { model: chat.model, tools: { weather }, stopWhen: stepCountIs(3), prompt: "Weather in Oslo?" };
      assert.equal(kind === "stream" ? await streamText(call).text : (await generateText(call)).text, "It is cold.");
      const { messages } = await client.workingMemory.get(chat.sessionId, { user_id: chat.userId });
      assert.deepEqual(
        messages.map(({ role }) => role),
        ["user", "assistant", "tool", "assistant"],
      );
      const [, asked, result] = messages;
      assert.deepEqual(asked?.["tool_calls"], [
        { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } },
      ]);
      assert.deepEqual([result?.["tool_call_id"], result?.content], ["call_1", '{"city":"Oslo","celsius":4}']);
    });
  }

  test("is not stored if the model fails, or with store: false", async (context) => {
    const { url } = await scripted(context, () => ({ status: 400, body: { error: { message: "no" } } }));
    const failing = remembering(createOpenAICompatible({ name: "lookalike", baseURL: url })("m"), {});
    await assert.rejects(generateText({ model: failing.model, prompt: "I am Ada." }));
    const { model } = await modelOf(context);
    const silent = remembering(model, { store: false });
    await generateText({ model: silent.model, prompt: "I am Ada." });
    for (const { sessionId, userId } of [failing, silent]) await assert.rejects(stored(sessionId, userId), { status: 404 });
  });

  test("stores the media types of files, and replaces lone surrogates", async (context) => {
    const { model } = await modelOf(context, "A bee.");
    const chat = remembering(model, { required: true });
    const file = { type: "file" as const, mediaType: "image/png", data: new Uint8Array([1, 2, 3]) };
    await generateText({ model: chat.model, messages: [{ role: "user", content: [{ type: "text", text: "What is it? \ud83d" }, file] }] });
    assert.deepEqual(await stored(chat.sessionId, chat.userId), ["user: What is it? \ufffd\n[image/png]", "assistant: A bee."]);
  });

  test("belongs to the namespace of the middleware", async (context) => {
    const { model, seen } = await modelOf(context);
    const [namespace, userId] = [unique("n"), unique()];
    await generateText({ model: remembering(model, { userId, namespace }).model, prompt: "I keep bees in Oslo." });
    await generateText({ model: remembering(model, { userId, namespace: unique("n") }).model, prompt: "Do I keep bees?" });
    assert.equal(seen[1]?.body["messages"].length, 1);
    await generateText({ model: remembering(model, { userId, namespace }).model, prompt: "Do I keep bees?" });
    assert.match(seen[2]?.body["messages"][0].content, /I keep bees in Oslo\./);
  });
});

describe("an unreachable memory server", () => {
  const absent = async () => new MemoryClient({ baseUrl: await unreachable(), maxRetries: 0 });

  test("fails no model call, and is reported", async (context) => {
    const { model, seen } = await modelOf(context, "one", "two");
    const errors: unknown[] = [];
    const chat = remembering(model, { onError: (error) => void errors.push(error) }, await absent());
    assert.equal((await generateText({ model: chat.model, prompt: "hi" })).text, "one");
    assert.equal(await streamText({ model: chat.model, prompt: "hi" }).text, "two");
    assert.equal(errors.length, 4);
    assert.ok(errors.every((error) => error instanceof MemoryUnavailableError));
    assert.deepEqual(seen[0]?.body["messages"], [{ role: "user", content: "hi" }]);
  });

  test("or a busy one delays no model call for longer than the timeout", async (context) => {
    const { model } = await modelOf(context, "one");
    const busy = await scripted(context, () => ({ status: 503, headers: { "Retry-After": "9" }, body: { detail: "Redis is away" } }));
    const errors: unknown[] = [];
    const options = { timeout: 100, onError: (error: unknown) => void errors.push(error) };
    const chat = remembering(model, options, new MemoryClient({ baseUrl: busy.url }));
    assert.equal((await generateText({ model: chat.model, prompt: "hi" })).text, "one");
    assert.ok(errors.length === 2 && errors.every((error) => error instanceof MemoryTimeoutError));
  });

  test("delays no call that the caller cancels", async (context) => {
    const { model, seen } = await modelOf(context, "one");
    const never = await scripted(context, () => new Promise<never>(() => undefined));
    const errors: unknown[] = [];
    const chat = remembering(model, { onError: (error) => void errors.push(error) }, new MemoryClient({ baseUrl: never.url }));
    const abortSignal = AbortSignal.timeout(100);
    await assert.rejects(generateText({ model: chat.model, prompt: "hi", abortSignal, maxRetries: 0 }), { name: "TimeoutError" });
    assert.deepEqual([seen.length, errors.length], [0, 0]);
  });

  test("fails a call that requires it, before the model request", async (context) => {
    const { model, seen } = await modelOf(context);
    const chat = remembering(model, { required: true }, await absent());
    await assert.rejects(generateText({ model: chat.model, prompt: "hi", maxRetries: 0 }), MemoryUnavailableError);
    assert.equal(seen.length, 0);
  });
});

test("the middleware requires a user and a session", () => {
  for (const options of [
    { userId: "", sessionId: "s" },
    { userId: "u", sessionId: "" },
  ]) {
    assert.throws(() => memoryMiddleware(client, options), MemoryValidationError);
  }
});
