import {
  auditActor,
  definePlugin,
  latestEnd,
  optional,
  ownerGuard,
  ownerScheme,
  ports,
  record,
  Secret,
  sessionIssuesSettings,
} from "@portico/core";
import * as v from "valibot";
import { safeTokenSettings } from "./config.ts";
import { credentialTool, type ProviderCredentials } from "./credential-tool.ts";
import { managementErrors } from "./errors.ts";
import { safeTokenContract } from "./management-contract.ts";
import { createSafeTokens } from "./safe-tokens.ts";

/** Where a provider is set. */
export interface ProviderSource {
  /** In the configuration, `found` on the machine, or the offline `demo`. */
  readonly source?: "file" | "environment" | "flag" | "options" | "found" | "demo" | undefined;
  /** The key of the configuration that sets it. */
  readonly setting?: string | undefined;
  /** The environment variable that sets it. */
  readonly env?: string | undefined;
  /** Where it was found, as text for people. */
  readonly foundAt?: string | undefined;
}

/** What the models of the providers cost. */
export interface ProviderPrices {
  /** The currency of all prices, such as `USD`. */
  readonly currency: string;
  /** The prices of a provider's models at a time in milliseconds since 1970: at most one for each model. Prices are for a million tokens. */
  readonly of: (providerId: string, at: number) => readonly ModelPrice[];
}

/** The price of a model, for a million tokens. */
export interface ModelPrice {
  readonly model: string;
  readonly input: number;
  readonly output: number;
  /** Input that is read from a cache. Default: `input`. */
  readonly cachedInput?: number | undefined;
  /** Input that is written to a cache. Default: `input`. */
  readonly cacheWrite?: number | undefined;
}

/** The owner's management of safe tokens, for presets that have an agent service beside the proxy. */
export const safeTokenManagement = definePlugin({
  name: "safe-tokens",
  summary: "Safe tokens for the model proxy, and the providers that they can be bound to.",
  config: v.strictObject({
    ...safeTokenSettings,
    ...sessionIssuesSettings,
    /** The real keys by provider configuration ID, or a function that returns the present ones; needed for `raw` only. */
    credentials: v.optional(
      v.union([
        record(v.string(), v.instance(Secret)),
        v.custom<Extract<ProviderCredentials, () => unknown>>((value) => typeof value === "function"),
      ]),
      {},
    ),
    /** Where each provider is set, by its ID. Called for each request. Default: not known. */
    sources: v.optional(
      v.custom<() => Readonly<Record<string, ProviderSource>>>((value) => typeof value === "function", "a function"),
    ),
    /** What models cost. Default: there are no prices. */
    prices: v.optional(v.custom<ProviderPrices>((value) => typeof value === "object" && value !== null, "prices")),
  }),
  needs: {
    models: ports.models,
    records: ports.records,
    secrets: ports.secrets,
    identity: ports.identity,
    clock: ports.clock,
    ids: ports.ids,
    audit: optional(ports.audit),
  },
  contract: safeTokenContract,
  security: { owner: ownerScheme },
  capabilities: () => ["safeTokens"],
  provides: (options) => [credentialTool(options)],
  guards: ({ identity }) => ({ owner: ownerGuard(identity, managementErrors) }),
  setup({ models, ...given }, { sources, prices, sessionIssuesMs: mostMs }) {
    const tokens = createSafeTokens(given);
    return {
      async providers({ signal }) {
        const known = sources?.() ?? {};
        const now = given.clock.now();
        const all = models.map(async (provider) => {
          const own = prices?.of(provider.id, now).map(shownPrice) ?? [];
          return { ...(await described(provider, signal)), ...known[provider.id], ...(own.length > 0 && { prices: own }) };
        });
        return { ...(prices && { currency: prices.currency }), providers: await Promise.all(all) };
      },
      list: async () => ({ safeTokens: [...(await tokens.list())] }),
      async issue({ body, who, head, fail }) {
        if (!models.some((provider) => provider.id === body.providerId)) {
          throw fail.unknown_provider("No enabled provider has this id", { providers: models.map((provider) => provider.id) });
        }
        const { token, ...issued } = await tokens.issue({
          ...body,
          by: auditActor(who, head),
          until: latestEnd(who, { now: given.clock.now(), mostMs }),
        });
        return { ...issued, token: token.reveal() };
      },
      async revoke({ params, who, head, fail }) {
        if (!(await tokens.revoke(params.tokenId, auditActor(who, head)))) throw fail.safe_token_not_found();
        return { revoked: 1 };
      },
      revokeAll: async ({ who, head }) => ({ revoked: await tokens.revokeAll(auditActor(who, head)) }),
    };
  },
});

/** A provider that cannot list its models is still listed. */
async function described(provider: ports.ModelProvider, signal: AbortSignal) {
  const { id, type, protocol } = provider;
  const models = await provider.listModels(signal).catch(() => undefined);
  signal.throwIfAborted();
  const { chat = ports.PUBLISHED_CHAT_DIALECT } = provider.facts?.(models?.[0] ?? "") ?? {};
  const takesReasoning = protocol === "chat-completions" && chat.reasoningContent;
  return { id, type, protocol, ...(models && { models: [...models] }), ...(takesReasoning && { takesReasoning: true as const }) };
}

function shownPrice({ model, input, output, cachedInput, cacheWrite }: ModelPrice) {
  return {
    model,
    input,
    output,
    ...(cachedInput !== undefined && { cachedInput }),
    ...(cacheWrite !== undefined && { cacheWrite }),
  };
}
