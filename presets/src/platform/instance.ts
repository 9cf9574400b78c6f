import { type TokenHolder, tokenIdentity } from "@portico/adapters/identity/tokens";
import type { SigningRotation } from "@portico/adapters/signing/hmac";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { type Adapter, type Live, type ports, type Secret, selectLive } from "@portico/core";
import { ownToken } from "./own-token.ts";
import type { PlatformOptions } from "./platform-options.ts";
import { type RotatingSettings, rotationOf } from "../settings/rotating-settings.ts";

export interface InstanceTokenOptions {
  /** Tokens from the settings. */
  readonly tokens: readonly TokenHolder[];
  /** Called when the owner's token was just created: it can be shown only now. */
  readonly onMade?: ((token: Secret) => void) | undefined;
  /** The next settings. Default: the tokens never change. */
  readonly rotating?: Live<RotatingSettings> | undefined;
}

/** An instance that accepts work: its users, its store, and its keys for signing and encryption. */
export function instance(options: PlatformOptions): readonly Adapter[] {
  const { settings } = options;
  const tokens = instanceTokens(options);
  return [
    instanceIdentity(tokens),
    ...sqliteStore({
      dir: settings.dataDir,
      signingKey: instanceKey(tokens),
      signingRotation: instanceKeyRotation(tokens),
      sealingKey: settings.instance.key,
      otherSealingKeys: settings.instance.otherKeys,
    }),
  ];
}

/** The tokens of an instance, from its settings. */
export function instanceTokens(options: PlatformOptions): InstanceTokenOptions {
  const { settings, onTokenMade } = options;
  return {
    tokens: settings.agent.tokens,
    onMade: (token: Secret) => onTokenMade?.(token, "agent"),
    rotating: rotationOf(options),
  };
}

/** The users of an instance: tokens from the settings, and a created owner's token if the settings name no owner (open points 1). */
export function instanceIdentity(options: InstanceTokenOptions): Adapter {
  return tokenIdentity({
    sessions: true,
    tokens: instanceHolders(options),
    rotation:
      options.rotating &&
      selectLive(options.rotating, ({ agent, rotation }) => ({
        tokens: instanceHolders({ ...options, tokens: agent.tokens }),
        overlapMs: rotation.overlapMs,
      })),
  });
}

function instanceHolders(options: InstanceTokenOptions) {
  return async (secrets: ports.Secrets): Promise<readonly TokenHolder[]> => {
    const owner = await instanceToken(secrets, options);
    return options.tokens.includes(owner) ? options.tokens : [owner, ...options.tokens];
  };
}

/**
 * The signing of an instance. Keys derive from the instance access token, so that rotating the token invalidates earlier signatures
 * (specification 4.5, rule 10). The options are those of `instanceIdentity`.
 */
export function instanceKey(options: InstanceTokenOptions): (secrets: ports.Secrets) => Promise<Secret> {
  return async (secrets) => (await instanceToken(secrets, options)).token;
}

/**
 * The next keys of an instance's signing. `delayMs`: how long a new key only verifies, if other processes may get it later. The other options
 * are those of `instanceIdentity`.
 */
export function instanceKeyRotation(options: InstanceTokenOptions, delayMs = 0): Live<SigningRotation> | undefined {
  return (
    options.rotating &&
    selectLive(options.rotating, ({ agent, rotation }) => ({
      key: instanceKey({ ...options, tokens: agent.tokens }),
      overlapMs: rotation.overlapMs,
      delayMs,
    }))
  );
}

/**
 * The instance access token and its holder (open points 1): the token of the first owner in the settings, or else a token that
 * the first start creates. If several callers have the same options and secrets, the first one creates it and calls `onMade`.
 */
async function instanceToken(secrets: ports.Secrets, { tokens, onMade }: InstanceTokenOptions): Promise<TokenHolder> {
  const given = tokens.find(({ role }) => role === "owner");
  if (given) return given;
  return { token: await ownToken(secrets, "agent", onMade), userId: "owner", role: "owner" };
}
