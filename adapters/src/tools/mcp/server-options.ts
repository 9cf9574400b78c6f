import { Secret } from "@portico/core";
import type { OutboundOptions } from "../../outbound/outbound-options.ts";
import type { McpToolsOptions } from "../mcp-options.ts";
import type { TokenSource } from "./oauth/session-access.ts";

export type McpPlace =
  | {
      readonly kind: "program";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly cwd: string | undefined;
    }
  | {
      readonly kind: "address";
      readonly url: URL;
      readonly headers: Readonly<Record<string, string>>;
      /** Undefined: found out when connecting. */
      readonly transport: "http" | "sse" | undefined;
      readonly outbound: OutboundOptions | undefined;
    };

/** Parsed options, including secrets. */
export interface McpServer {
  readonly id: string;
  readonly place: McpPlace;
  readonly trusted: boolean;
  readonly callTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** Undefined: the server needs no account. */
  readonly tokens?: TokenSource | undefined;
}

/** Throws a TypeError for invalid options, a RangeError for an invalid time. Neither message contains a value. */
export function readServerOptions(options: McpToolsOptions): McpServer {
  const { id, trusted = false, callTimeoutMs = 60_000, connectTimeoutMs = 30_000 } = options;
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(id))
    throw new TypeError('The name of an MCP server is 1-64 letters, digits, "_", "." and "-"');
  for (const [name, ms] of Object.entries({ callTimeoutMs, connectTimeoutMs })) {
    if (!Number.isFinite(ms) || ms <= 0)
      throw new RangeError(`MCP server "${id}": ${name} must be a number of milliseconds above 0`);
  }
  return { id, place: readPlace(options), trusted, callTimeoutMs, connectTimeoutMs };
}

function readPlace({ id, command, args, env, cwd, url, headers, transport, auth, outbound }: McpToolsOptions): McpPlace {
  if ((command === undefined) === (url === undefined)) throw new TypeError(`MCP server "${id}" needs either a command or a url`);
  if (command !== undefined) {
    if (headers || transport || auth) throw new TypeError(`MCP server "${id}": headers, transport and auth belong to a url`);
    const place: McpPlace = { kind: "program", command, args: args ?? [], env: revealed(env), cwd };
    const texts = [command, ...place.args, ...Object.entries(place.env).flat(), cwd ?? ""];
    if (command === "" || texts.some((text) => text.includes("\0")))
      throw new TypeError(
        `MCP server "${id}" needs a program's name, and no U+0000 in it, its arguments, variables and directory`,
      );
    return place;
  }
  if (args || env || cwd !== undefined) throw new TypeError(`MCP server "${id}": args, env and cwd belong to a command`);
  const address = URL.parse(url!);
  // The URL may contain a credential by mistake, so no message repeats it.
  if (!address || !/^https?:$/.test(address.protocol) || address.username || address.password)
    throw new TypeError(`MCP server "${id}": url must be an address that begins with http:// or https://, without user name`);
  return { kind: "address", url: address, headers: checkedHeaders(id, revealed(headers)), transport, outbound };
}

function checkedHeaders(id: string, headers: Record<string, string>): Record<string, string> {
  try {
    return Object.fromEntries(new Headers(headers));
  } catch {
    // Without its cause, which quotes the value.
    throw new TypeError(`MCP server "${id}": a header has a name or a value that HTTP does not take`);
  }
}

function revealed(values: Readonly<Record<string, Secret | string>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, value instanceof Secret ? value.reveal() : value]),
  );
}
