import { isRecord } from "../../kit/json-object.ts";
import type { JsonRecord } from "./fitted-request.ts";

/** The forced tool alone, which must be called. */
export function withRequiredTool(body: JsonRecord): JsonRecord {
  const choice = body["tool_choice"];
  const named = isRecord(choice) && isRecord(choice["function"]) ? choice["function"]["name"] : undefined;
  if (named === undefined || !Array.isArray(body["tools"])) return body;
  const tools = body["tools"].filter(
    (tool: unknown) => isRecord(tool) && isRecord(tool["function"]) && tool["function"]["name"] === named,
  );
  return { ...body, tools, tool_choice: "required" };
}
