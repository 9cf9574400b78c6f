import { parseJson } from "@portico/core/client";

/** Arguments that a person typed, or what is wrong with them. */
export function readArguments(text: string): Record<string, unknown> | string {
  try {
    const value = parseJson(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
    return "Enter a JSON object, in braces";
  } catch {
    return "This is not valid JSON";
  }
}
