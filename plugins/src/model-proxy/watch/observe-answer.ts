import type { ports, RequestTrace } from "@portico/core";
import type { Protocol } from "../protocol.ts";
import { watchAnswer } from "./answer-watch.ts";
import { codeOfBreak, type EndCode } from "./end-code.ts";
import type { AnswerEnding } from "./read-ending.ts";
import { tokenCounts } from "./token-counts.ts";

/** Told what passes, and how it ended before anybody else learns of it. */
export interface AnswerObserver {
  /** Bytes of an answer of which the last chunk has to wait for `ended`: who has all of them may leave. Infinity where none has to. */
  readonly waitsAt: number;
  pushed(chunk: Buffer): void;
  /** All of it was pushed. What is awaited has to be looked at before its last byte counts as sent. */
  ended(): Promise<void> | undefined;
  broke(error: Error): void;
  /** The answer is out, or its reader left. Safe to call more than once. */
  closed(): void;
}

/** What a passing answer took and how it ended, for the log line and the metrics. */
export function observeAnswer(
  { protocol, trace, signal }: { readonly protocol: Protocol; readonly trace: RequestTrace; readonly signal: AbortSignal },
  answer: ports.ModelAnswer,
): AnswerObserver {
  const watch = watchAnswer(protocol, answer.headers);
  const note = (code: (state: AnswerEnding["state"] | undefined) => EndCode | undefined) => {
    const ending = watch?.ending();
    const error = code(ending?.state);
    trace.note({ ...tokenCounts(ending?.usage), ...(error && { error }) });
  };
  // Heard before the request is measured, which the closing of the answer is not. A caller may leave as soon as it has read the end.
  const onLeft = () => note((state) => (state === "whole" && watch?.isStream ? undefined : "caller_left"));
  signal.addEventListener("abort", onLeft, { once: true });
  const stop = () => signal.removeEventListener("abort", onLeft);
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
