import {
  filePath,
  fromEnv,
  headerSecret,
  type Live,
  milliseconds,
  record,
  type Secret,
  secret,
  settingName,
} from "@portico/core";
import * as v from "valibot";
import type { OutboundOptions } from "../outbound/outbound-options.ts";

/** Scopes, and allowed hosts. */
const MOST = 100;
/** RFC 6749, 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/;

/** How a server at an address is given access to an account. */
const auth = v.pipe(
  v.strictObject({
    type: v.pipe(v.literal("oauth"), v.description("OAuth 2.1. A person connects the server with `portico mcp login`.")),
    per: v.optional(
      v.pipe(
        v.picklist(["instance", "user"]),
        v.description(
          "Whose account is used: `instance` is one account for all users, which the owner connects. With `user`, each user connects their own.",
        ),
      ),
      "instance",
    ),
    scopes: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(SCOPE, "a scope, without spaces"))),
        v.maxLength(MOST),
        v.description("Scopes to ask for. Default: those that the server asks for."),
      ),
    ),
    clientId: v.optional(
      v.pipe(
        v.string(),
        v.nonEmpty(),
        v.description("Client that the service knows. Default: Portico registers a client by itself."),
      ),
    ),
    clientSecret: v.optional(v.pipe(secret(), v.description("Secret of `clientId`, if it has one."))),
    allow: v.optional(
      v.pipe(
        v.array(v.string()),
        v.maxLength(MOST),
        v.description(
          "Hosts of private networks that may issue tokens: `host`, `host:port`, an address, or a network. The host of `url` is always allowed.",
        ),
      ),
      [],
    ),
  }),
  v.check(
    ({ clientId, clientSecret }) => clientSecret === undefined || clientId !== undefined,
    "clientSecret only with clientId",
  ),
);

const server = v.pipe(
  v.strictObject({
    command: v.optional(
      v.pipe(
        v.pipe(v.string(), v.nonEmpty()),
        v.description("Program to start. Portico talks to it over standard input and output."),
      ),
    ),
    args: v.optional(v.pipe(v.array(v.string()), v.description("Arguments of the program. Put secrets into `env`."))),
    env: v.optional(
      v.pipe(record(v.pipe(v.string(), v.nonEmpty()), secret()), v.description("Environment variables of the program.")),
    ),
    cwd: v.optional(
      v.pipe(filePath(), v.description("Folder that the program starts in. Default: the service's working directory.")),
    ),
    url: v.optional(
      v.pipe(
        v.string(),
        v.check(isHttp, "an http or https address without user name"),
        v.description("Address of a server that is already running."),
      ),
    ),
    headers: v.optional(
      v.pipe(record(v.pipe(v.string(), v.nonEmpty()), headerSecret()), v.description("Headers of every request to `url`.")),
    ),
    transport: v.optional(
      v.pipe(
        v.picklist(["http", "sse"]),
        v.description(
          "How to talk to `url`: `http` is Streamable HTTP, `sse` the transport of 2024-11-05. Default: Streamable HTTP, or `sse` if the server refuses it.",
        ),
      ),
    ),
    auth: v.optional(auth),
    callTimeoutMs: v.optional(
      v.pipe(
        milliseconds(1),
        v.description("How long a tool may be silent. Every progress message restarts this timeout. Default: 60,000."),
      ),
    ),
    trusted: v.optional(
      v.pipe(
        v.boolean(),
        v.description("Whether the server may lower the risk of its tools. An untrusted server can only raise it."),
      ),
      false,
    ),
  }),
  v.check(({ command, url }) => (command === undefined) !== (url === undefined), "either command or url"),
  v.check(
    ({ url, args, env, cwd }) => url === undefined || (args === undefined && env === undefined && cwd === undefined),
    "args, env and cwd only together with command",
  ),
  v.check(
    ({ command, headers, transport, auth }) => command === undefined || (!headers && !transport && !auth),
    "headers, transport and auth only together with url",
  ),
  v.check(
    ({ headers, auth }) => !auth || !Object.keys(headers ?? {}).some((name) => name.toLowerCase() === "authorization"),
    "auth instead of a header Authorization",
  ),
);

/** MCP servers whose tools agents may use (open points 3), which presets have as a setting of the instance. */
export const mcpServersSettings = {
  mcpServers: v.optional(
    fromEnv("PORTICO_MCP_SERVERS", record(settingName(), server), "MCP servers whose tools agents may use, by name."),
    {},
  ),
};

/** The setting `auth` of an MCP server. */
export type McpAuthOptions = v.InferOutput<typeof auth>;

/** One MCP server: a program to start, or an address. */
export interface McpToolsOptions extends Partial<Omit<v.InferOutput<typeof server>, "env" | "headers">> {
  /** The server's name: the prefix of the IDs and names of its tools. 1-64 letters, digits, `_`, `.` and `-`. */
  readonly id: string;
  /** Added to the few variables that every program needs. The program gets no other environment variables of this process. */
  readonly env?: Readonly<Record<string, Secret | string>> | undefined;
  /** Headers of every request to `url`. */
  readonly headers?: Readonly<Record<string, Secret | string>> | undefined;
  /**
   * The next `env` and `headers`, while the app is open. If they differ, a new connection is opened with them, or a new program is started, for
   * the calls that begin later. Calls in progress finish on the earlier connection. Undefined keeps the present ones. Default: they never
   * change.
   */
  readonly rotation?: Live<Pick<McpToolsOptions, "env" | "headers"> | undefined> | undefined;
  /** A proxy, and authorities, for the connections to `url`. Default: direct connections, and the authorities of Node.js. */
  readonly outbound?: OutboundOptions | undefined;
  /** Timeout of connecting and reading the list of tools, in milliseconds. Default: 30,000. */
  readonly connectTimeoutMs?: number | undefined;
}

function isHttp(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password;
}
