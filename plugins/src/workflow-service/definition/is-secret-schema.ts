import { isRecord } from "@portico/core/contract";

/** Whether a schema says that its value is a secret. */
export function isSecretSchema(schema: unknown): boolean {
  return isRecord(schema) && (schema["writeOnly"] === true || schema["format"] === "password");
}
