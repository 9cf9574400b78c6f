import type { ports } from "@portico/core";
import { SdkError, SdkErrorCode } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { McpPlace } from "./server-options.ts";

/** How long a program may take to end after a request to end. */
const END_MS = 2_000;

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * A program with messages over its standard input and output. It gets only those environment variables of this process that the
 * client library considers harmless. Its standard error may contain anything, and is discarded.
 */
export class ChildTransport extends StdioClientTransport {
  readonly #clock: ports.Clock;
  #ending: Promise<void> | undefined;

  constructor({ command, args, env, cwd }: Extract<McpPlace, { kind: "program" }>, clock: ports.Clock) {
    super({ command, args: [...args], env: { ...env }, stderr: "ignore", ...(cwd === undefined ? {} : { cwd }) });
    this.#clock = clock;
    this.#skipByteOrderMark();
  }

  /** Some programs write one before their first message. The library would drop that message. */
  #skipByteOrderMark(): void {
    const buffer = (this as unknown as { readonly _readBuffer?: { append(chunk: Buffer): void } })._readBuffer;
    if (!buffer) return;
    const append = buffer.append.bind(buffer);
    buffer.append = (chunk) => {
      buffer.append = append;
      append(chunk.subarray(0, 3).equals(BYTE_ORDER_MARK) ? chunk.subarray(3) : chunk);
    };
  }

  /** A handshake that starts after the closing must not start a program. */
  override async start(): Promise<void> {
    if (this.#ending) throw new Error("The connection was closed before it began");
    await super.start();
  }

  /**
   * After a program has ended, the library keeps waiting while another process, which the program may have started, holds its
   * output.
   */
  override send(message: Parameters<StdioClientTransport["send"]>[0]): Promise<void> {
    const isOver = this.pid !== null && !signal(this.pid, 0);
    return isOver ? Promise.reject(new SdkError(SdkErrorCode.NotConnected, "The program has ended")) : super.send(message);
  }

  /** Resolves when the program has ended. The library alone would wait two seconds before its first signal. */
  override close(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    // Rejects waiting callers now: the library does so only when the program's output is closed, which may be never.
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

/** False if it has ended. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    // A process of another user exists, but must not be signalled.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
