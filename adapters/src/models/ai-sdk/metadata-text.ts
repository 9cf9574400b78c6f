import { isJsonObject } from "@portico/core/model-protocols";
import type { Metadata } from "./language-model.ts";

/** Marks signatures that contain metadata of the AI SDK. Signatures of other providers never begin with it. */
const MARK = "ai-sdk.";

/**
 * What the model's provider needs back, as a signature, which callers return unchanged. Gemini refuses calls without its thought signature
 * (cloudflare/ai#502, ben-vargas/ai-sdk-provider-gemini-cli#37), and reasoning models lose theirs (mozilla-ai/any-llm#1149). "" without metadata.
 */
export function writeMetadata(metadata: unknown): string {
  if (!isJsonObject(metadata) || Object.keys(metadata).length === 0) return "";
  return MARK + Buffer.from(JSON.stringify(metadata)).toString("base64url");
}

/** The metadata of a signature from `writeMetadata`. Undefined for other signatures. */
export function readMetadata(signature: string | undefined): Metadata | undefined {
  if (!signature?.startsWith(MARK)) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(signature.slice(MARK.length), "base64url").toString());
    return isJsonObject(value) && Object.values(value).every(isJsonObject) ? (value as Metadata) : undefined;
  } catch {
    return undefined;
  }
}
