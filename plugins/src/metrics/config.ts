import type { Access } from "@portico/core";
import * as v from "valibot";

/** The measurements as text for a scraper. `createPrometheusMetrics()` of `@portico/adapters/telemetry/prometheus` creates one. */
export interface Measured {
  /** Media type of the text. */
  readonly contentType: string;
  text(): Promise<string>;
}

/** Options of the page of metrics. */
export const metricsConfig = v.strictObject({
  /** The surface that answers. */
  surface: v.string(),
  /** Who may read it. */
  access: v.custom<Access>((value) => typeof (value as Access | undefined)?.guard === "function", "an access"),
  measured: v.custom<Measured>((value) => typeof (value as Measured | undefined)?.text === "function", "a source of metrics"),
});

/** Options of the page of metrics, as they are given. */
export type MetricsOptions = v.InferInput<typeof metricsConfig>;
