import { ports } from "@portico/core";
import { isStrictSchema } from "./is-strict-schema.ts";
import type { CallOptions } from "./language-model.ts";

/** The name of an answer's schema in Chat Completions, which requires one. */
const ANSWER = "answer";

/** Where the library looks for options of Chat Completions. */
const CHAT_OPTIONS = "openaiCompatible";

/** The settings of an agent as options of its model calls. What the provider does not accept is left out. */
export function callSettings(
  agent: ports.AgentDefinition,
  { protocol, dialect = ports.PUBLISHED_CHAT_DIALECT }: Pick<ports.ModelProvider, "protocol" | "dialect">,
  mostTokens: number | undefined,
): Partial<CallOptions> {
  const { temperature, stop, effort, outputSchema, maxOutputTokens = mostTokens } = agent;
  const isMessages = protocol === "messages";
  const ofMessages = {
    ...(effort !== undefined && thinkingOf(effort)),
    ...(outputSchema && { structuredOutputMode: "outputFormat" }),
  };
  return {
    ...(temperature !== undefined && { temperature }),
    ...(stop !== undefined && stop.length > 0 && { stopSequences: [...stop] }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(outputSchema && { responseFormat: { type: "json", schema: outputSchema, name: ANSWER } as const }),
    ...(!isMessages && effort !== undefined && dialect.reasoning === "effort" && { reasoning: effort }),
    ...(!isMessages &&
      outputSchema && { providerOptions: { [CHAT_OPTIONS]: { strictJsonSchema: isStrictSchema(outputSchema) } } }),
    ...(isMessages && Object.keys(ofMessages).length > 0 && { providerOptions: { anthropic: ofMessages } }),
  };
}

/** Current models of Messages refuse budgets of tokens. */
function thinkingOf(effort: ports.AgentEffort) {
  return effort === "none" ? { thinking: { type: "disabled" } } : { thinking: { type: "adaptive" }, effort };
}
