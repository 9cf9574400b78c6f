import type { Attributes } from "@opentelemetry/api";
import type { ports } from "@portico/core";

/** Characters of a text in an attribute. */
const CONTENT_CHARACTERS = 16 * 1024;

/** The content of work as attributes of the generative-AI conventions. Work without a convention has none. */
export function contentAttributes(kind: ports.WorkBegin["kind"], { input, output }: ports.WorkContent): Attributes {
  switch (kind) {
    case "turn":
      return {
        ...(input !== undefined && { "gen_ai.input.messages": message("user", input) }),
        ...(output !== undefined && { "gen_ai.output.messages": message("assistant", output) }),
      };
    case "tool":
      return {
        ...(input !== undefined && { "gen_ai.tool.call.arguments": cut(toJson(input)) }),
        ...(output !== undefined && { "gen_ai.tool.call.result": cut(toJson(output)) }),
      };
    default:
      return {};
  }
}

function message(role: "user" | "assistant", content: unknown): string {
  const text = typeof content === "string" ? content : toJson(content);
  return JSON.stringify([{ role, parts: [{ type: "text", content: cut(text) }] }]);
}

const toJson = (value: unknown): string => JSON.stringify(value) ?? "null";
const cut = (text: string): string =>
  text.length <= CONTENT_CHARACTERS ? text : `${text.slice(0, CONTENT_CHARACTERS).toWellFormed()}…`;
