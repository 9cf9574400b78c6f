import { type Exchange, ports, type RequestHead } from "@portico/core";
import { mergeUsage, type Usage } from "@portico/core/model-protocols";
import type { AnswerWatch } from "./answer-watch.ts";
import type { OwnCredentials } from "./own-credentials.ts";
import type { Protocol } from "./protocol.ts";
import type { SafeToken } from "./safe-tokens.ts";

/** One call of an admitted caller, on its way to its provider. */
export interface ProxyCall {
  /** The caller's. */
  readonly protocol: Protocol;
  readonly provider: ports.ModelProvider;
  readonly exchange: Exchange;
  readonly head: RequestHead;
  readonly own: OwnCredentials;
  /** Headers that tell another instance which instances the call has passed. */
  readonly trail: Readonly<Record<string, string>>;
  /** The service's own span, which the provider continues. Undefined without traces: the caller's header passes then. */
  readonly traceparent: string | undefined;
  readonly signal: AbortSignal;
  readonly record: CallRecord;
}

/** Why an answer that began successfully ended with an error: `error` in its log line, span and metrics. */
export type EndCode =
  /** The connection broke, or the answer ended before it was finished. */
  | "upstream_broken"
  /** Silence for longer than the provider's `idleMs`. */
  | "upstream_timeout"
  /** The upstream sent an error inside its answer. */
  | "upstream_error"
  /** The caller left before the answer was finished. */
  | "caller_left";

/** The code of an error that broke an answer's body. */
export function codeOfBreak(error: Error): EndCode {
  return error.name === ports.ModelTimeout.name ? "upstream_timeout" : "upstream_broken";
}

/** What a record is made from. */
export interface RecordedCall {
  readonly usage: ports.Usage | undefined;
  readonly clock: ports.Clock;
  readonly who: SafeToken;
  readonly provider: ports.ModelProvider;
  readonly isConverted: boolean;
}

/**
 * The record of one call. It is filled as the call goes. Its request's log line, span and metrics read it when the request ends, as the facts
 * of the request. `close` reports it to the port `usage`.
 */
export class CallRecord implements ports.RequestFacts {
  readonly operation = "chat";
  readonly provider: string;
  readonly providerType: string;
  readonly converted: boolean;
  model: string | undefined;
  streamed: boolean | undefined;
  firstByteMs: number | undefined;

  readonly #clock: ports.Clock;
  readonly #usage: ports.Usage | undefined;
  readonly #tokenId: string;
  readonly #isCountedElsewhere: boolean;
  readonly #beganAt: number;
  /** Monotonic: a clock that is set back would give negative durations. */
  #sentAt = 0;
  #firstTokenMs: number | undefined;
  #counted: ports.UsageCall | undefined;
  #isRefused = false;
  #answer: "expected" | "open" | "ended" = "expected";
  #watch: AnswerWatch | undefined;
  #isRead = false;
  #used: Usage | undefined;
  #code: EndCode | undefined;

  constructor({ usage, clock, who, provider, isConverted }: RecordedCall) {
    this.provider = provider.id;
    this.providerType = provider.type;
    this.converted = isConverted;
    this.#clock = clock;
    this.#usage = usage;
    this.#tokenId = who.tokenId;
    this.#isCountedElsewhere = provider.servesAgents === true;
    this.#beganAt = clock.now();
  }

  /** Includes the tokens that were read from or written to a cache. Undefined if it was not reported. */
  get inputTokens(): number | undefined {
    this.#readAnswer();
    const { input, cacheRead, cacheWrite } = this.#used ?? {};
    const isKnown = input !== undefined || cacheRead !== undefined || cacheWrite !== undefined;
    return isKnown ? (input ?? 0) + (cacheRead ?? 0) + (cacheWrite ?? 0) : undefined;
  }

  get outputTokens(): number | undefined {
    this.#readAnswer();
    return this.#used?.output;
  }

  get error(): EndCode | undefined {
    this.#readAnswer();
    return this.#code;
  }

  /** The request is about to be sent. */
  sending(): void {
    this.#sentAt = performance.now();
    const { provider, model = "" } = this;
    if (this.#isCountedElsewhere) return;
    this.#counted = this.#usage?.note({ source: "proxy", provider, model, tokenId: this.#tokenId });
  }

  /** The upstream begins to answer, with this status. `isStream`: the caller asked for a stream. */
  answered(status: number, isStream: boolean): void {
    this.streamed = isStream;
    this.firstByteMs = this.#clock.now() - this.#beganAt;
    this.#isRefused = status >= 400;
    if (isStream && !this.#isRefused) this.#firstTokenMs = performance.now() - this.#sentAt;
  }

  /** The answer is now forwarded to the caller. `watch` has what is forwarded unchanged. */
  opened(watch?: AnswerWatch): void {
    this.#answer = "open";
    this.#watch = watch;
  }

  /** Counts that the answer reports. They are cumulative: later ones replace earlier ones. */
  used(counts: Usage): void {
    this.#used = mergeUsage(this.#used, counts);
  }

  /** The answer has arrived. Call it before the last byte is sent, because the caller may leave afterwards. */
  ended(): void {
    this.#answer = "ended";
  }

  /** The answer ends with an error. Call it before the caller sees the error. The first reason counts. */
  broke(code: EndCode): void {
    this.#answer = "ended";
    this.#code ??= code;
  }

  /** The call has ended: report it to the port `usage`. `failure`: it was thrown instead of answered, so its request has the error's own code. */
  close(failure?: EndCode): void {
    if (failure) this.#answer = "expected";
    const code = this.error ?? failure;
    this.#counted?.end({
      inputTokens: this.inputTokens,
      outputTokens: this.outputTokens,
      cachedInputTokens: this.#used?.cacheRead,
      cacheWriteTokens: this.#used?.cacheWrite,
      isRefused: this.#isRefused,
      isFailed: code !== undefined && code !== "caller_left",
      firstTokenMs: this.#firstTokenMs,
      durationMs: code === undefined ? performance.now() - this.#sentAt : undefined,
    });
    this.#watch?.close();
  }

  /** Reads the end of the answer, once. It runs when the request or the call ends, so an answer that is still open has lost its caller. */
  #readAnswer(): void {
    if (this.#isRead || this.#answer === "expected") return;
    this.#isRead = true;
    const ending = this.#watch?.ending();
    if (ending?.usage) this.used(ending.usage);
    if (this.#answer === "open") {
      // A caller may leave as soon as it has read the end of a stream.
      const isWhole = ending?.state === "whole" && this.#watch?.isStream;
      if (!isWhole) this.#code = "caller_left";
    } else if (ending && ending.state !== "whole") {
      this.#code ??= ending.state === "error" ? "upstream_error" : "upstream_broken";
    }
  }
}
