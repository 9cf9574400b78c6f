import { templateFields } from "@portico/plugins/agent-webhook/render-template";

/** A payload to begin with: a text for each field that the template names. */
export function samplePayload(template: string): string {
  const fields = templateFields(template).map((field) => [field, `[${field.trim()}]`]);
  return JSON.stringify(Object.fromEntries(fields), undefined, 2);
}

/** The object that a text says, or what is wrong with it. */
export function readPayload(
  text: string,
): { readonly payload: Readonly<Record<string, unknown>> } | { readonly problem: string } {
  let value: unknown;
  try {
    value = text.trim() === "" ? {} : JSON.parse(text);
  } catch (error) {
    return { problem: `This is no JSON: ${(error as Error).message}` };
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { payload: value as Record<string, unknown> };
  return { problem: "A payload is an object: { … }" };
}
