import { Client, type McpSubscription } from "@modelcontextprotocol/client";
import type { ports } from "@portico/core";
import type { SchemaChecks } from "@portico/core/kit";
import * as v from "valibot";
import { ChildTransport } from "./child-transport.ts";
import { HttpTransport } from "./http-transport.ts";
import { faultCode, readFault } from "./server-fault.ts";
import type { McpServer } from "./server-options.ts";
import { SseTransport } from "./sse-transport.ts";
import { callAnswerSchema } from "./tool-result.ts";
import { createToolTable, type ToolTable } from "./tool-table.ts";
import { withDeadline } from "./with-deadline.ts";

/**
 * How a session begins. `legacy` is `initialize`, which nearly every server supports. `auto` first asks whether the server supports
 * the protocol of 2026-07-28. `sse` is `initialize` over HTTP with server-sent events, for servers at an address.
 */
export type Handshake = "legacy" | "auto" | "sse";

/** The clock port measures the time, so the library's own limits are disabled. */
const NO_LIMIT_MS = 2 ** 31 - 1;
/** Limits an endless list. */
const MOST_PAGES = 100;

const pageSchema = v.looseObject({ tools: v.array(v.unknown()), nextCursor: v.nullish(v.string()) });

export interface SessionEvents {
  /** The connection is lost, and the session with it. Called once, and not for a session that was closed. */
  lost(cause: unknown): void;
  /** A list was read. */
  listed(problems: readonly ports.ToolProblem[]): void;
}

interface SessionGiven {
  readonly clock: ports.Clock;
  readonly checks: SchemaChecks;
  readonly events: SessionEvents;
}

/** One connection to a server, from its handshake to its end. */
export class McpSession {
  readonly #server: McpServer;
  readonly #clock: ports.Clock;
  readonly #events: SessionEvents;
  readonly #client: Client;
  readonly #transport: ChildTransport | HttpTransport | SseTransport;
  readonly #checks: SchemaChecks;
  #table: Promise<ToolTable> | undefined;
  #isReading = false;
  #isStale = true;
  #isAsking = false;
  #isOver = false;
  #calls = 0;
  #idle: (() => void) | undefined;
  #subscription: McpSubscription | undefined;

  constructor(server: McpServer, handshake: Handshake, { clock, checks, events }: SessionGiven) {
    this.#server = server;
    this.#clock = clock;
    this.#checks = checks;
    this.#events = events;
    this.#transport = openTransport(server, handshake, clock);
    // The client offers no capabilities: the server may not request a model, a person or a file.
    this.#client = new Client(
      { name: "portico", version: "1" },
      { versionNegotiation: { mode: handshake === "auto" ? "auto" : "legacy" } },
    );
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the library has no events
    this.#client.onclose = () => this.#lose(undefined);
    this.#client.setNotificationHandler("notifications/tools/list_changed", () => {
      this.#isStale = true;
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Perform the handshake and read the list of tools. Throws the library's errors; close the session then. */
  async open(signal: AbortSignal): Promise<ToolTable> {
    await this.#client.connect(this.#transport, { timeout: NO_LIMIT_MS, signal });
    // Added only now: earlier errors fail the handshake anyway.
    const before = this.#transport.onerror;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the library has no events
    this.#transport.onerror = (error) => {
      before?.(error);
      if (this.#transport instanceof HttpTransport) void this.#askWhetherThere();
    };
    return this.tools();
  }

  /** The server's current tools. Read again after the server reported a change. Concurrent callers share one reading. */
  tools(): Promise<ToolTable> {
    if (!this.#table || (this.#isStale && !this.#isReading)) this.#table = this.#readTools();
    return this.#table;
  }

  /** Throws the library's errors, for `readFault`. Aborting notifies the server. */
  async call(
    name: string,
    args: unknown,
    options: { readonly signal: AbortSignal; readonly onprogress: () => void },
  ): Promise<v.InferOutput<typeof callAnswerSchema>> {
    const params = { name, arguments: args as Record<string, unknown> };
    // Not `callTool`, which refuses unknown kinds of content, and with it the whole answer.
    this.#calls++;
    try {
      return await this.#client.request({ method: "tools/call", params }, callAnswerSchema, { ...options, timeout: NO_LIMIT_MS });
    } finally {
      this.#calls--;
      if (this.#calls === 0) this.#idle?.();
    }
  }

  /** Resolves when no call is in progress. */
  async idle(): Promise<void> {
    if (this.#calls > 0) await new Promise<void>((resolve) => (this.#idle = resolve));
  }

  /** Report that the connection is lost. */
  reportLoss(cause: unknown): void {
    this.#lose(cause);
  }

  /** Close the connection. Resolves when it has ended completely. */
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
      if (!this.#client.getServerCapabilities()?.tools) return { tools: new Map(), problems: [] };
      const { connectTimeoutMs } = this.#server;
      await this.#watch(connectTimeoutMs);
      const listed = await withDeadline(this.#clock, connectTimeoutMs, [], (signal) => this.#readPages(signal));
      const table = await createToolTable(this.#server, listed, this.#checks);
      this.#events.listed(table.problems);
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

  /**
   * Since 2026-07-28, only subscribers are notified of changes. Subscribes before the list is read, so that no change is missed.
   */
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

  /** Over HTTP, only a request reveals that a server is gone or has forgotten the session. */
  async #askWhetherThere(): Promise<void> {
    if (this.#isAsking || this.#isOver) return;
    this.#isAsking = true;
    const fault = await this.#ping();
    this.#isAsking = false;
    if (fault !== undefined) this.#lose(fault);
  }

  /** Whether the server refused a request with 400 because it no longer knows the session: some do so instead of 404. */
  async isForgotten(error: unknown): Promise<boolean> {
    return faultCode(error) === "HTTP_400" && (await this.#ping()) !== undefined;
  }

  /** The error of a ping that the server does not answer because it is gone, or has forgotten the session. */
  async #ping(): Promise<unknown> {
    const { connectTimeoutMs } = this.#server;
    try {
      await withDeadline(this.#clock, connectTimeoutMs, [], (signal) => this.#client.ping({ signal, timeout: NO_LIMIT_MS }));
      return undefined;
    } catch (error) {
      // Some servers answer 400 to a ping of a session that they no longer know.
      return readFault(error).kind === "lost" || faultCode(error) === "HTTP_400" ? error : undefined;
    }
  }
}

function openTransport(
  { place, tokens }: McpServer,
  handshake: Handshake,
  clock: ports.Clock,
): ChildTransport | HttpTransport | SseTransport {
  if (place.kind === "program") return new ChildTransport(place, clock);
  return handshake === "sse" ? new SseTransport(place, tokens) : new HttpTransport(place, clock, tokens);
}
