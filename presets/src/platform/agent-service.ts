import { loopAgentEngine } from "@portico/adapters/agent-engines/loop";
import { documentAgents } from "@portico/adapters/agents/documents";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { isOriginAllowed, type Preset, probes, type Secret } from "@portico/core";
import { agentWebhook } from "@portico/plugins/agent-webhook";
import { attachmentsMedia } from "@portico/plugins/attachments-media";
import { userFiles } from "@portico/plugins/attachments-media/user-files";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { agentRuntime } from "@portico/plugins/conversations-runs/agent-runtime";
import { backgroundTurns } from "@portico/plugins/conversations-runs/background-turns";
import { credentialTool } from "@portico/plugins/model-proxy/credential-tool";
import { safeTokenManagement } from "@portico/plugins/model-proxy/management";
import { dataDirectory } from "./data-directory.ts";
import { instanceIdentity } from "./instance-identity.ts";
import { instanceSigning } from "./instance-signing.ts";
import { metricsPage } from "./metrics-page.ts";
import { mcpToolSources } from "./mcp-tools.ts";
import type { PlatformOptions } from "./platform-options.ts";
import type { ServedProvider } from "./provider-choice.ts";
import { VERSION } from "./version.ts";

/** An `agent.json` stands in its agent's folder; what lies deeper is the agent's own. */
const AGENT_FILE_DEPTH = 2;

/** What the agent service is made of, beside storage, telemetry and providers: everything of surface `agent`. */
export function agentService(
  options: PlatformOptions,
  metrics: PrometheusMetrics,
): Required<Pick<Preset, "adapters" | "plugins" | "surfaces">> {
  const { settings, providers, isReady } = options;
  const { agentsDir, allowedOrigins, tokens, webhooks } = settings.agent;
  const { management, ...background } = webhooks;
  const instance = { tokens, onMade: options.onTokenMade };
  return {
    adapters: [
      instanceIdentity(instance),
      instanceSigning(instance),
      sqliteLog({}),
      embeddedEngine({}),
      unstorageDocuments({ id: "agents", dir: agentsDir, depth: AGENT_FILE_DEPTH }),
      documentAgents({ directory: agentsDir }),
      loopAgentEngine({}),
      socketIoRealtime({ allowOrigin: (facts) => isOriginAllowed(facts, allowedOrigins) }),
      ...mcpToolSources(settings),
      fileBlobs({ dir: dataDirectory(settings.dataDir).files }),
      userFiles(),
      agentRuntime({}),
      backgroundTurns(background),
      credentialTool({ allowRawCredentials: settings.allowRawCredentials, credentials: credentialsOf(providers) }),
    ],
    // Probes come last, so that an unknown path is answered in the agent service's words.
    plugins: [
      conversationsRuns({
        version: VERSION,
        capabilities: { safeTokens: true, webhookManagement: management, media: true, attachments: true },
      }),
      attachmentsMedia({}),
      agentWebhook({ mode: settings.instance.mode, management }),
      safeTokenManagement({}),
      metricsPage(metrics),
      probes({ surface: "agent", isReady }),
    ],
    surfaces: { agent: { allowedOrigins } },
  };
}

function credentialsOf(providers: readonly ServedProvider[]): Record<string, Secret> {
  return Object.fromEntries(providers.flatMap(({ id, credential }) => (credential ? [[id, credential]] : [])));
}
