/** The client: one attribute for each resource of the API. */

import { Blocks, Files, Items, LongTermMemory, Procedures, Profiles, Prompts, Timelines, WorkingMemory } from "./resources.ts";
import { Transport } from "./transport.ts";
import type { CallOptions, MemoryClientConfig } from "./transport.ts";

/**
 * Calls an agent-memory server.
 *
 * Fields of the API keep the server's names (`user_id`). Methods and options of the client have TypeScript's style (`idempotencyKey`).
 */
export class MemoryClient {
  readonly workingMemory: WorkingMemory;
  readonly longTermMemory: LongTermMemory;
  readonly prompts: Prompts;
  readonly profile: Profiles;
  readonly timeline: Timelines;
  readonly blocks: Blocks;
  readonly procedures: Procedures;
  readonly items: Items;
  readonly files: Files;
  readonly #transport: Transport;

  constructor(config: MemoryClientConfig) {
    const transport = new Transport(config);
    this.#transport = transport;
    this.workingMemory = new WorkingMemory(transport);
    this.longTermMemory = new LongTermMemory(transport);
    this.prompts = new Prompts(transport);
    this.profile = new Profiles(transport);
    this.timeline = new Timelines(transport);
    this.blocks = new Blocks(transport);
    this.procedures = new Procedures(transport);
    this.items = new Items(transport);
    this.files = new Files(transport);
  }

  /** Checks that the server answers, and returns its version. */
  health(options: CallOptions = {}) {
    return this.#transport.request("GET /v1/health", {}, options);
  }
}
