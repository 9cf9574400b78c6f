import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { definePreset } from "@portico/core";
import { modelProxy } from "@portico/plugins/model-proxy";
import { logFormat } from "../platform/log-format.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import { storageAdapters } from "../platform/storage-adapters.ts";

export type { PlatformOptions } from "../platform/platform-options.ts";
export { chooseProviders } from "../platform/provider-choice.ts";
export { readPlatformOptions } from "../platform/read-platform-options.ts";
export { type ProxyConfig, proxySchema } from "./config.ts";

/** The model proxy alone: surface `proxy`. */
export const proxy = definePreset(({ settings, providers }: PlatformOptions) => ({
  name: "proxy",
  adapters: [
    openTelemetry({ level: settings.log.level, format: logFormat(settings.log.format) }),
    ...storageAdapters(settings.dataDir),
    ...providers.map((provider) => provider.adapter),
  ],
  // Large uploads wait beside the records: a system's temporary folder is often memory.
  plugins: [modelProxy({ spoolDir: settings.dataDir })],
}));
