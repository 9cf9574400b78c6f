import type { ports } from "@portico/core";
import type { JsonObject } from "@portico/core/model-protocols";
import type { ModelRequest } from "../../models/call/model-request.ts";

/** The settings of an agent as members of its requests. */
export function callSettings(agent: ports.AgentDefinition, mostTokens: number | undefined): Partial<ModelRequest> {
  const { temperature, stop, effort, outputSchema, maxOutputTokens = mostTokens } = agent;
  return {
    ...(temperature !== undefined && { temperature }),
    ...(stop !== undefined && stop.length > 0 && { stop_sequences: [...stop] }),
    ...(maxOutputTokens !== undefined && { max_tokens: maxOutputTokens }),
    ...(effort !== undefined && { effort }),
    ...(outputSchema && { outputSchema: outputSchema as JsonObject }),
  };
}
