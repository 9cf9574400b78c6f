import {
  createSystemClock,
  defineAdapter,
  definePort,
  type Live,
  optional,
  Overlap,
  type Port,
  ports,
  type Secret,
  createSignedTokens,
  CREDENTIAL_PREFIXES,
  type SignedTokens,
} from "@portico/core";
import { SHORT_LIVED_MS } from "../contracts/limits.ts";

/** Access to the workflow service: callers with its token (specification 5). */
export interface ServiceAccess {
  /** Undefined while no token is set. Compares in constant time. */
  allows(presented: string): boolean | undefined | Promise<boolean | undefined>;
}

/** The port of access to the workflow service; `tokenAccess` fills it. */
export const serviceAccess: Port<ServiceAccess> = definePort<ServiceAccess>("workflow-service/access");

/** Finds the service token of an instance, for example one that it made at its first start. */
export type FindToken = (secrets: ports.Secrets) => Promise<Secret>;

/** The token that replaces an earlier one. */
export interface ServiceTokenRotation {
  readonly token: Secret | FindToken | undefined;
  /** How long the earlier token stays valid, in milliseconds. */
  readonly overlapMs: number;
}

/** Options of `tokenAccess`. */
export interface TokenAccessOptions {
  /** The token, or a function that finds it. Without a token, the service answers every call with 503, `workflow_service_not_initialized`. */
  readonly token?: Secret | FindToken | undefined;
  /** The next tokens, while the app is open. Default: the token never changes. */
  readonly rotation?: Live<ServiceTokenRotation> | undefined;
}

/** Access with one token, and with short-lived tokens of the instance. After opening, only the token's digest is kept. */
export const tokenAccess = defineAdapter({
  name: "workflow-service/token-access",
  port: serviceAccess,
  // Short-lived tokens need signing and ids.
  needs: {
    secrets: ports.secrets,
    clock: optional(ports.clock),
    signing: optional(ports.signing),
    ids: optional(ports.ids),
  },
  async open(
    { secrets, clock = createSystemClock(), signing, ids },
    { token, rotation }: TokenAccessOptions,
    scope,
  ): Promise<ServiceAccess> {
    const digestOf = async (given: Secret | FindToken | undefined) => {
      const found = typeof given === "function" ? await given(secrets) : given;
      return found && secrets.digest(found.reveal());
    };
    const digests = new Overlap(await digestOf(token), { clock, isSame: (one, other) => one === other });
    scope.onClose(() => digests.close());
    if (rotation) {
      scope.onClose(
        rotation.follow(async ({ token: next, overlapMs }) => {
          const digest = await digestOf(next);
          return () => digests.replace(digest, overlapMs);
        }),
      );
    }
    const shortLived = signing && ids ? createShortLivedTokens({ signing, clock, ids }) : undefined;
    return {
      allows(presented) {
        if (digests.current === undefined) return undefined;
        // Always compares with all: the duration does not reveal which one matched.
        const isToken = digests.all.map((digest) => digest !== undefined && secrets.matches(presented, digest)).includes(true);
        return isToken || (shortLived?.read(presented).then((token) => token !== undefined) ?? false);
      },
    };
  },
});

/**
 * Short-lived tokens of the workflow service, for pages whose user is signed in to the agent service. They are signed with the instance's
 * key, so every process of an instance accepts them. No other surface does.
 */
export function createShortLivedTokens(given: {
  readonly signing: ports.Signing;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
}): SignedTokens {
  return createSignedTokens(
    { purpose: "workflow-service-token", prefix: CREDENTIAL_PREFIXES.shortLivedWorkflowToken, lifetimeMs: SHORT_LIVED_MS },
    given,
  );
}
