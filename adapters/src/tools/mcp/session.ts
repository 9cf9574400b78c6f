import { Client } from "@modelcontextprotocol/client";
import type { ports } from "@portico/core";
import type { SchemaChecks } from "@portico/core/kit";
import * as v from "valibot";
import { ChildTransport } from "./child-transport.ts";
import { HttpTransport } from "./http-transport.ts";
import { faultCode, readFault } from "./server-fault.ts";
import type { McpServer } from "./server-options.ts";
import { SseTransport } from "./sse-transport.ts";
import { FreshList } from "./fresh-list.ts";
import { createPromptTable, type PromptTable } from "./prompts.ts";
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

const nextCursor = v.nullish(v.string());
/** Pages of the lists of a server. */
const pages = {
  tools: v.pipe(
    v.looseObject({ tools: v.array(v.unknown()), nextCursor }),
    v.transform((page) => ({ items: page.tools, nextCursor: page.nextCursor })),
  ),
  prompts: v.pipe(
    v.looseObject({ prompts: v.array(v.unknown()), nextCursor }),
    v.transform((page) => ({ items: page.prompts, nextCursor: page.nextCursor })),
  ),
};

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
  readonly #tools = new FreshList(() => this.#readTools());
  readonly #prompts = new FreshList(() => this.#readPrompts());
  #isAsking = false;
  #isOver = false;
  #calls = 0;
  #idle: (() => void) | undefined;
  #watching: Promise<void> | undefined;

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
    this.#client.setNotificationHandler("notifications/tools/list_changed", () => this.#tools.changed());
    this.#client.setNotificationHandler("notifications/prompts/list_changed", () => this.#prompts.changed());
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

  /** The server's current tools. */
  tools(): Promise<ToolTable> {
    return this.#tools.now();
  }

  /** The server's current prompts. */
  prompts(): Promise<PromptTable> {
    return this.#prompts.now();
  }

  /** Throws the library's errors, for `readFault`. Aborting notifies the server. */
  async ask<S extends v.GenericSchema>(
    request: { readonly method: string; readonly params: Record<string, unknown> },
    answer: S,
    options: { readonly signal: AbortSignal; readonly onprogress: () => void },
  ): Promise<v.InferOutput<S>> {
    // Not `callTool` and the like, which refuse unknown kinds of content, and with it the whole answer.
    this.#calls++;
    try {
      return await this.#client.request(request, answer, { ...options, timeout: NO_LIMIT_MS });
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
    if (!this.#client.getServerCapabilities()?.tools) return { tools: new Map(), problems: [] };
    const table = await createToolTable(this.#server, await this.#readList("tools"), this.#checks);
    this.#events.listed(table.problems);
    return table;
  }

  async #readPrompts(): Promise<PromptTable> {
    if (!this.#client.getServerCapabilities()?.prompts) return new Map();
    return createPromptTable(this.#server.id, await this.#readList("prompts"));
  }

  async #readList(list: keyof typeof pages): Promise<unknown[]> {
    const { connectTimeoutMs } = this.#server;
    await this.#watch(connectTimeoutMs);
    return withDeadline(this.#clock, connectTimeoutMs, [], (signal) => this.#readPages(list, signal));
  }

  async #readPages(list: keyof typeof pages, signal: AbortSignal): Promise<unknown[]> {
    const all: unknown[] = [];
    let cursor: string | undefined;
    for (let count = 0; count < MOST_PAGES; count++) {
      const params = cursor === undefined ? {} : { cursor };
      const page = await this.#client.request({ method: `${list}/list`, params }, pages[list], { signal, timeout: NO_LIMIT_MS });
      all.push(...page.items);
      if (!page.nextCursor || page.nextCursor === cursor) break;
      cursor = page.nextCursor;
    }
    return all;
  }

  /**
   * Since 2026-07-28, only subscribers are notified of changes. Subscribes before the list is read, so that no change is missed.
   */
  #watch(timeout: number): Promise<void> {
    this.#watching ??= this.#subscribe(timeout);
    return this.#watching;
  }

  async #subscribe(timeout: number): Promise<void> {
    if (this.#client.getProtocolEra() !== "modern") return;
    const { tools, prompts } = this.#client.getServerCapabilities() ?? {};
    const wanted = {
      ...(tools?.listChanged && { toolsListChanged: true }),
      ...(prompts?.listChanged && { promptsListChanged: true }),
    };
    if (Object.keys(wanted).length === 0) return;
    const subscription = await this.#client.listen(wanted, { timeout }).catch(() => undefined);
    const ended = (): void => {
      this.#watching = undefined;
    };
    if (!subscription) return ended();
    void subscription.closed.then(() => {
      ended();
      this.#tools.changed();
      this.#prompts.changed();
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
