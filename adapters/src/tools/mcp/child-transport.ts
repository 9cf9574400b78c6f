import type { ports } from "@portico/core";
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

  /** Resolves when the program is gone. The library alone would wait for two seconds before its first signal. */
  override close(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    const { pid } = this;
    const ended = super.close();
    if (pid === null) return ended;
    signal(pid, "SIGTERM");
    const timer = this.#clock.after(END_MS, () => signal(pid, "SIGKILL"));
    await ended;
    timer.cancel();
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}
