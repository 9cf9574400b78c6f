import type { Adapter } from "@portico/core";
import { loopAgentEngine, type LoopOptions } from "../agent-engines/loop.ts";
import { documentAgents } from "../agents/documents.ts";
import { unstorageDocuments } from "../documents/unstorage.ts";

/** An `agent.json` is in its agent's folder. Deeper files belong to the agent itself. */
const DEPTH = 2;

/**
 * Agents in a folder, `ID/agent.json` each, and the engine that executes their turns with models and tools: the source of
 * documents `agents`, and the ports `agents` and `agentEngines`. `loop` is for the engine.
 */
export function agentFolder({ dir, loop = {} }: { readonly dir: string; readonly loop?: LoopOptions }): readonly Adapter[] {
  return [unstorageDocuments({ id: "agents", dir, depth: DEPTH }), documentAgents({ directory: dir }), loopAgentEngine(loop)];
}
