import { hostname } from "node:os";
import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { type PriceTable, pricesAt } from "@portico/adapters/usage/records";
import {
  type Adapter,
  instanceAccess,
  isOriginAllowed,
  optionsOf,
  type Preset,
  type Secret,
  sessionIssuesSettings,
  type ConfigSetting,
} from "@portico/core";
import { agentDocuments } from "@portico/operator/agent-documents";
import { agentSchedules } from "@portico/operator/agent-schedules";
import { agentWebhook } from "@portico/plugins/agent-webhook";
import { auditPage } from "@portico/operator/audit";
import { attachmentsMedia } from "@portico/plugins/attachments-media";
import { signIn, webConsole } from "./console-package.ts";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { limitsPage } from "@portico/operator/limits";
import { listeners as listenersPage } from "@portico/operator/listeners";
import { logPage } from "@portico/operator/log";
import { safeTokenSettings } from "@portico/plugins/model-proxy/config";
import { measurements } from "@portico/operator/measurements";
import { toolAccounts } from "@portico/operator/tool-accounts";
import { usagePage } from "@portico/operator/usage";
import { type ProviderPrices, type ProviderSource, safeTokenManagement } from "@portico/plugins/model-proxy/management";
import { agentWebhookSettings } from "@portico/plugins/agent-webhook/config";
import { attachmentsMediaSettings } from "@portico/plugins/attachments-media/config";
import { agentsSource, approvalsUrlOf } from "./agents-as-models.ts";
import { agentsOf, turnsOf } from "./agents-of.ts";
import { pagesOf, withConsoleOrigin } from "../settings/allowed-origins.ts";
import { agentMcp } from "./mcp-package.ts";
import type { Observed } from "./service-adapters.ts";
import { limitsOf } from "./limits-of.ts";
import type { Listeners, PlatformOptions } from "./platform-options.ts";
import type { ServedProvider } from "./provider-choice.ts";
import { servicePages } from "./service-pages.ts";
import { settingSource } from "./setting-source.ts";
import { VERSION } from "./version.ts";
import { pricesOf } from "./prices-of.ts";

interface AgentServiceParts {
  /** From the settings, or the preset's default. */
  readonly hasConsole: boolean;
  /** The adapters of the agents and their turns. Default: as the settings of the area say. */
  readonly documents?: readonly Adapter[];
  /** The addresses that pages and the console show. Default: those of this process. */
  readonly addresses?: Listeners | undefined;
  /** The areas that the log's page offers as filters: names of plugins. Default: those of the kept lines. */
  readonly areas?: () => readonly string[];
}

/** The parts of the agent service, in addition to `serviceAdapters`: everything of surface `agent`. */
export function agentService(
  options: PlatformOptions,
  { prometheus, recentLines }: Required<Pick<Observed, "prometheus" | "recentLines">>,
  { hasConsole, documents, addresses, areas }: AgentServiceParts,
): Required<Pick<Preset, "adapters" | "plugins" | "surfaces">> {
  const { settings, providers } = options;
  const urls = addresses ?? options.listeners ?? (() => ({}));
  const issues = optionsOf(sessionIssuesSettings, settings.agent);
  const prices = pricesOf(settings);
  const allowedOrigins = pagesOf(settings.agent);
  return {
    adapters: [
      ...(documents ?? agentsOf(settings.agent)),
      socketIoRealtime({ allowOrigin: (facts) => isOriginAllowed(facts, allowedOrigins) }),
    ],
    plugins: [
      conversationsRuns({ ...turnsOf(settings), version: VERSION }),
      attachmentsMedia(optionsOf(attachmentsMediaSettings, settings.agent)),
      agentWebhook({
        mode: settings.instance.mode,
        ...issues,
        ...optionsOf(agentWebhookSettings, settings.agent.webhooks),
      }),
      safeTokenManagement({
        ...issues,
        ...optionsOf(safeTokenSettings, settings),
        credentials: () => credentialsOf(providers),
        sources: () => ({ ...providerSources(providers, options.listing), ...agentsSource(options) }),
        ...(prices && { prices: providerPrices(prices) }),
      }),
      listenersPage({ urls }),
      auditPage({}),
      usagePage({}),
      measurements({ counted: prometheus }),
      logPage({ lines: recentLines, areas, process: { host: hostname(), pid: process.pid } }),
      agentSchedules({}),
      toolAccounts({ origins: withConsoleOrigin(allowedOrigins, urls) }),
      agentDocuments({ editable: settings.agent.editable }),
      limitsPage({ limits: () => limitsOf(settings, options.listing) }),
      ...(hasConsole
        ? [webConsole({ urls }), signIn({ ownOrigins: [...pagesOf({ publicUrl: settings.agent.publicUrl })] })]
        : []),
      ...(settings.agent.mcp
        ? [agentMcp({ version: VERSION, approvalsUrl: approvalsUrlOf({ settings, hasConsole, addresses: urls }) })]
        : []),
      ...servicePages(options, prometheus, { surface: "agent", access: instanceAccess }),
    ],
    surfaces: { agent: { allowedOrigins } },
  };
}

function credentialsOf(providers: readonly ServedProvider[]): Record<string, Secret> {
  return Object.fromEntries(providers.flatMap(({ id, credential }) => (credential ? [[id, credential]] : [])));
}

/** Where each provider is set, by its ID. */
function providerSources(
  providers: readonly ServedProvider[],
  listing: readonly ConfigSetting[] = [],
): Readonly<Record<string, ProviderSource>> {
  const set = settingSource(listing, "providers");
  return Object.fromEntries(
    providers.map(({ id, origin, source }): [string, ProviderSource] => {
      if (origin !== "configured") return [id, { source: origin, foundAt: source }];
      return [id, { source: set === "default" ? undefined : set, setting: "providers", env: "PORTICO_PROVIDERS" }];
    }),
  );
}

/** The prices of the settings, by provider. */
function providerPrices(table: PriceTable): ProviderPrices {
  return { currency: table.currency, of: (providerId, at) => pricesAt(table, providerId, at) };
}
