import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { defineContract, definePlugin, type Guard, type Needs, type Given, type Plugin, ports, reply } from "@portico/core";
import { serviceAccess } from "@portico/plugins/workflow-service/access";
import { serviceGuard } from "@portico/plugins/workflow-service/guards";
import * as v from "valibot";
import { instanceErrors } from "./instance-errors.ts";
import { instanceGuard } from "./instance-guard.ts";

/** `GET /metrics` of the agent service, with one of its tokens (open points 4). */
export function agentMetricsPage(metrics: PrometheusMetrics): Plugin {
  return metricsPage(metrics, {
    surface: "agent",
    auth: "instance",
    needs: { identity: ports.identity },
    guard: ({ identity }) => instanceGuard(identity),
  });
}

/** `GET /metrics` of the workflow service, with its token (open points 4). */
export function workflowMetricsPage(metrics: PrometheusMetrics): Plugin {
  return metricsPage(metrics, {
    surface: "workflow",
    auth: "service",
    needs: { access: serviceAccess },
    guard: ({ access }) => serviceGuard(access),
  });
}

interface MetricsAccess<N extends Needs> {
  readonly surface: string;
  /** The scheme's name, as the area calls it. */
  readonly auth: string;
  readonly needs: N;
  readonly guard: (given: Given<N>) => Guard<unknown>;
}

/** In Prometheus' text format. */
function metricsPage<const N extends Needs>(
  metrics: PrometheusMetrics,
  { surface, auth, needs, guard }: MetricsAccess<N>,
): Plugin {
  const plugin = definePlugin({
    // One name per surface: plugins of one name replace each other.
    name: `metrics-${surface}`,
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
