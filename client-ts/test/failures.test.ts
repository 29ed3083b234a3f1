/** Test failures: error answers, unreachable, slow and busy servers, and ids that a path cannot contain. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  MemoryAuthError,
  MemoryClient,
  MemoryNotFoundError,
  MemoryProtocolError,
  MemoryRateLimitError,
  MemoryRequestUnderWayError,
  MemoryServerError,
  MemoryTimeoutError,
  MemoryUnavailableError,
  MemoryValidationError,
} from "../src/index.ts";
import { client, scripted, unique, unreachable } from "./support.ts";
import type { Reply } from "./support.ts";

const ACK = { status: "ok" };
const busy = (seconds: number) => ({
  status: 503,
  headers: { "Retry-After": String(seconds) },
  body: { detail: "Redis is away", code: "unavailable" },
});

describe("error answers", () => {
  test("name the field and the reason", async () => {
    const messages = [
      { role: "user", content: "fine" },
      { role: "", content: "no role" },
    ];
    await assert.rejects(client.workingMemory.append(unique("s"), messages), (error: unknown) => {
      assert.ok(error instanceof MemoryServerError);
      assert.equal(error.status, 422);
      assert.equal(error.name, "MemoryServerError");
      assert.deepEqual(
        error.problems.map(({ field }) => field),
        ["messages.1.role"],
      );
      assert.match(error.message, /^messages\.1\.role: /);
      return true;
    });
  });

  test("for missing data and credentials have their own classes", async (context) => {
    await assert.rejects(
      client.longTermMemory.get(unique("m")),
      (error: unknown) => error instanceof MemoryNotFoundError && error.status === 404,
    );
    const { url, seen } = await scripted(context, () => ({
      status: 401,
      body: { detail: "the token is not valid", code: "unauthenticated" },
    }));
    const stranger = new MemoryClient({ baseUrl: url, bearerToken: "secret-token", apiKey: "a-key" });
    await assert.rejects(stranger.workingMemory.get("s"), (error: unknown) => {
      assert.ok(error instanceof MemoryAuthError);
      assert.deepEqual([error.message, error.status, error.code], ["the token is not valid", 401, "unauthenticated"]);
      return true;
    });
    assert.equal(seen.length, 1);
    assert.deepEqual([seen[0]?.headers["authorization"], seen[0]?.headers["x-api-key"]], ["Bearer secret-token", "a-key"]);
  });

  test("a redirect receives no credentials, and an answer that is not JSON is an error", async (context) => {
    const other = await scripted(context, () => ({ body: ACK }));
    const page: Reply = { body: "<html>", headers: { "Content-Type": "application/json" } };
    const away: Reply = { status: 307, headers: { Location: `${other.url}/` }, body: {} };
    const { url } = await scripted(context, ({ url: path }) => (path === "/v1/health" ? page : away));
    const led = new MemoryClient({ baseUrl: url, bearerToken: "secret-token" });
    await assert.rejects(led.workingMemory.get("s"), MemoryProtocolError);
    await assert.rejects(led.health(), MemoryProtocolError);
    assert.equal(other.seen.length, 0);
  });

  test("for invalid input come before any request", async () => {
    for (const baseUrl of ["", "localhost:8000", "ftp://x", "http://"])
      assert.throws(() => new MemoryClient({ baseUrl }), MemoryProtocolError);
    assert.throws(() => new MemoryClient({ baseUrl: "http://x", bearerToken: "a\nb" }), MemoryValidationError);
    const cyclic: Record<string, unknown> = {};
    cyclic["itself"] = cyclic;
    await assert.rejects(client.items.put({ path: ["p"], key: "k", value: cyclic }), MemoryValidationError);
  });
});

describe("retries", () => {
  test("follow a 503 after the time that it names", async (context) => {
    const { url, seen } = await scripted(context, (_, number) => (number < 2 ? busy(number) : { body: { memories: [], total: 0 } }));
    const before = performance.now();
    assert.equal((await new MemoryClient({ baseUrl: url }).longTermMemory.search({ text: "x" })).total, 0);
    assert.equal(seen.length, 3);
    assert.ok(performance.now() - before >= 990, "the second answer asked for a second");
  });

  test("keep the idempotency key and the ids of messages and memories", async (context) => {
    const { url, seen } = await scripted(context, (_, number) => (number % 2 === 0 ? { body: undefined } : { body: ACK }));
    const memory = new MemoryClient({ baseUrl: url });
    await memory.longTermMemory.create([{ text: "Ada keeps bees." }]);
    await memory.workingMemory.append("s", [{ role: "user", content: "hi" }]);
    await memory.longTermMemory.create([{ text: "x" }], { idempotencyKey: "mine" });
    assert.equal(seen.length, 6);
    for (const first of [0, 2, 4]) {
      assert.deepEqual(seen[first]?.body, seen[first + 1]?.body);
      assert.equal(seen[first]?.headers["idempotency-key"], seen[first + 1]?.headers["idempotency-key"]);
    }
    assert.match(seen[0]?.body["memories"][0].id, /^[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.match(seen[2]?.body["messages"][0].id, /^[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.match(String(seen[0]?.headers["idempotency-key"]), /^[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.equal(seen[2]?.headers["idempotency-key"], undefined);
    assert.equal(seen[4]?.headers["idempotency-key"], "mine");
  });

  test("continue while the first request is running", async (context) => {
    const underWay = { status: 409, headers: { "Retry-After": "60" }, body: { detail: "under way", code: "request_under_way" } };
    const { url, seen } = await scripted(context, (_, number) => (number === 0 ? underWay : { body: ACK }));
    await new MemoryClient({ baseUrl: url }).longTermMemory.create([{ text: "x" }]);
    assert.equal(seen.length, 2);
    const { url: stuck } = await scripted(context, () => underWay);
    await assert.rejects(new MemoryClient({ baseUrl: stuck }).longTermMemory.create([{ text: "x" }]), MemoryRequestUnderWayError);
  });

  test("stop after maxRetries, or if the server asks for a long wait", async (context) => {
    const { url, seen } = await scripted(context, () => busy(0));
    await assert.rejects(new MemoryClient({ baseUrl: url, maxRetries: 1 }).workingMemory.delete("s"), MemoryUnavailableError);
    assert.equal(seen.length, 2);
    const limited = await scripted(context, () => ({ status: 429, headers: { "Retry-After": "3600" }, body: { detail: "too many" } }));
    await assert.rejects(new MemoryClient({ baseUrl: limited.url }).workingMemory.list(), (error: unknown) => {
      assert.ok(error instanceof MemoryRateLimitError);
      assert.equal(error.retryAfter, 3600);
      return true;
    });
    assert.equal(limited.seen.length, 1);
  });

  test("do not repeat operations that are unsafe even with a key", async (context) => {
    const { url, seen } = await scripted(context, () => busy(0));
    const memory = new MemoryClient({ baseUrl: url });
    await assert.rejects(memory.blocks.edit("human", { operation: "append", content: "x" }), MemoryUnavailableError);
    await assert.rejects(memory.longTermMemory.forgetByRequest({ text: "x" }, { idempotencyKey: "mine" }), MemoryUnavailableError);
    assert.equal(seen.length, 2);
  });

  test("use the caller's key for every POST, and refuse it where the server ignores it", async () => {
    const [user_id, idempotencyKey] = [unique(), unique("key")];
    const refused = (error: unknown) => error instanceof MemoryServerError && error.problems[0]?.field === "Idempotency-Key";
    await client.longTermMemory.forgetByRequest({ text: "my tea", user_id, dry_run: true }, { idempotencyKey });
    await assert.rejects(client.longTermMemory.forgetByRequest({ text: "my bees", user_id }, { idempotencyKey }), refused);
    await assert.rejects(client.workingMemory.append(unique(), [{ role: "user", content: "hi" }], { idempotencyKey }), refused);
    await client.blocks.put("human", { value: "Name: Ada" }, { user_id });
    const edit = { operation: "append", content: "City: Porto" } as const;
    await assert.rejects(client.blocks.edit("human", edit, { user_id, idempotencyKey }), MemoryValidationError);
    assert.equal((await client.blocks.get("human", { user_id })).value, "Name: Ada");
  });
});

describe("an unreachable server", () => {
  test("causes a MemoryUnavailableError, and no call hangs", async () => {
    const nobody = new MemoryClient({ baseUrl: await unreachable() });
    await assert.rejects(nobody.prompts.render({ query: "x", long_term_search: true }), (error: unknown) => {
      assert.ok(error instanceof MemoryUnavailableError);
      assert.deepEqual([error.status, error.name], [undefined, "MemoryUnavailableError"]);
      assert.match(error.message, /ECONNREFUSED/);
      return true;
    });
  });

  test("or a slow one ends the call after its timeout, without a retry", async (context) => {
    const never = new Promise<never>(() => undefined);
    const { url, seen } = await scripted(context, () => never);
    await assert.rejects(new MemoryClient({ baseUrl: url, timeout: 50 }).health(), MemoryTimeoutError);
    await assert.rejects(new MemoryClient({ baseUrl: url }).health({ timeout: 50 }), MemoryTimeoutError);
    assert.equal(seen.length, 2);
  });

  test("or a busy one does not delay a cancelled call", async (context) => {
    const { url, seen } = await scripted(context, () => busy(9));
    const leaving = new AbortController();
    const call = new MemoryClient({ baseUrl: url }).health({ signal: leaving.signal });
    setTimeout(() => leaving.abort(), 200);
    await assert.rejects(call, { name: "AbortError" });
    assert.ok(seen.length <= 1);
    await assert.rejects(client.health({ signal: AbortSignal.abort() }), { name: "AbortError" });
  });
});

describe("an odd id", () => {
  for (const name of [
    "*",
    "{}",
    "@t:{*}",
    "a|b",
    "é",
    "日本",
    "\u{1f600}",
    "%2F",
    "%2e%2e",
    "..x",
    "'\"\\",
    "a b+c&d=e?f#g",
    "{session_id}",
    "$&",
  ]) {
    test(`is an id like any other: ${name}`, async () => {
      const user_id = `${name}${unique()}`;
      const session = `${name}${unique()}`;
      await client.workingMemory.append(session, [{ role: "user", content: name }], { user_id });
      assert.equal((await client.workingMemory.get(session, { user_id })).messages[0]?.content, name);
      assert.deepEqual((await client.workingMemory.list({ user_id })).sessions, [session]);
      await assert.rejects(client.workingMemory.get(session, { user_id: user_id.slice(name.length) }), MemoryNotFoundError);
      await client.items.put({ path: [name], key: name, value: { name } }, { user_id });
      assert.deepEqual((await client.items.get([name], name, { user_id }))?.value, { name });
    });
  }

  test("with a slash identifies a memory", async () => {
    const id = `${unique()}/a b`;
    await client.longTermMemory.create([{ id, text: "Ada keeps bees." }]);
    assert.equal((await client.longTermMemory.get(id)).id, id);
  });

  test("is refused with its field, by the server, or by the client if no URL can contain it", async () => {
    for (const name of ["a/b", "../x", "\u0000", "x".repeat(2000), " "]) {
      await assert.rejects(
        client.workingMemory.get(name),
        (error: unknown) => error instanceof MemoryServerError && error.problems[0]?.field === "session_id",
      );
    }
    for (const name of ["", ".", "..", "\ud800"]) {
      await assert.rejects(client.workingMemory.get(name), MemoryValidationError);
      await assert.rejects(client.longTermMemory.get(name), MemoryValidationError);
      await assert.rejects(client.blocks.delete(name), MemoryValidationError);
    }
    await assert.rejects(client.workingMemory.list({ user_id: "\udc00" }), MemoryValidationError);
  });

  test("or text may contain a lone surrogate, which the server replaces in texts", async () => {
    const session = unique();
    await client.workingMemory.append(session, [{ role: "user", content: "\ud800" }]);
    assert.equal((await client.workingMemory.get(session)).messages[0]?.content, "\ufffd");
  });
});
