/** Shared helpers: a client of the real server, and HTTP servers with scripted answers. */

import { createServer } from "node:http";
import type { IncomingHttpHeaders, RequestListener, Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { MemoryClient } from "../src/index.ts";

/** The address of the real server, which pytest starts (tests/interfaces/typescript). */
export const SERVER = process.env["AGENT_MEMORY_URL"] ?? "http://127.0.0.1:8000";

export const client = new MemoryClient({ baseUrl: SERVER });

/** Returns a name that no other test uses. */
export const unique = (prefix = "u"): string => `${prefix}-${crypto.randomUUID()}`;

/** Waits until `probe` returns a defined value, and returns it. The test's time limit ends the wait. */
export async function until<Result>(probe: () => Promise<Result | undefined>): Promise<Result> {
  for (;;) {
    const result = await probe();
    if (result !== undefined) return result;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export interface Seen {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: Record<string, any>;
}

export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  /** The body: JSON for an object, plain for a text. Undefined closes the connection. */
  body?: unknown;
}

/** Starts a server on loopback until the test ends. `answer` receives each request and its number, from 0. */
export async function scripted(
  context: TestContext,
  answer: (request: Seen, number: number) => Reply | Promise<Reply>,
): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const listener: RequestListener = async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const entry: Seen = {
      method: request.method ?? "",
      url: request.url ?? "",
      headers: request.headers,
      body: text ? JSON.parse(text) : {},
    };
    seen.push(entry);
    const { status = 200, headers = {}, body } = await answer(entry, seen.length - 1);
    if (body === undefined) return void request.socket.destroy();
    const isText = typeof body === "string";
    response.writeHead(status, { "Content-Type": isText ? "text/event-stream" : "application/json", ...headers });
    response.end(isText ? body : JSON.stringify(body));
  };
  const server = createServer(listener);
  const url = await listening(server);
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url, seen };
}

/** Returns an address on which no server listens. */
export async function unreachable(): Promise<string> {
  const server = createServer();
  const url = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  return url;
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
