import { definePlugin, type Plugin } from "@portico/core";
import { metricsConfig, type MetricsOptions } from "./config.ts";
import { metricsContract } from "./contract.ts";

export type { Measured, MetricsOptions } from "./config.ts";

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
