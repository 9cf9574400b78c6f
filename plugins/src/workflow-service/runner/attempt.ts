import type { ports } from "@portico/core";
import type { Hidden } from "../secrecy/secret-keeper.ts";

/** The stored result of an attempt. It includes the times, so that history does not change after a resume. */
export type Attempt = {
  /** What models used for it. */
  readonly usage?: ports.ModelUsage | undefined;
} & (
  | {
      readonly isOk: true;
      readonly output: unknown;
      /** The secret parts of a stored output. */
      readonly hidden?: Hidden | undefined;
      readonly startedAt?: number | undefined;
      readonly endedAt?: number | undefined;
    }
  | {
      readonly isOk: false;
      readonly code: string;
      readonly message: string;
      readonly isFinal: boolean;
      /** What a service answered. */
      readonly answer?: ports.FailedAnswer | undefined;
      /** How long the next attempt waits at least, in milliseconds. */
      readonly retryAfterMs?: number | undefined;
    }
);
