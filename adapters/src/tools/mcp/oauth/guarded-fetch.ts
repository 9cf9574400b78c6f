import type { FetchLike } from "@modelcontextprotocol/client";
import type { ports } from "@portico/core";
import { createAddressGuard } from "../../../outbound/address-guard.ts";
import type { OutboundOptions } from "../../../outbound/outbound-options.ts";
import { createPatientFetch } from "../../../outbound/patient-fetch.ts";
import { withDeadline } from "../with-deadline.ts";

/** An answer of discovery, registration or a token endpoint is a few kilobytes. */
const ANSWER_BYTES = 256 * 1024;
const ANSWER_MS = 15_000;
const MOST_REDIRECTS = 3;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Requests to addresses that a server of tools names. */
export interface GuardedFetch {
  /** The same requests, under one more signal. */
  under(signal: AbortSignal): FetchLike;
  close(): Promise<void>;
}

/** Thrown for an address that must not be called. A TypeError, because the library goes on after any other error. */
class NotAllowed extends TypeError {
  readonly code = "address_refused";
}

/** Whether a request was not sent because its address must not be called. */
export function isAddressRefused(error: unknown): boolean {
  for (let each: unknown = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth++)
    if (each instanceof NotAllowed || each.name === "AddressRefused") return true;
  return false;
}

/**
 * Requests for the OAuth of the server at `url`. The server and its authorization server name the addresses, so these must be public:
 * otherwise a server could make this process call machines of a private network. Allowed besides are the host of `url`, and `allow`, in the
 * form of the option of `httpNode`. Every answer is small and comes soon. Metadata may redirect to other allowed addresses. Requests with a body,
 * which holds a code, a token or a secret, are not redirected.
 */
export function createGuardedFetch(
  {
    url,
    allow,
    outbound,
  }: { readonly url: URL; readonly allow: readonly string[]; readonly outbound: OutboundOptions | undefined },
  clock: ports.Clock,
): GuardedFetch {
  const guard = createAddressGuard([url.hostname, ...allow]);
  const requests = createPatientFetch(outbound, (origin) => guard.lookup(portOf(origin)));

  const ask = async (to: URL, init: RequestInit | undefined, signal: AbortSignal, redirects = 0): Promise<Response> => {
    if (!/^https?:$/.test(to.protocol) || guard.refuses(to.hostname, portOf(to)))
      throw new NotAllowed("The address may not be called");
    // A proxy, and runtimes with their own connections, resolve names by themselves.
    await guard.checkName(to.hostname, portOf(to));
    const response = await requests.fetch(to, { ...init, signal, redirect: "manual" });
    const { status, statusText, headers } = response;
    const body = await readBody(response);
    const next = isRead(init) && REDIRECTS.has(status) ? URL.parse(headers.get("location") ?? "", to) : null;
    if (next && redirects >= MOST_REDIRECTS) throw new Error("The answer redirects too often");
    if (next) return ask(next, init, signal, redirects + 1);
    return new Response([204, 205, 304].includes(status) ? null : body, { status, statusText, headers });
  };
  return {
    under: (signal) => (to, init) =>
      withDeadline(clock, ANSWER_MS, [signal, ...(init?.signal ? [init.signal] : [])], (stop) => ask(new URL(to), init, stop)),
    close: () => requests.close(),
  };
}

function isRead(init: RequestInit | undefined): boolean {
  return (init?.method ?? "GET").toUpperCase() === "GET";
}

async function readBody({ body }: Response): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > ANSWER_BYTES) throw new Error("The answer is too large");
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

function portOf({ port, protocol }: URL): number {
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}
