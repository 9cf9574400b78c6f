import { hash } from "node:crypto";

/** The characters that Messages accepts in the id of a tool call, and the maximum length of the strictest vendors of Chat Completions. */
const SHARED_TOOL_ID = /^[a-zA-Z0-9_-]{1,40}$/;
const SHARED_LENGTH = 40;

/** Maximum characters of an id that is escaped. Ids of known vendors are much shorter; longer ids are hashed. */
const ESCAPABLE_LENGTH = 512;

// These prefixes are reserved. An id that already begins with one is rewritten, so that two different ids never become equal.
const ESCAPED = "esc-";
const HASHED_FOR_MESSAGES = "big-";
const HASHED_FOR_CHAT = "sha-";

/**
 * The id of a Chat Completions tool call in Messages. An id that is valid in both protocols stays unchanged. Other ids are escaped, so
 * that {@link toolIdForChat} returns the original id without state between the turns. An id of more than 512 characters is replaced by
 * its hash. Two different ids never become equal.
 */
export function toolIdForMessages(id: string): string {
  if (fitsBoth(id)) return id;
  return id.length <= ESCAPABLE_LENGTH ? escapeId(id) : digest(HASHED_FOR_MESSAGES, id);
}

/**
 * The id of a Messages tool call in Chat Completions. An id that {@link toolIdForMessages} escaped is restored. Other ids that are too
 * long, or that Messages would refuse, are replaced by their hash. Two different ids never become equal.
 */
export function toolIdForChat(id: string): string {
  if (fitsBoth(id) && !id.startsWith(HASHED_FOR_CHAT)) return id;
  return originalOf(id) ?? digest(HASHED_FOR_CHAT, id);
}

const SIGNED = "-thought-";
/** Callers may not keep ids that are longer. */
const SIGNATURE_LENGTH = 32_768;

/**
 * The id of a call with the signature that its provider needs back. Messages has no other place that callers return unchanged with a call,
 * and that other providers accept, if a conversation moves to one.
 */
export function signedToolId(id: string, signature: string | undefined): string {
  if (signature === undefined || signature.length > SIGNATURE_LENGTH) return id;
  return id + SIGNED + Buffer.from(signature).toString("base64url");
}

/** The parts of an id from `signedToolId`. */
export function readSignedToolId(id: string): { readonly id: string; readonly signature?: string } {
  const at = id.lastIndexOf(SIGNED);
  const encoded = at === -1 ? "" : id.slice(at + SIGNED.length);
  const signature = Buffer.from(encoded, "base64url");
  if (encoded === "" || signature.toString("base64url") !== encoded) return { id };
  return { id: id.slice(0, at), signature: signature.toString() };
}

/**
 * An id for the `turn`-th legacy `function_call` of a request, because such calls have no id. It begins like an escaped id but is not a
 * valid one, so that it never equals an id of a caller.
 */
export function toolIdForFunctionCall(turn: number): string {
  return `${ESCAPED}-call${turn}`;
}

function fitsBoth(id: string): boolean {
  return SHARED_TOOL_ID.test(id) && !id.startsWith(ESCAPED) && !id.startsWith(HASHED_FOR_MESSAGES);
}

// Readable in a log, and safe for lone surrogates, which base64 over UTF-8 is not.
function escapeId(id: string): string {
  return ESCAPED + id.replace(/[^a-zA-Z0-9_]/g, (unit) => `-${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The original id, if `id` is exactly its escaped form from {@link toolIdForMessages}. */
function originalOf(id: string): string | undefined {
  if (!id.startsWith(ESCAPED) || id.length > ESCAPED.length + 5 * ESCAPABLE_LENGTH) return undefined;
  const original = id
    .slice(ESCAPED.length)
    .replace(/-([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return toolIdForMessages(original) === id ? original : undefined;
}

function digest(prefix: string, id: string): string {
  return prefix + hash("sha256", Buffer.from(id, "utf16le"), "base64url").slice(0, SHARED_LENGTH - prefix.length);
}
