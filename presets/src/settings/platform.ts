import { auditSettings } from "@portico/adapters/audit/records";
import { isInstanceKey } from "@portico/adapters/sealing/aes-gcm";
import { type AiSdkFault, aiSdkFaults } from "@portico/adapters/models/ai-sdk-settings";
import { type ProviderFault, providerFaults, wireProtocol } from "@portico/adapters/models/cloud-settings";
import { foreignDialectKey, providerSchema } from "@portico/adapters/models/http-options";
import { notificationsSettings } from "@portico/adapters/notifications/notification-options";
import { outboundSettings } from "@portico/adapters/outbound/outbound-options";
import { telemetrySettings } from "@portico/adapters/telemetry/otlp-options";
import { mcpServersSettings } from "@portico/adapters/tools/mcp-options";
import { pricesSettings, usageSettings } from "@portico/adapters/usage/usage-options";
import { filePath, fromEnv, milliseconds, secret } from "@portico/core";
import { limitsSettings } from "@portico/plugins/conversations-runs/config";
import { safeTokenSettings } from "@portico/plugins/model-proxy/config";
import * as v from "valibot";
import { agentSchema } from "./agent.ts";
import { clusterSchema } from "./cluster.ts";
import { listenSchema, optionalListenSchema, publicUrlSchema } from "./listen.ts";
import { workflowSchema } from "./workflow.ts";

/** More processes than one address needs. Each has its own memory, and its own connections to the providers. */
const MOST_PROCESSES = 64;

/** Whether the listeners use HTTPS, and which certificate. */
const httpsSchema = v.optional(
  v.strictObject({
    enabled: v.optional(
      fromEnv(
        "PORTICO_HTTPS",
        v.boolean(),
        "Whether all listeners use HTTPS. Without `https.cert`, the instance creates a self-signed certificate.",
      ),
      false,
    ),
    cert: v.optional(
      fromEnv("PORTICO_HTTPS_CERT", filePath(), "Certificate of the listeners, with its chain, as a PEM file. Enables HTTPS."),
    ),
    key: v.optional(fromEnv("PORTICO_HTTPS_KEY", filePath(), "Private key of `https.cert`, as a PEM file without a passphrase.")),
  }),
  {},
);

/** How changed secrets take effect while a service runs. */
const rotationSchema = v.optional(
  v.strictObject({
    overlapMs: v.optional(
      fromEnv(
        "PORTICO_ROTATION_OVERLAP_MS",
        milliseconds(0),
        "How long a replaced or removed token stays valid. Its realtime connections, and links and grants made with it, end with it.",
      ),
      600_000,
    ),
    watchMs: v.optional(
      fromEnv(
        "PORTICO_ROTATION_WATCH_MS",
        milliseconds(0),
        "Interval of the checks whether a file with a secret has changed. A change takes effect after two checks. 0: only SIGHUP reads them again.",
      ),
      2_000,
    ),
  }),
  {},
);

/** The providers of an instance (open points 1 and 2). */
const providersSchema = v.pipe(
  v.array(providerSchema),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    for (const [index, provider] of dataset.value.entries()) {
      const refuse = (key: "id" | "dialect" | ProviderFault["key"] | AiSdkFault["key"], message: string) =>
        addIssue({
          message,
          input: provider[key],
          path: [
            { type: "array", origin: "value", input: dataset.value, key: index, value: provider },
            { type: "object", origin: "value", input: { ...provider }, key, value: provider[key] },
          ],
        });
      if (dataset.value.findIndex((other) => other.id === provider.id) !== index)
        refuse("id", "an id that no other provider has");
      if (provider.credential && provider.keys) refuse("credential", "nothing: the provider has `keys`");
      for (const { key, expected } of [...providerFaults(provider), ...aiSdkFaults(provider)]) refuse(key, expected);
      const models = provider.models === "discover" ? [] : provider.models;
      const checkDialect = (key: "dialect" | "models", dialect: typeof provider.dialect) => {
        const foreign = dialect && foreignDialectKey(wireProtocol(provider.protocol), dialect);
        if (foreign) refuse(key, `no dialect with this "${foreign}": the protocol "${provider.protocol}" has none`);
      };
      checkDialect("dialect", provider.dialect);
      for (const model of models) if (typeof model !== "string") checkDialect("models", model.dialect);
      const names = models.flatMap((model) => (typeof model === "string" ? [model] : [model.id, ...(model.aliases ?? [])]));
      if (new Set(names).size < names.length) refuse("models", "names and aliases that no other model of the provider has");
    }
  }),
  v.description("Model providers. If the list is empty, `autoProviders` applies."),
);

/**
 * All keys of a platform's configuration (open points 1). Every preset accepts all keys, also the keys of areas that it does not run, so
 * that one file works for every preset.
 */
export const platformSchema = v.strictObject({
  instance: v.optional(
    v.strictObject({
      mode: v.optional(
        fromEnv(
          "PORTICO_MODE",
          v.picklist(["local", "remote"]),
          "`local`: only users of this machine reach the instance. `remote`: others do, too.",
        ),
        "local",
      ),
      key: v.optional(
        fromEnv(
          "PORTICO_INSTANCE_KEY",
          v.pipe(
            secret(),
            v.check((key) => isInstanceKey(key.reveal()), "32 random bytes in base64url: 43 characters"),
          ),
          "The key that encrypts stored sensitive values. If it is not set, it is created when it is first needed.",
        ),
      ),
      otherKeys: v.optional(
        fromEnv(
          "PORTICO_INSTANCE_OTHER_KEYS",
          v.array(
            v.pipe(
              secret(),
              v.check((key) => isInstanceKey(key.reveal()), "32 random bytes in base64url: 43 characters"),
            ),
          ),
          "Keys that decrypt stored values and encrypt none: earlier values of `instance.key`, or its next one, while it is changed.",
        ),
        [],
      ),
    }),
    {},
  ),
  dataDir: v.optional(fromEnv("PORTICO_DATA_DIR", filePath(), "Folder of all data that must survive a restart."), ".portico"),
  providers: v.optional(fromEnv("PORTICO_PROVIDERS", providersSchema), []),
  autoProviders: v.optional(
    fromEnv(
      "PORTICO_AUTO_PROVIDERS",
      v.boolean(),
      "If no provider is configured, use the providers whose keys are in the usual environment variables, and local model servers.",
    ),
    true,
  ),
  ...safeTokenSettings,
  shutdownGraceMs: v.optional(
    fromEnv("PORTICO_SHUTDOWN_GRACE_MS", milliseconds(0), "How long a stop waits for open requests and running work."),
    10_000,
  ),
  shutdownDelayMs: v.optional(
    fromEnv(
      "PORTICO_SHUTDOWN_DELAY_MS",
      milliseconds(0),
      "How long a stop goes on accepting requests while `/readyz` returns 503, so that load balancers send requests elsewhere.",
    ),
    0,
  ),
  log: v.optional(
    v.strictObject({
      level: v.optional(
        fromEnv(
          "PORTICO_LOG_LEVEL",
          v.picklist(["debug", "info", "warn", "error", "silent"]),
          "The lowest level that is logged.",
        ),
        "info",
      ),
      format: v.optional(
        fromEnv(
          "PORTICO_LOG_FORMAT",
          v.picklist(["auto", "text", "json"]),
          "Format of the log on standard error. `auto`: text on a terminal, JSON elsewhere.",
        ),
        "auto",
      ),
    }),
    {},
  ),
  rotation: rotationSchema,
  telemetry: v.optional(v.strictObject(telemetrySettings), {}),
  // An instance that its administrators only configure must not fill its disk.
  audit: v.optional(v.strictObject({ ...auditSettings, keep: v.optional(auditSettings.keep.wrapped, "400d") }), {}),
  usage: v.optional(v.strictObject(usageSettings), {}),
  ...pricesSettings,
  ...limitsSettings,
  https: httpsSchema,
  proxy: v.optional(
    v.strictObject({
      listen: listenSchema("PROXY"),
      publicUrl: publicUrlSchema("PROXY"),
      processes: v.optional(
        fromEnv(
          "PORTICO_PROXY_PROCESSES",
          v.union([v.literal("auto"), v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MOST_PROCESSES))]),
          "How many processes of this machine serve the model proxy of the presets `local` and `proxy`. More than one needs Linux. `auto`: on Linux, one for each processor.",
        ),
        1,
      ),
    }),
    {},
  ),
  workflow: workflowSchema,
  agent: agentSchema,
  // Without `listen`, the listener of the probes does not exist.
  probes: v.optional(v.strictObject({ listen: optionalListenSchema("PROBES") })),
  ...mcpServersSettings,
  ...outboundSettings,
  ...notificationsSettings,
  cluster: clusterSchema,
});

/** A platform's configuration, after parsing. */
export type PlatformSettings = v.InferOutput<typeof platformSchema>;

/** A platform's configuration as written in `portico.config.ts`: `export default { … } satisfies PlatformConfig`. */
export type PlatformConfig = v.InferInput<typeof platformSchema>;
