import { ifInstalled } from "./if-installed.ts";

const found = await ifInstalled("@portico/mcp", () => import("@portico/mcp/workflow"));

type Found = NonNullable<typeof found>;

/** The MCP server of the workflow service. Throws TypeError if the package is not installed. */
export const workflowMcp: Found["workflowMcp"] = found?.workflowMcp ?? refuse;

function refuse(): never {
  throw new TypeError("workflow.mcp: install @portico/mcp, or leave this setting out");
}
