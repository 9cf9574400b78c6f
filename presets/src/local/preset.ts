import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { definePreset } from "@portico/core";
import { agentService } from "../platform/agent-service.ts";
import { logFormat } from "../platform/log-format.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import { proxy } from "../proxy/preset.ts";

export { chooseProviders } from "../platform/provider-choice.ts";
export { type LocalConfig, localSchema } from "./config.ts";

/** Everything for one person on one machine: surfaces `proxy` and `agent`. */
export const local = definePreset((options: PlatformOptions) => {
  const prometheus = createPrometheusMetrics();
  const { level, format } = options.settings.log;
  const service = agentService(options, prometheus);
  return {
    ...service,
    name: "local",
    extends: proxy(options),
    // In place of the proxy's own: one place shows what both surfaces did.
    adapters: [openTelemetry({ level, format: logFormat(format), prometheus }), ...service.adapters],
  };
});
