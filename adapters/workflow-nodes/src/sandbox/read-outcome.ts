import { hasInexactWhole, ports } from "@portico/core";
import { type ThreadLimits, type ThreadOutcome, WAIT_MS } from "./sandbox-threads.ts";

/** A node's messages for a script that gave no result. Codes begin with the node's own prefix. */
export interface FailureWords {
  readonly code: string;
  /** The subject of the messages: "The script". */
  readonly subject: string;
  readonly limits: ThreadLimits;
  /** Where a script failed, as a prefix of its own message; "" if unknown. */
  place(stack: string): string;
}

/** The JSON result of a sandbox. Throws NodeFailed. Only a script that did not execute, or whose thread ended, may be retried. */
export function readOutcome(outcome: ThreadOutcome, words: FailureWords): unknown {
  const { code, subject, limits, place } = words;
  const fail = (kind: string, message: string, retryable = false) =>
    new ports.NodeFailed(`${code}_${kind}`, message, { retryable });
  switch (outcome.kind) {
    case "text":
      if (hasInexactWhole(outcome.text))
        throw fail("failed", `${subject} gave a whole number beyond ±(2^53 - 1), whose digits are not exact: give a text`);
      return JSON.parse(outcome.text) as unknown;
    case "failed":
      throw fail("failed", [place(outcome.stack), outcome.message].filter(Boolean).join(": "));
    case "pending":
      throw fail("failed", `${subject} waits for something that never comes: there are no timers and no network inside`);
    case "too-deep":
      throw fail("failed", `${subject} nests too deeply`);
    case "too-large":
      throw fail("too_large", `${subject} gave more than ${ports.NODE_OUTPUT_BYTES / 1024 / 1024} MiB`);
    case "late":
      throw fail("timeout", `${subject} took more than ${limits.cpuMs / 1_000} s`);
    case "busy":
      throw fail("busy", `${subject} waited more than ${WAIT_MS / 60_000} minutes for a thread`, true);
    case "crashed":
      throw fail("crashed", `${subject} was executing when its thread ended`, true);
    case "out-of-memory":
      throw fail("memory", `${subject} took more than ${limits.memoryBytes / 1024 / 1024} MB of memory`);
  }
}
