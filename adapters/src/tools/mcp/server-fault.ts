import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { BROKEN_OFF } from "./http-transport.ts";

/** What a failure at a server means for whoever asked. */
export type ServerFault =
  /** The connection is gone; `unheard`: the server refused before it did anything. */
  | { readonly kind: "lost"; readonly unheard: boolean }
  /** The server is there but does not serve us now. */
  | { readonly kind: "unavailable" }
  /** The server answered that it will not. */
  | { readonly kind: "refused" }
  /** The server answered something that is no answer. */
  | { readonly kind: "unreadable" };

/** What a server answers that does not know the session. */
const UNKNOWN_SESSION = 404;
const GONE: ReadonlySet<string> = new Set([SdkErrorCode.NotConnected, SdkErrorCode.ConnectionClosed, SdkErrorCode.SendFailed]);
const UNREADABLE: ReadonlySet<string> = new Set([SdkErrorCode.InvalidResult, SdkErrorCode.UnsupportedResultType]);

export function readFault(error: unknown): ServerFault {
  if (error instanceof SdkHttpError)
    return error.status === UNKNOWN_SESSION ? { kind: "lost", unheard: true } : { kind: "unavailable" };
  if (error instanceof ProtocolError) return error.data === BROKEN_OFF ? { kind: "lost", unheard: false } : { kind: "refused" };
  if (error instanceof SdkError) {
    if (GONE.has(error.code)) return { kind: "lost", unheard: false };
    return UNREADABLE.has(error.code) ? { kind: "unreadable" } : { kind: "unavailable" };
  }
  // What `fetch` throws when nobody is there.
  return error instanceof TypeError ? { kind: "lost", unheard: false } : { kind: "unavailable" };
}

/** A word for logs and messages. Never the error's message: it quotes addresses and what the server said. */
export function faultCode(error: unknown): string {
  if (error instanceof SdkHttpError) return `HTTP_${error.status}`;
  const { code, name, cause } = (error ?? {}) as { code?: unknown; name?: unknown; cause?: unknown };
  if (typeof code === "number") return `RPC_${code}`;
  if (typeof code === "string" && /^\w{1,64}$/.test(code)) return code;
  if (cause !== undefined && cause !== error) return faultCode(cause);
  return typeof name === "string" && /^\w{1,64}$/.test(name) ? name : "UNKNOWN";
}
