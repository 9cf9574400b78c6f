import { isDeepStrictEqual } from "node:util";
import { ProtocolError, SdkHttpError } from "@modelcontextprotocol/client";
import { ports } from "@portico/core";
import { SchemaChecks } from "@portico/core/kit";
import { faultCode } from "./server-fault.ts";
import type { McpPlace, McpServer } from "./server-options.ts";
import { type Handshake, McpSession } from "./session.ts";
import { withDeadline } from "./with-deadline.ts";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const MOST_LOGGED = 20;
const NO_ACCOUNT = "The MCP server has no access to an account: connect it (connect_again)";
/**
 * The statuses with which servers of 2024-11-05 refuse the POST of Streamable HTTP:
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#backwards-compatibility
 */
const NO_STREAMABLE_HTTP: ReadonlySet<number> = new Set([400, 404, 405]);

/** A lasting connection to a server: opened in the background, and renewed after a loss, with growing pauses. */
export class McpConnection {
  #server: McpServer;
  readonly #clock: ports.Clock;
  readonly #log: ports.Log;
  /** Checks the schemas and the arguments of its tools. */
  readonly checks: SchemaChecks;
  readonly #closing = new AbortController();
  /** Sessions of earlier secrets, whose calls have not ended. */
  readonly #retired = new Set<McpSession>();
  /** Sessions that have not ended completely. */
  readonly #endings = new Set<Promise<void>>();
  #session: McpSession | undefined;
  #opening: Promise<McpSession> | undefined;
  #openedAt = 0;
  #retry: ports.Timer | undefined;
  #failures = 0;
  #handshake: Handshake = "legacy";
  /** Why the last attempt failed. Undefined before the first one has ended, and after one that succeeded. */
  #away: string | undefined;
  /** The last attempt failed without an account. The next one ends soon, so callers wait for it. */
  #needsAccount = false;
  #problems: readonly ports.ToolProblem[] = [];

  constructor(server: McpServer, clock: ports.Clock, log: ports.Log) {
    this.#server = server;
    this.#clock = clock;
    this.#log = log;
    this.checks = new SchemaChecks(clock);
  }

  /** Aborts when the connection is closed permanently. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** What is wrong now. */
  get problems(): readonly ports.ToolProblem[] {
    return this.#away === undefined ? this.#problems : [{ kind: "unavailable", message: this.#away }];
  }

  /**
   * The current session, or the one that is being opened. Without a session, opens one at once. After an attempt that failed, the next ones run in
   * the background, and callers do not wait for them. Throws ToolsUnavailable.
   */
  session(): Promise<McpSession> {
    if (this.closing.aborted) return Promise.reject(this.closing.reason);
    if (this.#session) return Promise.resolve(this.#session);
    this.#retry?.cancel();
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    if (this.#away === undefined || this.#needsAccount) return this.#opening;
    this.#opening.catch(() => undefined);
    return Promise.reject(this.#unavailable("cannot be reached now"));
  }

  /** Use another place from now on, if it differs: with other secrets. Calls in progress finish in the earlier session. */
  replacePlace(place: McpPlace): void {
    if (isDeepStrictEqual(place, this.#server.place)) return;
    this.#server = { ...this.#server, place };
    this.#failures = 0;
    this.#away = undefined;
    const earlier = this.#session;
    this.#session = undefined;
    if (earlier) this.#retire(earlier);
    void this.session().catch(() => undefined);
  }

  /** Resolves when everything has ended, including programs. */
  async close(): Promise<void> {
    this.#closing.abort(this.#unavailable("is closed"));
    this.#retry?.cancel();
    for (const session of [...this.#retired, ...(this.#session ? [this.#session] : [])]) this.#end(session);
    this.#session = undefined;
    await this.#opening?.catch(() => undefined);
    await Promise.all([...this.#endings, this.checks.close()]);
  }

  async #open(): Promise<McpSession> {
    const server = this.#server;
    try {
      const session = await withDeadline(this.#clock, this.#server.connectTimeoutMs, [this.closing], (signal) =>
        this.#shake(signal),
      );
      if (server !== this.#server) {
        this.#end(session);
        return await this.#open();
      }
      this.#session = session;
      this.#away = undefined;
      this.#needsAccount = false;
      this.#openedAt = this.#clock.now();
      this.#log.info("MCP server is connected", { server: this.#server.id });
      return session;
    } catch (cause) {
      this.closing.throwIfAborted();
      if (server !== this.#server) return this.#open();
      this.#needsAccount = cause instanceof ports.ToolsNotConnected;
      this.#away = this.#needsAccount ? NO_ACCOUNT : `The MCP server cannot be reached (${faultCode(cause)})`;
      this.#tryLater(cause);
      throw this.#needsAccount ? cause : this.#unavailable("cannot be reached now", cause);
    }
  }

  /** Tries the handshake that was accepted last, and others if the server refuses it. */
  async #shake(signal: AbortSignal): Promise<McpSession> {
    const { place } = this.#server;
    const transport = place.kind === "address" ? place.transport : "program";
    if (transport === "sse") return this.#openSession("sse", signal);
    const accepted = this.#handshake;
    try {
      return await this.#openSession(accepted, signal);
    } catch (error) {
      if (accepted === "sse") {
        // The server at the address may be a newer one now.
        this.#handshake = "legacy";
        if (error instanceof SdkHttpError) return this.#shake(signal);
      }
      if (accepted !== "legacy") throw error;
      return this.#shakeOtherwise(error, transport === undefined, signal);
    }
  }

  async #shakeOtherwise(refusal: unknown, mayUseSse: boolean, signal: AbortSignal): Promise<McpSession> {
    const status = refusal instanceof SdkHttpError ? refusal.status : undefined;
    let error = refusal;
    if (refusal instanceof ProtocolError || status === 400) {
      try {
        return await this.#accept("auto", signal);
      } catch (later) {
        error = later;
      }
    }
    if (!mayUseSse || status === undefined || !NO_STREAMABLE_HTTP.has(status)) throw error;
    // A server that refuses this transport as well is not one of 2024-11-05, and its first refusal says more.
    return this.#accept("sse", signal).catch((later: unknown) => {
      signal.throwIfAborted();
      throw later instanceof SdkHttpError ? error : later;
    });
  }

  async #accept(handshake: Handshake, signal: AbortSignal): Promise<McpSession> {
    const session = await this.#openSession(handshake, signal);
    this.#handshake = handshake;
    return session;
  }

  async #openSession(handshake: Handshake, signal: AbortSignal): Promise<McpSession> {
    signal.throwIfAborted();
    const session: McpSession = new McpSession(this.#server, handshake, {
      clock: this.#clock,
      checks: this.checks,
      events: {
        lost: (cause) => this.#lost(session, cause),
        listed: (problems) => this.#listed(problems),
      },
    });
    const giveUp = (): void => this.#end(session);
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      await session.open(signal);
      signal.throwIfAborted();
      if (session.isOver) throw this.#unavailable("went away");
      return session;
    } catch (error) {
      giveUp();
      throw error;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  #lost(session: McpSession, cause: unknown): void {
    this.#end(session);
    if (this.#session !== session) return;
    this.#session = undefined;
    // Only a connection that lasted resets the failures: a program that ends right after every start must not be started in a
    // tight loop.
    if (this.#clock.now() - this.#openedAt >= LONGEST_PAUSE_MS) this.#failures = 0;
    this.#tryLater(cause);
  }

  #tryLater(cause: unknown): void {
    const level = this.#failures === 0 ? "warn" : "debug";
    const code = cause === undefined ? "ENDED" : faultCode(cause);
    this.#log[level]("MCP server is not connected", { server: this.#server.id, code });
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures);
    this.#failures++;
    this.#retry?.cancel();
    // Between half and all of the pause, so that many clients of one server do not reconnect at the same time.
    this.#retry = this.#clock.after(pause * (0.5 + Math.random() / 2), () => void this.session().catch(() => undefined));
  }

  /** Reports what is wrong with single tools, once for each list that differs. */
  #listed(problems: readonly ports.ToolProblem[]): void {
    if (isDeepStrictEqual(problems, this.#problems)) return;
    this.#problems = problems;
    const server = this.#server.id;
    for (const { toolId: tool, kind, message: reason } of problems.slice(0, MOST_LOGGED)) {
      const about = { server, ...(tool !== undefined && { tool }), reason };
      if (kind === "unchecked") this.#log.info("Some patterns of a tool are checked only by its MCP server", about);
      else this.#log.warn("A tool of an MCP server is left out", about);
    }
    if (problems.length > MOST_LOGGED)
      this.#log.warn("More tools of an MCP server are left out", { server, count: problems.length - MOST_LOGGED });
  }

  #retire(session: McpSession): void {
    this.#retired.add(session);
    void session.idle().then(() => {
      this.#retired.delete(session);
      this.#end(session);
    });
  }

  #end(session: McpSession): void {
    const ending = session.close().catch(() => undefined);
    this.#endings.add(ending);
    void ending.finally(() => this.#endings.delete(ending));
  }

  #unavailable(what: string, cause?: unknown): ports.ToolsUnavailable {
    return new ports.ToolsUnavailable(`MCP server "${this.#server.id}" ${what}`, cause === undefined ? {} : { cause });
  }
}
