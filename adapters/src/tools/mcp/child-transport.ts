import type { ports } from "@portico/core";
import { SdkError, SdkErrorCode } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { McpPlace } from "./server-options.ts";

/** How long a program has to end by itself once it was told to. */
const END_MS = 2_000;

/**
 * A program that is spoken to over its standard input and output. Of this process's environment it gets what the client library holds
 * for harmless; what it writes to its standard error, which may be anything, goes nowhere.
 */
export class ChildTransport extends StdioClientTransport {
  readonly #clock: ports.Clock;
  #ending: Promise<void> | undefined;

  constructor({ command, args, env, cwd }: Extract<McpPlace, { kind: "program" }>, clock: ports.Clock) {
    super({ command, args: [...args], env: { ...env }, stderr: "ignore", ...(cwd === undefined ? {} : { cwd }) });
    this.#clock = clock;
  }

  /** A handshake that was overtaken by the end starts no program any more. */
  override async start(): Promise<void> {
    if (this.#ending) throw new Error("The connection was closed before it began");
    await super.start();
  }

  /** The library waits for a program that has ended as long as another one, which it may have started, holds its output. */
  override send(message: Parameters<StdioClientTransport["send"]>[0]): Promise<void> {
    const isOver = this.pid !== null && !signal(this.pid, 0);
    return isOver ? Promise.reject(new SdkError(SdkErrorCode.NotConnected, "The program has ended")) : super.send(message);
  }

  /** Resolves when the program is gone. The library alone would wait for two seconds before its first signal. */
  override close(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    // Whoever waits for an answer learns it now: the library tells when the program's output is closed, which may be never.
    this.onclose?.();
    const { pid } = this;
    const ended = super.close();
    if (pid === null) return ended;
    signal(pid, "SIGTERM");
    const timer = this.#clock.after(END_MS, () => signal(pid, "SIGKILL"));
    await ended;
    timer.cancel();
  }
}

/** False where it has ended. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    // One of another user's is there, and may not be told.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
