import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { type Access, type Plugin, scraperAccess } from "@portico/core";
import { apiDocs } from "@portico/plugins/api-docs";
import { metrics } from "@portico/plugins/metrics";
import { probes } from "@portico/plugins/probes";
import { describedSurface } from "./described-surface.ts";
import type { PlatformOptions } from "./platform-options.ts";

/** The pages of a service in addition to its areas: metrics, API documents, and probes. */
export function servicePages(
  { isReady }: PlatformOptions,
  measured: PrometheusMetrics,
  at: { readonly surface: string; readonly access: Access },
): readonly Plugin[] {
  const { surface, access } = at;
  return [
    metrics({ surface, access, measured }),
    apiDocs({ ...describedSurface(surface), access }),
    // Last, so that unknown paths get the service's own error.
    probes({ surface, isReady }),
  ];
}

/**
 * Surface `probes`, if the settings have a listener for it (open points 11). A process may serve no other surface with probes, and monitoring
 * systems do not need access to the other surfaces. Otherwise empty. The preset has to fill the port `identity`.
 */
export function probesService({ settings, isReady }: PlatformOptions, measured: PrometheusMetrics): readonly Plugin[] {
  if (!settings.probes?.listen) return [];
  const surface = "probes";
  return [metrics({ surface, access: scraperAccess, measured }), probes({ surface, isReady })];
}
