import type { ports } from "@portico/core";
import { mergeUsage } from "../convert/answer/usage.ts";
import type { Usage } from "../convert/model-events.ts";
import type { SafeToken } from "../safe-tokens.ts";
import type { EndCode } from "./end-code.ts";
import { tokenCounts } from "./token-counts.ts";

/** Counts one call, whose answer has ended when `run` resolves or rejects. */
export async function whileCounted(
  usage: ports.Usage | undefined,
  { who, signal }: { readonly who: SafeToken; readonly signal: AbortSignal },
  run: (counted: CallUsage) => Promise<void>,
): Promise<void> {
  const counted = new CallUsage(usage, who);
  try {
    await run(counted);
  } catch (error) {
    counted.broke(signal.aborted ? "caller_left" : "upstream_error");
    throw error;
  } finally {
    counted.end();
  }
}

/** Counts one call of the proxy in the port `usage`, from the usage that passes. Without that port, it does nothing. */
export class CallUsage {
  readonly #usage: ports.Usage | undefined;
  readonly #who: SafeToken;
  #call: ports.UsageCall | undefined;
  #counted: Usage | undefined;
  #isRefused = false;
  #broke: EndCode | undefined;
  #firstByteMs: number | undefined;
  /** Monotonic: a clock that is set back would give negative durations. */
  #sentAt = 0;
  #model = "";

  constructor(usage: ports.Usage | undefined, who: SafeToken) {
    this.#usage = usage;
    this.#who = who;
  }

  /** The provider serves this model. */
  chosen(model: string): void {
    this.#model = model;
  }

  /** Call it before the request is sent. */
  sending(): void {
    const { providerId: provider, tokenId } = this.#who;
    this.#sentAt = performance.now();
    this.#call ??= this.#usage?.note({ source: "proxy", provider, model: this.#model, tokenId });
  }

  /** Call it when the answer begins, with its status and whether the caller asked for a stream. */
  answered(status: number, isStream: boolean): void {
    this.#isRefused = status >= 400;
    if (isStream && !this.#isRefused) this.#firstByteMs = performance.now() - this.#sentAt;
  }

  /** Call it if there is no whole answer. The first reason counts. */
  broke(code: EndCode): void {
    this.#broke ??= code;
  }

  /** Counts that the answer reports. They are cumulative: later ones replace earlier ones. */
  used(counted: Usage | undefined): void {
    if (counted) this.#counted = mergeUsage(this.#counted, counted);
  }

  /** Call it after the answer. */
  end(): void {
    const { cacheRead, cacheWrite } = this.#counted ?? {};
    this.#call?.end({
      ...tokenCounts(this.#counted),
      cachedInputTokens: cacheRead,
      cacheWriteTokens: cacheWrite,
      isRefused: this.#isRefused,
      isFailed: this.#broke !== undefined && this.#broke !== "caller_left",
      firstTokenMs: this.#firstByteMs,
      ...(this.#broke === undefined && { durationMs: performance.now() - this.#sentAt }),
    });
  }
}
