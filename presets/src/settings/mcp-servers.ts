import { filePath, fromEnv, headerSecret, milliseconds, record, secret, settingName } from "@portico/core";
import * as v from "valibot";
import { text } from "./scalar.ts";

const serverSchema = v.pipe(
  v.strictObject({
    command: v.optional(v.pipe(text(), v.description("Program to start. Portico talks to it over standard input and output."))),
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
  v.check(({ command, headers }) => command === undefined || headers === undefined, "headers only together with url"),
);

/** Servers whose tools agents may use (open points 3). */
export const mcpServersSchema = v.optional(
  fromEnv("PORTICO_MCP_SERVERS", record(settingName(), serverSchema), "MCP servers whose tools agents may use, by name."),
  {},
);

function isHttp(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password;
}
