import * as v from "valibot";

/** What a process counted since its start. */
export interface Counters {
  readonly requests: number;
  /** Requests with status 500 or higher, or whose answer broke. */
  readonly failedRequests: number;
  /** Through the proxy, of agents and of workflow nodes. */
  readonly modelCalls: number;
  /** As far as providers report them. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly residentBytes: number;
  readonly uptimeSeconds: number;
}

/** An object that counts. `createPrometheusMetrics()` of `@portico/adapters/telemetry/prometheus` creates one. */
export interface Counted {
  counters(): Counters;
}

/** Options of the page of measurements. */
export const measurementsConfig = v.strictObject({
  counted: v.custom<Counted>((value) => typeof (value as Counted | undefined)?.counters === "function", "an object that counts"),
});
