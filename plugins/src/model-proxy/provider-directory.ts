import type { ports } from "@portico/core";
import { proxyErrors } from "./errors.ts";
import { callFailure } from "./upstream-error.ts";

export interface ListedModel {
  readonly id: string;
  readonly ownedBy: string;
}

/** Finds the enabled providers and their models. */
export interface ProviderDirectory {
  /** The provider that a token is bound to. Throws provider_unavailable. */
  bound(providerId: string): ports.ModelProvider;
  /**
   * Throws model_not_served; no other provider is tried (specification 5, rule 2). If it must ask the provider, it can fail as a call does: with
   * upstream_timeout or upstream_unreachable.
   */
  assertServes(provider: ports.ModelProvider, model: string, signal: AbortSignal): Promise<void>;
  /** The models of all providers. A provider that cannot list its models now is left out, and the log names it. */
  list(signal: AbortSignal): Promise<readonly ListedModel[]>;
}

export function createProviderDirectory(models: readonly ports.ModelProvider[], log: ports.Log): ProviderDirectory {
  const byId = new Map(models.map((provider) => [provider.id, provider]));
  return {
    bound(providerId) {
      const provider = byId.get(providerId);
      if (!provider) throw proxyErrors.provider_unavailable();
      return provider;
    },
    async assertServes(provider, model, signal) {
      let served: readonly string[];
      try {
        served = await provider.listModels(signal);
      } catch (error) {
        return callFailure(error);
      }
      if (!served.includes(model))
        throw proxyErrors.model_not_served(`The provider of this safe token does not serve the model ${JSON.stringify(model)}`, {
          field: "model",
        });
    },
    async list(signal) {
      const lists = await Promise.all(
        models.map(async (provider) => {
          try {
            return (await provider.listModels(signal)).map((id) => ({ id, ownedBy: provider.type }));
          } catch (error) {
            if (signal.aborted) throw error;
            log.warn("The models of a provider could not be listed", { provider: provider.id }, error);
            return [];
          }
        }),
      );
      return lists.flat();
    },
  };
}

/** The header with the instances that a call has passed. It is sent only to other Portico instances. */
export const TRAIL_HEADER = "x-portico-trail";

/** More entries than a call without a loop can have, even if each instance has several processes. */
const LONGEST_TRAIL = 8;

export interface Trail {
  /** The headers for the call to this provider. Throws provider_loop if the call has passed this app before. */
  extended(provider: Pick<ports.ModelProvider, "id">, came: string | undefined): Readonly<Record<string, string>>;
}

/**
 * Detects loops of providers: each call carries a trail of the instances that it passed. `mark` names this app. `instances` are the providers
 * that are Portico instances; other providers never receive a trail.
 */
export function createTrail(mark: string, instances: readonly string[]): Trail {
  const leadsOn = new Set(instances);
  return {
    extended({ id }, came) {
      const passed = came === undefined ? [] : came.split(",", LONGEST_TRAIL).map((each) => each.trim());
      if (passed.includes(mark) || passed.length === LONGEST_TRAIL) throw proxyErrors.provider_loop();
      return leadsOn.has(id) ? { [TRAIL_HEADER]: [...passed, mark].join(", ") } : NONE;
    },
  };
}

const NONE = {};
