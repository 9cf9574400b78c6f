import type { ports } from "@portico/core";

/** One ended piece of work: the data of its metrics. */
export interface EndedWork {
  readonly kind: ports.WorkBegin["kind"];
  /** Why it failed: a code. */
  readonly error: string | undefined;
  /** Monotonic milliseconds. */
  readonly beganAt: number;
  readonly endedAt: number;
}
