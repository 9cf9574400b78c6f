import { parseJson } from "@portico/core/client";
import { templateFields } from "@portico/plugins/agent-webhook/client";

/** An initial payload: a text for each field of the template. */
export function samplePayload(template: string): string {
  const fields = templateFields(template).map((field) => [field, `[${field.trim()}]`]);
  return JSON.stringify(Object.fromEntries(fields), undefined, 2);
}

/** Parses a text as a JSON object. Returns the object or the problem. */
export function readPayload(
  text: string,
): { readonly payload: Readonly<Record<string, unknown>> } | { readonly problem: string } {
  let value: unknown;
  try {
    value = text.trim() === "" ? {} : parseJson(text);
  } catch {
    return { problem: "This is not valid JSON" };
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { payload: value as Record<string, unknown> };
  return { problem: "A payload must be an object: { … }" };
}
