import { ifInstalled } from "./if-installed.ts";

const found = await ifInstalled("@portico/mcp", async () => {
  const [agents, workflows] = await Promise.all([import("@portico/mcp/agent"), import("@portico/mcp/workflow")]);
  return { ...agents, ...workflows };
});

type Found = NonNullable<typeof found>;

/** The MCP server of the agent service. Throws TypeError if the package is not installed. */
export const agentMcp: Found["agentMcp"] = found?.agentMcp ?? missing("agent.mcp");

/** The MCP server of the workflow service. Throws TypeError if the package is not installed. */
export const workflowMcp: Found["workflowMcp"] = found?.workflowMcp ?? missing("workflow.mcp");

function missing(setting: string): () => never {
  return () => {
    throw new TypeError(`${setting}: install @portico/mcp, or leave this setting out`);
  };
}
