import type { ports } from "@portico/core";

/** Calls of tools that one process executes at once. */
const CALLS_AT_ONCE = 1024;
/** Longer names of calls are not kept: such a call cannot be cancelled by name. */
const NAME_CHARACTERS = 1024;
const TOPIC = "mcp/cancelled";

/** The calls of tools that this process executes. Any process of the instance can cancel them by name. */
export class RunningCalls {
  readonly #bus: ports.Bus | undefined;
  readonly #subscription: ports.BusSubscription | undefined;
  readonly #named = new Map<string, AbortController>();
  #count = 0;

  /** `bus`: where several processes serve the instance. */
  constructor(bus: ports.Bus | undefined) {
    this.#bus = bus;
    this.#subscription = bus?.subscribe(TOPIC, {
      received: (name) => void (typeof name === "string" && this.#abort(name)),
      // A cancellation that is lost leaves the call running, as if its client had not sent it.
      missed() {},
    });
  }

  /** Executes a call. Undefined, without executing it, if too many calls execute. A call without a name cannot be cancelled. */
  run<T>(name: string | undefined, execute: (cancelled: AbortSignal) => Promise<T>): Promise<T> | undefined {
    if (this.#count >= CALLS_AT_ONCE) return undefined;
    const controller = new AbortController();
    this.#count++;
    if (name !== undefined && name.length <= NAME_CHARACTERS) this.#named.set(name, controller);
    return execute(controller.signal).finally(() => {
      this.#count--;
      if (name !== undefined && this.#named.get(name) === controller) this.#named.delete(name);
    });
  }

  /** Cancels the call of this name, in whichever process it executes. */
  cancel(name: string): void {
    if (!this.#abort(name) && name.length <= NAME_CHARACTERS) this.#bus?.publish(TOPIC, name, { toOthers: true });
  }

  close(): void {
    this.#subscription?.close();
  }

  #abort(name: string): boolean {
    const controller = this.#named.get(name);
    controller?.abort();
    return controller !== undefined;
  }
}
