import { fromEnv, secret } from "@portico/core";
import * as v from "valibot";
import { headerSecret, name, text } from "./scalar.ts";

const serverSchema = v.pipe(
  v.strictObject({
    command: v.optional(v.pipe(text(), v.description("Program to start; it is spoken to over its standard input and output."))),
    args: v.optional(v.pipe(v.array(v.string()), v.description("Arguments of the program. A secret belongs into `env`."))),
    env: v.optional(v.pipe(v.record(v.pipe(v.string(), v.nonEmpty()), secret()), v.description("Environment of the program."))),
    url: v.optional(
      v.pipe(
        v.string(),
        v.check(isHttp, "an http or https address without user name"),
        v.description("Address of a server that runs elsewhere."),
      ),
    ),
    headers: v.optional(
      v.pipe(v.record(v.pipe(v.string(), v.nonEmpty()), headerSecret()), v.description("Headers of every request to `url`.")),
    ),
    trusted: v.optional(
      v.pipe(
        v.boolean(),
        v.description("Whether the server is believed when it calls a tool harmless; otherwise it may only call one dangerous."),
      ),
      false,
    ),
  }),
  v.check(({ command, url }) => (command === undefined) !== (url === undefined), "either command or url"),
  v.check(
    ({ url, args, env }) => url === undefined || (args === undefined && env === undefined),
    "args and env beside command alone",
  ),
  v.check(({ command, headers }) => command === undefined || headers === undefined, "headers beside url alone"),
);

/** Servers whose tools agents may use (open points 3). */
export const mcpServersSchema = v.optional(
  fromEnv(
    "PORTICO_MCP_SERVERS",
    v.pipe(v.record(name(), serverSchema), v.description("MCP servers whose tools agents may use, by name.")),
  ),
  {},
);

function isHttp(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password;
}
