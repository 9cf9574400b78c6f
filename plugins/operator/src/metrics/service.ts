import { type Access, definePlugin, type Plugin } from "@portico/core";
import * as v from "valibot";
import { metricsContract } from "./contract.ts";

/** The measurements as text for a scraper. `createPrometheusMetrics()` of `@portico/adapters/telemetry/prometheus` creates one. */
export interface Measured {
  /** Media type of the text. */
  readonly contentType: string;
  text(): Promise<string>;
}

/** Options of the page of metrics. */
const metricsConfig = v.strictObject({
  /** The surface that answers. */
  surface: v.string(),
  /** Who may read it. */
  access: v.custom<Access>((value) => typeof (value as Access | undefined)?.guard === "function", "an access"),
  measured: v.custom<Measured>((value) => typeof (value as Measured | undefined)?.text === "function", "a source of metrics"),
});

/** Options of the page of metrics, as they are given. */
export type MetricsOptions = v.InferInput<typeof metricsConfig>;

/** `GET /metrics` of a surface, in the text format of the option `measured`. Install it once per surface. */
export function metrics(options: MetricsOptions): Plugin {
  const { surface, access } = options;
  const plugin = definePlugin({
    // The name contains the surface, because plugins with the same name replace each other.
    name: `metrics-${surface}`,
    summary: "Metrics for scrapers.",
    config: metricsConfig,
    needs: access.needs,
    contract: metricsContract({ surface, auth: access.auth }),
    ...(access.security && { security: { [access.auth]: access.security } }),
    guards: (given) => ({ [access.auth]: access.guard(given) }),
    setup: (_given, { measured }) => ({
      metrics: async () =>
        new Response(await measured.text(), {
          headers: { "content-type": measured.contentType, "cache-control": "no-store" },
        }),
    }),
  });
  return plugin(options);
}
