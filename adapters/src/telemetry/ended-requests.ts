import { guardCall, type ports, reportFailure } from "@portico/core";
import { CALLER_LEFT, type EndedRequest, errorType } from "./opentelemetry/request-record.ts";

/** An ended request, for counts: its area, how it ended, and its milliseconds. */
export type CountedRequest = Pick<ports.EndedWork, "name" | "outcome"> & { readonly durationMs: number };

/**
 * Brings the ends of requests from the adapter `telemetry/opentelemetry` to the adapter `usage/records`, which counts them. Requests that end
 * without a listener are not counted.
 */
export interface EndedRequests {
  /** A request has ended. */
  record(ended: EndedRequest): void;
  /** Called for each ended request, until the returned function is called. Must return soon. An error is printed. */
  listen(listener: (request: CountedRequest) => void): () => void;
}

/** Ended requests of one app. */
export function createEndedRequests(): EndedRequests {
  const listeners = new Set<(request: CountedRequest) => void>();
  return {
    record(ended) {
      if (listeners.size === 0) return;
      const { request, beganAt, endedAt } = ended;
      const counted = { name: request.area, outcome: outcomeOf(ended), durationMs: endedAt - beganAt };
      for (const listener of listeners) {
        guardCall(
          () => listener(counted),
          (error) => reportFailure("A listener for ended requests failed", error),
        );
      }
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function outcomeOf(ended: EndedRequest): ports.EndedWorkOutcome {
  const { status } = ended;
  if (status >= 500) return "failed";
  const error = status < 400 ? errorType(ended) : undefined;
  if (status === CALLER_LEFT.status || error === CALLER_LEFT.error) return "cancelled";
  return error === undefined ? "completed" : "failed";
}
