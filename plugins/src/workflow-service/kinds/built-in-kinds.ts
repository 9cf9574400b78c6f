import type { ports } from "@portico/core";
import type { NodeKind } from "../runner/running.ts";
import { agentKind } from "./agent.ts";
import { attachmentNode } from "./attachment.ts";
import { branchKind } from "./branch.ts";
import { failNode } from "./fail.ts";
import { humanGateKind } from "./human-gate.ts";
import { loopKind } from "./loop.ts";
import { mapKind } from "./map.ts";
import { waitKind } from "./wait.ts";
import { workflowKind } from "./workflow.ts";

/** The kinds that every workflow service has and that control a run. Adapters cannot provide them, because they need internals of the run. */
export const builtInKinds: readonly NodeKind[] = [
  ...[branchKind, mapKind, loopKind, waitKind, humanGateKind, workflowKind, agentKind],
];

/** The nodes that every workflow service has and that an adapter could provide, too. */
export const builtInNodes: readonly ports.WorkflowNode[] = [failNode, attachmentNode];
