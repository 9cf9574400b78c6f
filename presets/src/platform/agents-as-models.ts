import { type Adapter, ConfigUnusable } from "@portico/core";
import { agentModels } from "@portico/plugins/conversations-runs/agent-models";
import { AGENTS_PROVIDER } from "@portico/plugins/conversations-runs/config";
import type { ProviderSource } from "@portico/plugins/model-proxy/management";
import type { Listeners, PlatformOptions } from "./platform-options.ts";
import { settingSource } from "./setting-source.ts";

/**
 * The provider `agents`, if the settings name a user for it. Otherwise empty. `addresses` are those where people find the console. Throws
 * ConfigUnusable if another provider has the same ID.
 */
export function agentsAsModels(
  { settings, providers, listeners }: PlatformOptions,
  { hasConsole, addresses = listeners }: { readonly hasConsole: boolean; readonly addresses?: Listeners | undefined },
): readonly Adapter[] {
  const { userId } = settings.agent.asModels;
  if (userId === undefined) return [];
  if (providers.some(({ id }) => id === AGENTS_PROVIDER))
    throw new ConfigUnusable([
      { path: "providers", expected: `no provider with the ID "${AGENTS_PROVIDER}", which ${SETTING} uses`, found: "one" },
    ]);
  return [agentModels({ userId, approvalsUrl: approvalsUrlOf({ settings, hasConsole, addresses }) })];
}

/** Where a person decides about the calls of a run. Undefined without the console. */
export function approvalsUrlOf({
  settings,
  hasConsole,
  addresses,
}: Pick<PlatformOptions, "settings"> & { readonly hasConsole: boolean; readonly addresses?: Listeners | undefined }) {
  return (runId: string): string | undefined => {
    const base = settings.agent.publicUrl ?? addresses?.()["agent"];
    return hasConsole && base !== undefined ? new URL(`#/runs/${encodeURIComponent(runId)}`, base).href : undefined;
  };
}

const SETTING = "agent.asModels.userId";

/** Where the provider `agents` is set. */
export function agentsSource({ settings, listing = [] }: PlatformOptions): Readonly<Record<string, ProviderSource>> {
  if (settings.agent.asModels.userId === undefined) return {};
  const source = settingSource(listing, SETTING);
  return {
    [AGENTS_PROVIDER]: {
      ...(source !== undefined && source !== "default" && { source }),
      ...{ setting: SETTING, env: "PORTICO_AGENT_AS_MODELS_USER" },
    },
  };
}
