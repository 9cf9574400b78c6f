import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { type Access, type Plugin, scraperAccess } from "@portico/core";
import { apiDocs } from "@portico/operator/api-docs";
import type { DescribedSurface } from "@portico/operator/api-docs/documents";
import { metrics } from "@portico/operator/metrics";
import { probes } from "@portico/operator/probes";
import type { PlatformOptions } from "./platform-options.ts";
import { VERSION } from "./version.ts";

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

const TITLES: Readonly<Record<string, string>> = {
  proxy: "Portico model proxy",
  workflow: "Portico workflow service",
  agent: "Portico agent service",
  probes: "Portico probes",
};

/** All presets with realtime channels serve them with Socket.IO. */
const TRANSPORT =
  "Socket.IO, version 4 of its client protocol. Connect to this path, with the message `connect` as `auth`. Each other message is an event of the same name, with the payload as first argument. If an event has a second argument, it is the client's position, to be sent on reconnection.";

/** The parts of the documents of a preset's surface that contracts do not contain. */
export function describedSurface(surface: string): DescribedSurface {
  return { surface, title: TITLES[surface] ?? `Portico: ${surface}`, version: VERSION, transport: TRANSPORT };
}
