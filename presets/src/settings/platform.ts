import { filePath, fromEnv } from "@portico/core";
import * as v from "valibot";
import { agentSchema } from "./agent.ts";
import { listenSchema } from "./listen.ts";
import { mcpServersSchema } from "./mcp-servers.ts";
import { providersSchema } from "./provider.ts";
import { milliseconds } from "./scalar.ts";
import { workflowSchema } from "./workflow.ts";

/**
 * All keys of a platform's configuration (open points 1). Every preset takes all of them, also those of areas that it does not run, so
 * that one file serves every preset.
 */
export const platformSchema = v.strictObject({
  instance: v.optional(
    v.strictObject({
      mode: v.optional(
        fromEnv(
          "PORTICO_MODE",
          v.pipe(v.picklist(["local", "remote"]), v.description("Whether only this machine's user reaches the instance.")),
        ),
        "local",
      ),
    }),
    {},
  ),
  dataDir: v.optional(
    fromEnv("PORTICO_DATA_DIR", v.pipe(filePath(), v.description("Everything that must survive a restart."))),
    ".portico",
  ),
  providers: v.optional(fromEnv("PORTICO_PROVIDERS", providersSchema), []),
  autoProviders: v.optional(
    fromEnv(
      "PORTICO_AUTO_PROVIDERS",
      v.pipe(
        v.boolean(),
        v.description(
          "While no provider is configured: serve those whose keys stand in the usual environment variables, and local model servers.",
        ),
      ),
    ),
    true,
  ),
  allowRawCredentials: v.optional(
    fromEnv(
      "PORTICO_ALLOW_RAW_CREDENTIALS",
      v.pipe(v.boolean(), v.description("Whether an agent's tool may be given a provider's real key, after confirmation.")),
    ),
    false,
  ),
  shutdownGraceMs: v.optional(
    fromEnv("PORTICO_SHUTDOWN_GRACE_MS", v.pipe(milliseconds(0), v.description("How long a stop waits for what is in flight."))),
    10_000,
  ),
  log: v.optional(
    v.strictObject({
      level: v.optional(
        fromEnv(
          "PORTICO_LOG_LEVEL",
          v.pipe(
            v.picklist(["debug", "info", "warn", "error", "silent"]),
            v.description("The least weighty line that is written."),
          ),
        ),
        "info",
      ),
      format: v.optional(
        fromEnv(
          "PORTICO_LOG_FORMAT",
          v.pipe(
            v.picklist(["auto", "text", "json"]),
            v.description("How lines on standard error look; `auto`: text on a terminal, JSON elsewhere."),
          ),
        ),
        "auto",
      ),
    }),
    {},
  ),
  proxy: v.optional(v.strictObject({ listen: listenSchema("PROXY") }), {}),
  workflow: workflowSchema,
  agent: agentSchema,
  mcpServers: mcpServersSchema,
});

/** A platform's configuration as its schema reads it. */
export type PlatformSettings = v.InferOutput<typeof platformSchema>;

/** A platform's configuration as a `portico.config.ts` spells it: `export default { … } satisfies PlatformConfig`. */
export type PlatformConfig = v.InferInput<typeof platformSchema>;
