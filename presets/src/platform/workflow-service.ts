import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { type Preset, probes } from "@portico/core";
import { workflowService as workflowServicePlugin } from "@portico/plugins/workflow-service";
import { workflowServiceRuntime } from "@portico/plugins/workflow-service/runtime";
import { openWorkflowStarter } from "@portico/plugins/workflow-service/starter";
import { keepingMs } from "../settings/keeping.ts";
import { apiPages } from "./api-pages.ts";
import { metricsPage } from "./metrics-page.ts";
import type { PlatformOptions } from "./platform-options.ts";
import { workflowSurface } from "./surface-access.ts";
import { workflowAccess } from "./workflow-access.ts";
import { workflowNodes } from "./workflow-nodes.ts";

/** Definitions may be sorted into folders; how deep those are looked into keeps whatever else lies there out of it. */
export const DEFINITION_DEPTH = 4;

/**
 * What the workflow service is made of, beside `instanceAdapters`, tools, agents, storage, telemetry and providers: everything of surface
 * `workflow`.
 */
export function workflowService(
  { settings, isReady, onTokenMade }: PlatformOptions,
  metrics: PrometheusMetrics,
): Required<Pick<Preset, "adapters" | "plugins" | "surfaces">> {
  const { definitionsDir, token, secrets, bindings, keepRuns, allowedOrigins } = settings.workflow;
  return {
    adapters: [
      unstorageDocuments({ id: "workflows", dir: definitionsDir, depth: DEFINITION_DEPTH }),
      openWorkflowStarter(),
      ...workflowNodes(settings),
      workflowServiceRuntime({ secrets, bindings, keepRunsMs: keepingMs(keepRuns) }),
      workflowAccess({ token, onMade: (made) => onTokenMade?.(made, "workflow") }),
    ],
    // Probes come last, so that an unknown path is answered in the workflow service's words.
    plugins: [
      workflowServicePlugin({}),
      metricsPage(metrics, workflowSurface),
      apiPages(workflowSurface),
      probes({ surface: "workflow", isReady }),
    ],
    surfaces: { workflow: { allowedOrigins } },
  };
}
