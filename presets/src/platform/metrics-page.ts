import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { defineContract, definePlugin, type Needs, type Plugin, reply } from "@portico/core";
import * as v from "valibot";
import { instanceErrors } from "./instance-errors.ts";
import type { SurfaceAccess } from "./surface-access.ts";

/** `GET /metrics` of a surface, in Prometheus' text format, with a token of it (open points 4). */
export function metricsPage<const N extends Needs>(
  metrics: PrometheusMetrics,
  { surface, auth, needs, guard }: SurfaceAccess<N>,
): Plugin {
  const plugin = definePlugin({
    // One name per surface: plugins of one name replace each other.
    name: `metrics-${surface}`,
    summary: "What was measured, for scrapers.",
    config: v.strictObject({}),
    needs,
    contract: defineContract(
      { surface, auth, envelope: (error) => ({ error: error.message, code: error.code }) },
      {
        metrics: {
          method: "GET",
          path: "/metrics",
          summary: "What was measured",
          success: reply.bytes(),
          errors: instanceErrors,
        },
      },
    ),
    guards: (given) => ({ [auth]: guard(given) }),
    setup: () => ({
      metrics: async () =>
        new Response(await metrics.text(), {
          headers: { "content-type": metrics.contentType, "cache-control": "no-store" },
        }),
    }),
  });
  return plugin({});
}
