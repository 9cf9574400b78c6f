import { ports } from "@portico/core";

/** Says that a tool call is too many that begins after `begun` others. Undefined if the answer may have one more. */
export function toolCallLimit(begun: number): string | undefined {
  if (begun < ports.ANSWER_TOOL_CALLS) return undefined;
  return `The provider's answer has more than ${ports.ANSWER_TOOL_CALLS} tool calls.`;
}
