import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { isOriginAllowed, type Preset, probes, type Secret } from "@portico/core";
import { agentWebhook } from "@portico/plugins/agent-webhook";
import { attachmentsMedia } from "@portico/plugins/attachments-media";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { credentialTool } from "@portico/plugins/model-proxy/credential-tool";
import { safeTokenManagement } from "@portico/plugins/model-proxy/management";
import { agentTurns } from "./agent-turns.ts";
import { apiPages } from "./api-pages.ts";
import { listenersPage } from "./listeners-page.ts";
import { metricsPage } from "./metrics-page.ts";
import type { PlatformOptions } from "./platform-options.ts";
import type { ServedProvider } from "./provider-choice.ts";
import { agentSurface } from "./surface-access.ts";
import { VERSION } from "./version.ts";
import { webConsole } from "./web-console.ts";

/**
 * What the agent service is made of, beside `instanceAdapters`, MCP tools, storage, telemetry and providers: everything of surface `agent`.
 * `hasConsole` is the settings' word or the preset's own.
 */
export function agentService(
  { settings, providers, isReady, listeners = () => ({}) }: PlatformOptions,
  metrics: PrometheusMetrics,
  hasConsole: boolean,
): Required<Pick<Preset, "adapters" | "plugins" | "surfaces">> {
  const { allowedOrigins, webhooks } = settings.agent;
  const { management } = webhooks;
  return {
    adapters: [
      ...agentTurns(settings),
      socketIoRealtime({ allowOrigin: (facts) => isOriginAllowed(facts, allowedOrigins) }),
      credentialTool({ allowRawCredentials: settings.allowRawCredentials, credentials: credentialsOf(providers) }),
    ],
    // Probes come last, so that an unknown path is answered in the agent service's words.
    plugins: [
      conversationsRuns({
        version: VERSION,
        // The area is there, and cannot be managed.
        capabilities: management ? {} : { webhookManagement: false },
      }),
      attachmentsMedia({}),
      agentWebhook({ mode: settings.instance.mode, management }),
      safeTokenManagement({}),
      metricsPage(metrics, agentSurface),
      apiPages(agentSurface),
      listenersPage(listeners),
      ...(hasConsole ? [webConsole({ listeners })] : []),
      probes({ surface: "agent", isReady }),
    ],
    surfaces: { agent: { allowedOrigins } },
  };
}

function credentialsOf(providers: readonly ServedProvider[]): Record<string, Secret> {
  return Object.fromEntries(providers.flatMap(({ id, credential }) => (credential ? [[id, credential]] : [])));
}
