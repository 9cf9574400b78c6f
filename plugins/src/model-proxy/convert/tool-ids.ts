import { hash } from "node:crypto";

/** What Messages accepts as the id of a tool call, and as many characters as the strictest vendors of Chat Completions take. */
const SHARED_TOOL_ID = /^[a-zA-Z0-9_-]{1,40}$/;
const CHAT_TOOL_ID_LENGTH = 40;

// Both prefixes are reserved: an id that already begins with one is itself rewritten, so that no two ids ever meet.
const ESCAPED = "esc-";
const HASHED = "sha-";

/**
 * The id under which Messages knows a tool call of Chat Completions. An id that fits both protocols stays as it is; any other is
 * escaped so that {@link toolIdForChat} gives back the very same id, with no state kept between the turns. Two ids never become one.
 */
export function toolIdForMessages(id: string): string {
  return fitsBoth(id) ? id : escapeId(id);
}

/**
 * The id under which Chat Completions knows a tool call of Messages. What {@link toolIdForMessages} escaped comes back as its
 * upstream gave it; an id of Messages itself that is too long, or that Messages would refuse, is replaced by its hash. Two ids never
 * become one.
 */
export function toolIdForChat(id: string): string {
  if (id.startsWith(ESCAPED)) {
    const original = readEscaped(id);
    return !fitsBoth(original) && escapeId(original) === id ? original : digest(id);
  }
  return fitsBoth(id) && !id.startsWith(HASHED) ? id : digest(id);
}

/**
 * An id for the `turn`-th legacy `function_call` of a request, which has none of its own. It begins like an escaped id
 * without being one, so that no id of a caller can meet it.
 */
export function toolIdForFunctionCall(turn: number): string {
  return `${ESCAPED}-call${turn}`;
}

function fitsBoth(id: string): boolean {
  return SHARED_TOOL_ID.test(id) && !id.startsWith(ESCAPED);
}

// Readable in a log, and safe for lone surrogates, which base64 over UTF-8 is not.
function escapeId(id: string): string {
  return ESCAPED + id.replace(/[^a-zA-Z0-9_]/g, (unit) => `-${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function readEscaped(id: string): string {
  return id.slice(ESCAPED.length).replace(/-([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function digest(id: string): string {
  return HASHED + hash("sha256", Buffer.from(id, "utf16le"), "base64url").slice(0, CHAT_TOOL_ID_LENGTH - HASHED.length);
}
