import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { UpstreamRequest } from "./upstream-request.ts";

/** One request at the upstream and the means to answer it, well or badly. */
export interface UpstreamExchange {
  readonly request: UpstreamRequest;
  readonly response: ServerResponse;
  readonly socket: Socket;
  /** Resolves when the exchange has ended, on either side: for scripts that would wait forever. */
  readonly over: Promise<void>;
  readonly isOver: boolean;
  /**
   * Leave the request's body in the socket until `until` settles, so that the sender feels a slow reader. Counts only when it is
   * called before the script first waits.
   */
  holdBody(until: Promise<unknown>): void;
}

/**
 * A script for one exchange, built from `upstream-answers.ts`. If it throws while the exchange is open, `close()` fails with that error.
 */
export type Answer = (exchange: UpstreamExchange) => void | Promise<void>;
