import { orAborted, ports } from "@portico/core";
import { faultText } from "@portico/core/kit";
import type { McpConnection } from "./connection.ts";
import { faultCode, readFault } from "./server-fault.ts";
import type { McpServer } from "./server-options.ts";
import type { McpSession } from "./session.ts";
import { errorResult, toToolResult } from "./tool-result.ts";
import type { ToolTable } from "./tool-table.ts";

/** Lists and runs the tools of one server, and converts every outcome to the port's rules. */
export class ToolCalls {
  readonly #server: McpServer;
  readonly #connection: McpConnection;
  readonly #clock: ports.Clock;

  constructor(server: McpServer, connection: McpConnection, clock: ports.Clock) {
    this.#server = server;
    this.#connection = connection;
    this.#clock = clock;
  }

  async list(signal?: AbortSignal): Promise<readonly ports.ToolDefinition[]> {
    signal?.throwIfAborted();
    const { tools } = await this.#read(signal);
    return [...tools.values()].map(({ definition }) => definition);
  }

  async call(call: ports.ToolCall, signal: AbortSignal): Promise<ports.ToolResult> {
    signal.throwIfAborted();
    return (await this.#attempt(call, signal)) ?? (await this.#attempt(call, signal)) ?? this.#refuse(undefined);
  }

  /** Undefined if the server did not know the session: the call had no effect, and a retry in another session is safe. */
  async #attempt({ toolId, arguments: args }: ports.ToolCall, signal: AbortSignal): Promise<ports.ToolResult | undefined> {
    const { session, tools } = await this.#read(signal);
    const tool = tools.get(toolId);
    if (!tool) throw new ports.ToolNotFound(`There is no such tool at MCP server "${this.#server.id}"`);
    await this.#check(tool.definition, args, signal);
    try {
      return await this.#run(session, tool.name, args, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#connection.closing.throwIfAborted();
      const fault = readFault(error);
      if (fault.kind === "refused")
        return errorResult(fault.words || `The server of this tool refused the call (${faultCode(error)})`);
      if (fault.kind === "unreadable") return errorResult("The server of this tool gave an answer that cannot be read");
      const isForgotten = fault.kind === "unavailable" && (await orAborted(session.isForgotten(error), signal));
      if (fault.kind === "lost" || isForgotten) session.reportLoss(error);
      if (isForgotten || (fault.kind === "lost" && fault.unheard)) return undefined;
      return this.#refuse(error);
    }
  }

  async #check({ inputSchema }: ports.ToolDefinition, args: unknown, signal: AbortSignal): Promise<void> {
    const checked = await this.#connection.checks.check(inputSchema, args, { isForeign: true, signal });
    if ("unusable" in checked) throw new ports.ToolArgumentsInvalid(checked.unusable);
    if ("faults" in checked) throw new ports.ToolArgumentsInvalid(faultText(checked.faults, "the arguments"));
  }

  async #run(session: McpSession, name: string, args: unknown, signal: AbortSignal): Promise<ports.ToolResult> {
    const { callTimeoutMs } = this.#server;
    const late = new AbortController();
    const stop = AbortSignal.any([signal, this.#connection.closing, late.signal]);
    // The server learns that the call was cancelled, but not the reason, which is private to the caller.
    const cancelling = new AbortController();
    const cancel = (): void => cancelling.abort("The call was cancelled");
    stop.addEventListener("abort", cancel, { once: true });
    const timer = this.#clock.after(callTimeoutMs, () => late.abort());
    try {
      const answer = session.call(name, args, { signal: cancelling.signal, onprogress: () => timer.refresh() });
      return toToolResult(await orAborted(answer, stop));
    } catch (error) {
      if (stop.reason !== late.signal.reason || !late.signal.aborted) throw error;
      return errorResult(`The tool did not answer within ${callTimeoutMs / 1000} seconds and was cancelled`);
    } finally {
      timer.cancel();
      stop.removeEventListener("abort", cancel);
    }
  }

  /** The current session with its tools. Retries once if the session turns out to be lost while it reads a changed list. */
  async #read(signal: AbortSignal | undefined, isLast = false): Promise<ToolTable & { readonly session: McpSession }> {
    const session = await orAborted(this.#connection.session(), signal);
    try {
      return { session, ...(await orAborted(session.tools(), signal)) };
    } catch (error) {
      signal?.throwIfAborted();
      this.#connection.closing.throwIfAborted();
      const isLost = readFault(error).kind === "lost" || (await orAborted(session.isForgotten(error), signal));
      if (isLost) session.reportLoss(error);
      return isLost && !isLast ? this.#read(signal, true) : this.#refuse(error);
    }
  }

  #refuse(cause: unknown): never {
    if (cause instanceof ports.ToolsNotConnected) throw cause;
    const why = cause === undefined ? "" : ` (${faultCode(cause)})`;
    throw new ports.ToolsUnavailable(`MCP server "${this.#server.id}" cannot be used now${why}`, { cause });
  }
}
