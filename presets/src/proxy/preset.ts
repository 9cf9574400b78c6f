import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { definePreset, ports } from "@portico/core";
import { instanceAudit, instanceUsage } from "../platform/audit-and-usage.ts";
import { instanceIdentity, instanceTokens } from "../platform/instance.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import { proxyService } from "../platform/proxy-service.ts";
import { telemetry } from "../platform/service-adapters.ts";
import { probesService } from "../platform/service-pages.ts";
import { noteStores } from "../platform/stores-file.ts";

export type { PlatformOptions } from "../platform/platform-options.ts";
export { chooseProviders } from "../platform/provider-choice.ts";
export { readPlatformOptions } from "../platform/read-platform-options.ts";
export { type ProxyConfig, proxySchema } from "./config.ts";

/** Only the model proxy: surface `proxy`. */
export const proxy = definePreset((options: PlatformOptions) => {
  const { settings, providers, proxyProcesses } = options;
  // The metrics are shown only to authenticated scrapers. Safe tokens are for the proxy itself.
  const prometheus = settings.probes?.listen && createPrometheusMetrics(proxyProcesses?.snapshots);
  const identity = instanceIdentity(instanceTokens(options));
  return {
    name: "proxy",
    onOpen: noteStores(settings.dataDir),
    adapters: [
      telemetry(settings, { prometheus }, proxyProcesses?.own),
      ...sqliteStore({ dir: settings.dataDir, ports: [ports.records, ports.secrets] }),
      instanceAudit(settings),
      instanceUsage(settings),
      ...providers.map((provider) => provider.adapter),
      ...(prometheus ? [identity] : []),
    ],
    plugins: [proxyService(options), ...(prometheus ? probesService(options, prometheus) : [])],
  };
});
