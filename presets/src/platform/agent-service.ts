import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { agentDocuments } from "@portico/adapters/stores/agent-documents";
import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { type Adapter, instanceAccess, isOriginAllowed, type Preset, type Secret } from "@portico/core";
import { agentWebhook } from "@portico/plugins/agent-webhook";
import { attachmentsMedia } from "@portico/plugins/attachments-media";
import { webConsole } from "@portico/plugins/console";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { listeners as listenersPage } from "@portico/plugins/listeners";
import { safeTokenManagement } from "@portico/plugins/model-proxy/management";
import { pagesOf } from "./allowed-origins.ts";
import { agentsAt } from "./documents-place.ts";
import type { PlatformOptions } from "./platform-options.ts";
import type { ServedProvider } from "./provider-choice.ts";
import { servicePages } from "./service-pages.ts";
import { VERSION } from "./version.ts";

/**
 * The parts of the agent service, in addition to `serviceAdapters`: everything of surface `agent`. `hasConsole` is from the settings, or the preset's
 * default. `documents` are the adapters of the agents and their turns; default: as the settings of the area say.
 */
export function agentService(
  options: PlatformOptions,
  measured: PrometheusMetrics,
  { hasConsole, documents }: { readonly hasConsole: boolean; readonly documents?: readonly Adapter[] },
): Required<Pick<Preset, "adapters" | "plugins" | "surfaces">> {
  const { settings, providers, listeners: urls = () => ({}) } = options;
  const { management, ...background } = settings.agent.webhooks;
  const allowedOrigins = pagesOf(settings.agent);
  return {
    adapters: [
      ...(documents ?? agentDocuments(agentsAt(settings.agent))),
      socketIoRealtime({ allowOrigin: (facts) => isOriginAllowed(facts, allowedOrigins) }),
    ],
    plugins: [
      conversationsRuns({ background, version: VERSION }),
      attachmentsMedia({}),
      agentWebhook({ mode: settings.instance.mode, management }),
      safeTokenManagement({ allowRawCredentials: settings.allowRawCredentials, credentials: credentialsOf(providers) }),
      listenersPage({ urls }),
      ...(hasConsole ? [webConsole({ urls })] : []),
      ...servicePages(options, measured, { surface: "agent", access: instanceAccess }),
    ],
    surfaces: { agent: { allowedOrigins } },
  };
}

function credentialsOf(providers: readonly ServedProvider[]): Record<string, Secret> {
  return Object.fromEntries(providers.flatMap(({ id, credential }) => (credential ? [[id, credential]] : [])));
}
