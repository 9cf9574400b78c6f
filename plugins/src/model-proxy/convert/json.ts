import { ExactNumber } from "./exact-json.ts";

/** A JSON value as `JSON.parse` gives it, or as `parseExactly` does. */
export type Json = null | boolean | number | string | ExactNumber | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** A JSON object that is still being built. */
export type JsonObjectDraft = { [key: string]: Json | undefined };

/** Whether a parsed value is an object (and neither an array nor null nor a number). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}
