import type { ports } from "@portico/core";
import { agentNode } from "./agent.ts";
import { branchNode } from "./branch.ts";
import { failNode } from "./fail.ts";
import { humanGateNode } from "./human-gate.ts";
import { loopNode } from "./loop.ts";
import { mapNode } from "./map.ts";
import { waitNode } from "./wait.ts";
import { workflowNode } from "./workflow.ts";

/** The kinds of nodes that give a run its shape, by type: every workflow service has them, and performs them itself. */
export const shapeNodes: ReadonlyMap<string, ports.NodeRules> = new Map(
  [branchNode, mapNode, loopNode, waitNode, humanGateNode, workflowNode, agentNode, failNode].map((node) => [node.type, node]),
);
