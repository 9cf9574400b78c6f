import { hash } from "node:crypto";

/** What Messages accepts as the id of a tool call, and as many characters as the strictest vendors of Chat Completions take. */
const SHARED_TOOL_ID = /^[a-zA-Z0-9_-]{1,40}$/;
const SHARED_LENGTH = 40;

/** No vendor's ids come near; a longer one that doesn't fit is not worth escaping character by character. */
const ESCAPABLE_LENGTH = 512;

// These prefixes are reserved: an id that already begins with one is itself rewritten, so that no two ids ever meet.
const ESCAPED = "esc-";
const HASHED_FOR_MESSAGES = "big-";
const HASHED_FOR_CHAT = "sha-";

/**
 * The id under which Messages knows a tool call of Chat Completions. An id that fits both protocols stays as it is; any other
 * is escaped so that {@link toolIdForChat} gives back the very same id, with no state kept between the turns; one of more than
 * 512 characters is replaced by its hash. Two ids never become one.
 */
export function toolIdForMessages(id: string): string {
  if (fitsBoth(id)) return id;
  return id.length <= ESCAPABLE_LENGTH ? escapeId(id) : digest(HASHED_FOR_MESSAGES, id);
}

/**
 * The id under which Chat Completions knows a tool call of Messages. What {@link toolIdForMessages} escaped comes back as its
 * upstream gave it; an id of Messages itself that is too long, or that Messages would refuse, is replaced by its hash. Two ids
 * never become one.
 */
export function toolIdForChat(id: string): string {
  if (fitsBoth(id) && !id.startsWith(HASHED_FOR_CHAT)) return id;
  return originalOf(id) ?? digest(HASHED_FOR_CHAT, id);
}

/**
 * An id for the `turn`-th legacy `function_call` of a request, which has none of its own. It begins like an escaped id
 * without being one, so that no id of a caller can meet it.
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

/** What was escaped, if `id` is exactly what {@link toolIdForMessages} makes of it. */
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
