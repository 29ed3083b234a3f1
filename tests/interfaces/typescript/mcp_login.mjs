// Log in by OAuth with an SDK for TypeScript, and call a tool: node mcp_login.mjs SDK URL MODE
// Prints the link for the browser, reads the address that the browser was sent back to, then prints what the server answered.
import { createInterface } from "node:readline/promises";
import { argv, stdin } from "node:process";

const [sdk, url, mode] = argv.slice(2);
const { Client, StreamableHTTPClientTransport } =
  sdk === "client"
    ? await import("@modelcontextprotocol/client")
    : {
        ...(await import("@modelcontextprotocol/sdk/client/index.js")),
        ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
      };
const kept = {};
const login = {
  redirectUrl: "https://app.example/callback",
  clientMetadata: { client_name: `TypeScript ${sdk} ${mode}`, redirect_uris: ["https://app.example/callback"] },
  state: () => "state",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  redirectToAuthorization: (link) => console.log(link.href),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  saveDiscoveryState: (state) => void (kept.discovery = state),
  discoveryState: () => kept.discovery,
};
const connect = async () => {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: login });
  return { client, transport, done: client.connect(transport) };
};

const first = await connect();
await first.done.catch(() => undefined);
const answer = new URL(await createInterface({ input: stdin }).question("")).searchParams;
await (sdk === "client" ? first.transport.finishAuth(answer) : first.transport.finishAuth(answer.get("code")));
const { client, done } = await connect();
await done;
const { tools } = await client.listTools();
const memories = [{ text: "Bo sails.", user_id: "bo" }];
const stored = await client.callTool({ name: "create_long_term_memories", arguments: { memories } });
console.log(JSON.stringify({ tools: tools.length, stored: stored.structuredContent, scope: kept.tokens.scope, version: client.getNegotiatedProtocolVersion?.() }));
process.exit(0);
