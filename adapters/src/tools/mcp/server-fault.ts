import { InsufficientScopeError, ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { AccountChanged } from "./oauth/session-access.ts";
import { ENDED_EARLY } from "./http-transport.ts";

/** The meaning of a server's failure for the caller. */
export type ServerFault =
  /** The connection is lost. `unheard`: the server refused the request before it had an effect. */
  | { readonly kind: "lost"; readonly unheard: boolean }
  /** The server is reachable but does not serve requests now. */
  | { readonly kind: "unavailable" }
  /** The server returned an error. `words` is the server's message for the model that called, and may be empty. */
  | { readonly kind: "refused"; readonly words: string }
  /** The server's answer is invalid. */
  | { readonly kind: "unreadable" };

/** The answer of a server that does not know the session. */
const UNKNOWN_SESSION = 404;
/** Maximum characters of a server's error that a model gets. */
const LONGEST_WORDS = 4000;
const GONE: ReadonlySet<string> = new Set([SdkErrorCode.NotConnected, SdkErrorCode.ConnectionClosed, SdkErrorCode.SendFailed]);
const UNREADABLE: ReadonlySet<string> = new Set([SdkErrorCode.InvalidResult, SdkErrorCode.UnsupportedResultType]);

/** The server accepts the account, and wants more scopes for this request (RFC 6750, 3.1). */
const SCOPE_WORDS =
  "insufficient_scope: The access to the account does not cover this tool. Add its scope to auth.scopes of the MCP server, and connect it again.";

export function readFault(error: unknown): ServerFault {
  if (error instanceof AccountChanged) return { kind: "lost", unheard: true };
  if (error instanceof InsufficientScopeError) return { kind: "refused", words: SCOPE_WORDS };
  if (error instanceof SdkHttpError)
    return error.status === UNKNOWN_SESSION ? { kind: "lost", unheard: true } : { kind: "unavailable" };
  if (error instanceof ProtocolError) {
    if (error.data === ENDED_EARLY) return { kind: "lost", unheard: false };
    return { kind: "refused", words: error.message.slice(0, LONGEST_WORDS).toWellFormed().trim() };
  }
  if (error instanceof SdkError) {
    if (GONE.has(error.code)) return { kind: "lost", unheard: false };
    return UNREADABLE.has(error.code) ? { kind: "unreadable" } : { kind: "unavailable" };
  }
  // The error of `fetch` when the server is unreachable.
  return error instanceof TypeError ? { kind: "lost", unheard: false } : { kind: "unavailable" };
}

/** A code for logs and messages. Never the error's message: it quotes addresses and the server's text. */
export function faultCode(error: unknown): string {
  if (error instanceof SdkHttpError) return `HTTP_${error.status}`;
  // Its number is not of the protocol.
  if (error instanceof DOMException) return error.name;
  const { code, name, cause } = (error ?? {}) as { code?: unknown; name?: unknown; cause?: unknown };
  if (typeof code === "number") return `RPC_${code}`;
  if (typeof code === "string" && /^\w{1,64}$/.test(code)) return code;
  if (cause !== undefined && cause !== error) return faultCode(cause);
  return typeof name === "string" && /^\w{1,64}$/.test(name) ? name : "UNKNOWN";
}
