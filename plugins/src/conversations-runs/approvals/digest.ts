import { hash } from "node:crypto";
import type { ports } from "@portico/core";
import canonicalize from "canonicalize";

/** A digest of any JSON value, the same for the same value. */
export function digestOf(value: unknown): string {
  return hash("sha256", canonicalize(value) ?? "", "base64url");
}

/** A digest of everything that a person sees of a tool when they decide: a changed tool has another one. */
export function toolDigest({ id, description, inputSchema, riskLevel }: ports.ToolDefinition): string {
  return digestOf({ id, description, inputSchema, riskLevel });
}
