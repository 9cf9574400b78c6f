import { Client, type McpSubscription } from "@modelcontextprotocol/client";
import type { ports } from "@portico/core";
import * as v from "valibot";
import { ArgumentChecks } from "./argument-checks.ts";
import { ChildTransport } from "./child-transport.ts";
import { HttpTransport } from "./http-transport.ts";
import { faultCode, readFault } from "./server-fault.ts";
import type { McpServer } from "./server-options.ts";
import { callAnswerSchema } from "./tool-result.ts";
import { createToolTable, type ToolTable } from "./tool-table.ts";
import { withDeadline } from "./with-deadline.ts";

/**
 * Which handshake to begin with: `legacy` is `initialize`, which nearly every server speaks; `auto` asks first whether the server knows
 * the protocol of 2026-07-28.
 */
export type Handshake = "legacy" | "auto";

/** The clock port keeps the time; the library's own limits are put out of the way. */
const NO_LIMIT_MS = 2 ** 31 - 1;
/** A list that never ends is not followed for ever. */
const MOST_PAGES = 100;

const pageSchema = v.looseObject({ tools: v.array(v.unknown()), nextCursor: v.nullish(v.string()) });

export interface SessionEvents {
  /** The connection is gone, and the session with it. Called once, and not for a session that was closed. */
  lost(cause: unknown): void;
  /** A list was read in which tools are left out. */
  leftOut(count: number): void;
}

/** One connection to a server, from its handshake to its end. */
export class McpSession {
  readonly #server: McpServer;
  readonly #clock: ports.Clock;
  readonly #events: SessionEvents;
  readonly #client: Client;
  readonly #transport: ChildTransport | HttpTransport;
  readonly #checks = new ArgumentChecks();
  #table: Promise<ToolTable> | undefined;
  #isReading = false;
  #isStale = true;
  #isAsking = false;
  #isOver = false;
  #subscription: McpSubscription | undefined;

  constructor(server: McpServer, handshake: Handshake, clock: ports.Clock, events: SessionEvents) {
    this.#server = server;
    this.#clock = clock;
    this.#events = events;
    const { place } = server;
    this.#transport = place.kind === "program" ? new ChildTransport(place, clock) : new HttpTransport(place, clock);
    // Nothing is offered to the server: it may not ask for a model, a person or a file.
    this.#client = new Client({ name: "portico", version: "1" }, { versionNegotiation: { mode: handshake } });
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the library has no events
    this.#client.onclose = () => this.#lose(undefined);
    this.#client.setNotificationHandler("notifications/tools/list_changed", () => {
      this.#isStale = true;
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Shake hands and read the list of tools. Throws what the library throws; close the session then. */
  async open(signal: AbortSignal): Promise<ToolTable> {
    await this.#client.connect(this.#transport, { timeout: NO_LIMIT_MS, signal });
    // Only now: whatever goes wrong earlier fails the handshake anyway.
    const before = this.#transport.onerror;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the library has no events
    this.#transport.onerror = (error) => {
      before?.(error);
      if (this.#transport instanceof HttpTransport) void this.#askWhetherThere();
    };
    return this.tools();
  }

  /** What the server offers now; read anew once it said that the list has changed. Callers at the same time share one reading. */
  tools(): Promise<ToolTable> {
    if (!this.#table || (this.#isStale && !this.#isReading)) this.#table = this.#readTools();
    return this.#table;
  }

  /** Throws what the library throws, for `readFault`. Aborting tells the server. */
  call(
    name: string,
    args: unknown,
    options: { readonly signal: AbortSignal; readonly onprogress: () => void },
  ): Promise<v.InferOutput<typeof callAnswerSchema>> {
    const params = { name, arguments: args as Record<string, unknown> };
    // Not `callTool`, which refuses content of a kind that it does not know, and with it the whole answer.
    return this.#client.request({ method: "tools/call", params }, callAnswerSchema, { ...options, timeout: NO_LIMIT_MS });
  }

  /** Tell that the connection turned out to be gone. */
  reportLoss(cause: unknown): void {
    this.#lose(cause);
  }

  /** End the connection; resolves when nothing of it is left. */
  close(): Promise<void> {
    this.#isOver = true;
    return this.#transport.close();
  }

  #lose(cause: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#events.lost(cause);
  }

  async #readTools(): Promise<ToolTable> {
    this.#isReading = true;
    this.#isStale = false;
    try {
      if (!this.#client.getServerCapabilities()?.tools) return { tools: new Map(), leftOut: 0 };
      const { connectTimeoutMs } = this.#server;
      await this.#watch(connectTimeoutMs);
      const listed = await withDeadline(this.#clock, connectTimeoutMs, [], (signal) => this.#readPages(signal));
      const table = createToolTable(this.#server, listed, this.#checks);
      if (table.leftOut > 0) this.#events.leftOut(table.leftOut);
      return table;
    } catch (error) {
      this.#isStale = true;
      throw error;
    } finally {
      this.#isReading = false;
    }
  }

  async #readPages(signal: AbortSignal): Promise<unknown[]> {
    const tools: unknown[] = [];
    let cursor: string | undefined;
    for (let count = 0; count < MOST_PAGES; count++) {
      const params = cursor === undefined ? {} : { cursor };
      const page = await this.#client.request({ method: "tools/list", params }, pageSchema, { signal, timeout: NO_LIMIT_MS });
      tools.push(...page.tools);
      if (!page.nextCursor || page.nextCursor === cursor) break;
      cursor = page.nextCursor;
    }
    return tools;
  }

  /** Since 2026-07-28 changes are told to those who subscribe. Before the list is read, so that no change falls between. */
  async #watch(timeout: number): Promise<void> {
    if (this.#client.getProtocolEra() !== "modern" || this.#subscription) return;
    if (!this.#client.getServerCapabilities()?.tools?.listChanged) return;
    const subscription = await this.#client.listen({ toolsListChanged: true }, { timeout }).catch(() => undefined);
    this.#subscription = subscription;
    void subscription?.closed.then(() => {
      this.#subscription = undefined;
      this.#isStale = true;
    });
  }

  /** Over HTTP a server that went away, or forgot the session, is found out by asking only. */
  async #askWhetherThere(): Promise<void> {
    if (this.#isAsking || this.#isOver) return;
    this.#isAsking = true;
    const { connectTimeoutMs } = this.#server;
    try {
      await withDeadline(this.#clock, connectTimeoutMs, [], (signal) => this.#client.ping({ signal, timeout: NO_LIMIT_MS }));
    } catch (error) {
      // A ping that is a bad request is one of a session that some servers do not know any more.
      if (readFault(error).kind === "lost" || faultCode(error) === "HTTP_400") this.#lose(error);
    } finally {
      this.#isAsking = false;
    }
  }
}
