import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { callerOf, defineContract, defineErrors, definePlugin, type Plugin, ports, reply } from "@portico/core";
import * as v from "valibot";

const errors = defineErrors({ unauthorized: { status: 401, message: "unauthorized" } });

/** `GET /metrics` in Prometheus' text format, with the agent service's token (open points 4). */
export function metricsPage(metrics: PrometheusMetrics): Plugin {
  const plugin = definePlugin({
    name: "metrics-agent",
    config: v.strictObject({}),
    needs: { identity: ports.identity },
    contract: defineContract(
      { surface: "agent", auth: "instance", envelope: (error) => ({ error: error.message, code: error.code }) },
      { metrics: { method: "GET", path: "/metrics", summary: "What was measured", success: reply.bytes(), errors } },
    ),
    guards: ({ identity }) => ({
      async instance(head, signal) {
        const caller = await callerOf(head, identity, signal);
        if (!caller) throw errors.unauthorized();
        return caller;
      },
    }),
    setup: () => ({
      metrics: async () =>
        new Response(await metrics.text(), {
          headers: { "content-type": metrics.contentType, "cache-control": "no-store" },
        }),
    }),
  });
  return plugin({});
}
