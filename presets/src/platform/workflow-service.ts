import { workflowDocuments } from "@portico/adapters/stores/workflow-documents";
import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { modelNode } from "@portico/adapters/workflow-nodes/model";
import { toolNode } from "@portico/adapters/workflow-nodes/tool";
import { type Adapter, optionsOf, type ports, type Preset, selectLive } from "@portico/core";
import { workflowService as workflowServiceArea } from "@portico/plugins/workflow-service";
import { workflowServiceSettings } from "@portico/plugins/workflow-service/config";
import { workflowAccess } from "@portico/plugins/workflow-service/guards";
import type { PlatformSettings } from "../settings/platform.ts";
import { pagesOf } from "../settings/allowed-origins.ts";
import { definitionsAt } from "../settings/documents-place.ts";
import { definitionTestsInMemory } from "./workflow-tests/definition-tests.ts";
import { workflowMcp } from "./mcp-package.ts";
import { ownToken } from "./own-token.ts";
import type { PlatformOptions } from "./platform-options.ts";
import { type RotatingSettings, rotationOf } from "../settings/rotating-settings.ts";
import { servicePages } from "./service-pages.ts";
import { VERSION } from "./version.ts";
import { codeNode, httpNode, transformNode } from "./workflow-nodes-package.ts";

/**
 * The parts of the workflow service, in addition to `serviceAdapters` and agents: everything of surface `workflow`. `documents` are the adapters of
 * the definitions; default: as the settings of the area say.
 */
export function workflowService(
  options: PlatformOptions,
  measured: PrometheusMetrics,
  documents?: readonly Adapter[],
): Required<Pick<Preset, "adapters" | "plugins" | "surfaces">> {
  const { settings, onTokenMade } = options;
  const { publicUrl } = settings.workflow;
  const tokenOf = ({ workflow: { token } }: RotatingSettings) =>
    token ?? ((kept: ports.Secrets) => ownToken(kept, "workflow", (made) => onTokenMade?.(made, "workflow")));
  return {
    adapters: [
      ...(documents ?? workflowDocuments(definitionsAt(settings.workflow))),
      ...workflowNodes(settings),
      definitionTestsInMemory(),
    ],
    plugins: [
      workflowServiceArea({
        token: tokenOf(settings),
        tokenRotation: selectLive(rotationOf(options), (next) => ({ token: tokenOf(next), overlapMs: next.rotation.overlapMs })),
        secretsRotation: selectLive(rotationOf(options), (next) => next.workflow.secrets),
        ...optionsOf(workflowServiceSettings, settings.workflow),
        ...(publicUrl !== undefined && { publicUrl }),
      }),
      ...(settings.workflow.mcp ? [workflowMcp({ version: VERSION, publicUrl })] : []),
      ...servicePages(options, measured, { surface: "workflow", access: workflowAccess }),
    ],
    surfaces: { workflow: { allowedOrigins: pagesOf(settings.workflow) } },
  };
}

/** The kinds of nodes that definitions can use, in addition to the kinds of every workflow service. */
export function workflowNodes({ workflow, outbound }: Pick<PlatformSettings, "workflow" | "outbound">): readonly Adapter[] {
  const { http, sandbox } = workflow;
  return [modelNode(), toolNode(), httpNode({ allow: http.allow, outbound }), transformNode(sandbox), codeNode(sandbox)];
}
