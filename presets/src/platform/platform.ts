import { createEndedRequests } from "@portico/adapters/telemetry/ended-requests";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { createRecentLines } from "@portico/adapters/telemetry/recent-lines";
import { type Adapter, optionsOf, type Plugin, type Preset, sessionIssuesSettings } from "@portico/core";
import { executionGrants } from "@portico/plugins/workflow-service/execution-grants";
import { serviceTokens } from "@portico/plugins/workflow-service/service-tokens";
import { agentService } from "./agent-service.ts";
import { agentsAsModels } from "./agents-as-models.ts";
import { consoleSurfaces } from "../settings/allowed-origins.ts";
import { isConsoleInstalled, noteMissingConsole } from "./console-package.ts";
import { operatorNotifications } from "./operator-notifications.ts";
import type { Listeners, PlatformOptions } from "./platform-options.ts";
import { proxyService } from "./proxy-service.ts";
import { serviceAdapters } from "./service-adapters.ts";
import { probesService } from "./service-pages.ts";
import { workflowService } from "./workflow-service.ts";

/** What a platform stands on, and where its callers find it. */
export interface PlatformStores {
  /** The ports of the stores, `identity` among them. */
  readonly store: readonly Adapter[];
  /** The documents of agents, and what executes their turns. */
  readonly agents: readonly Adapter[];
  /** The documents of workflow definitions. */
  readonly workflows: readonly Adapter[];
  /** The addresses that pages and the console show. Default: those of this process. */
  readonly addresses?: Listeners;
}

/** All areas in one process: surfaces `proxy`, `workflow` and `agent`. */
export function platform(options: PlatformOptions, stores: PlatformStores): Omit<Preset, "name"> {
  const prometheus = createPrometheusMetrics(options.proxyProcesses?.snapshots);
  const recentLines = createRecentLines();
  options.proxyProcesses?.onLines?.(recentLines);
  const endedRequests = createEndedRequests();
  const { settings, listeners } = options;
  const hasConsole = settings.agent.console ?? isConsoleInstalled;
  const workflows = workflowService(options, prometheus, stores.workflows);
  const agents = agentService(
    options,
    { prometheus, recentLines },
    {
      hasConsole,
      documents: stores.agents,
      addresses: stores.addresses,
      areas: () => plugins.map(({ name }) => name),
    },
  );
  const plugins: readonly Plugin[] = [
    proxyService(options),
    ...workflows.plugins,
    ...agents.plugins,
    executionGrants(optionsOf(sessionIssuesSettings, settings.agent)),
    serviceTokens({}),
    ...(settings.agent.console === undefined ? noteMissingConsole() : []),
    ...probesService(options, prometheus),
  ];
  return {
    adapters: [
      ...serviceAdapters(options, { prometheus, endedRequests, recentLines }, stores.store),
      ...operatorNotifications(options, { hasConsole }),
      ...workflows.adapters,
      ...agents.adapters,
      ...agentsAsModels(options, { hasConsole, addresses: stores.addresses }),
    ],
    plugins,
    surfaces: {
      ...workflows.surfaces,
      ...agents.surfaces,
      ...(hasConsole && listeners && consoleSurfaces(settings, listeners)),
    },
  };
}
