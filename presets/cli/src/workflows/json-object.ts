import { parseJson } from "@portico/core";

/** Parses a text as a JSON object. Returns undefined if the text is not a JSON object. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = parseJson(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    // The parser's error quotes the text, which may be confidential.
    return undefined;
  }
}
