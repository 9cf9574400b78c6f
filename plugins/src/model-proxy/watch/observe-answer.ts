import type { ports, RequestTrace } from "@portico/core";
import type { Protocol } from "../protocol.ts";
import { watchAnswer } from "./answer-watch.ts";
import type { CallUsage } from "./call-usage.ts";
import { codeOfBreak, type EndCode } from "./end-code.ts";
import type { AnswerEnding } from "./read-ending.ts";
import { tokenCounts } from "./token-counts.ts";

/** Receives the chunks of an answer, and its end before the caller sees it. */
export interface AnswerObserver {
  /** Size of an answer whose last chunk must wait for `ended`, because a caller that has all bytes may disconnect. Infinity if no chunk must wait. */
  readonly waitsAt: number;
  pushed(chunk: Buffer): void;
  /** Call it after the last chunk. If it returns a promise, send the last byte only after the promise has resolved. */
  ended(): Promise<void> | undefined;
  broke(error: Error): void;
  /** Call it when the answer is sent or its reader has left. Safe to call more than once. */
  closed(): void;
}

interface ObservedCall {
  readonly protocol: Protocol;
  readonly trace: RequestTrace;
  readonly signal: AbortSignal;
  readonly counted: CallUsage;
}

/** Observes the usage and the end of a forwarded answer, for the log line and the metrics. */
export function observeAnswer({ protocol, trace, signal, counted }: ObservedCall, answer: ports.ModelAnswer): AnswerObserver {
  const watch = watchAnswer(protocol, answer.headers);
  const note = (code: (state: AnswerEnding["state"] | undefined) => EndCode | undefined) => {
    const ending = watch?.ending();
    const error = code(ending?.state);
    counted.used(ending?.usage);
    if (error) counted.broke(error);
    trace.note({ ...tokenCounts(ending?.usage), ...(error && { error }) });
  };
  // The signal aborts before the request is measured; the answer closes only afterwards. A caller may leave as soon as it has read the end.
  const onLeft = () => note((state) => (state === "whole" && watch?.isStream ? undefined : "caller_left"));
  // A whole answer that needs no decompression ends before its caller can leave.
  const canLeave = answer.whole === undefined || watch?.isBehind === true;
  if (canLeave) signal.addEventListener("abort", onLeft, { once: true });
  const stop = () => canLeave && signal.removeEventListener("abort", onLeft);
  const finish = () => {
    stop();
    note((state) => (state === "error" ? "upstream_error" : state === "open" ? "upstream_broken" : undefined));
  };
  return {
    waitsAt: watch?.isBehind ? Number(answer.headers["content-length"] ?? Infinity) : Infinity,
    pushed: (chunk) => watch?.push(chunk),
    ended() {
      const settled = watch?.settled();
      if (settled) return settled.then(finish);
      finish();
      return undefined;
    },
    broke(error) {
      stop();
      note(() => codeOfBreak(error));
    },
    closed: () => watch?.close(),
  };
}
