import { codeNode } from "@portico/adapters/workflow-nodes/code";
import { httpNode } from "@portico/adapters/workflow-nodes/http";
import { modelNode } from "@portico/adapters/workflow-nodes/model";
import { toolNode } from "@portico/adapters/workflow-nodes/tool";
import { transformNode } from "@portico/adapters/workflow-nodes/transform";
import type { Adapter } from "@portico/core";
import type { PlatformSettings } from "../settings/platform.ts";

/** The kinds of nodes that definitions can use, beside those that every workflow service has. */
export function workflowNodes({ workflow }: Pick<PlatformSettings, "workflow">): readonly Adapter[] {
  return [modelNode(), toolNode(), httpNode({ allow: workflow.http.allow }), transformNode({}), codeNode({})];
}
