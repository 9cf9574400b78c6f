import * as v from "valibot";
import { CREDENTIAL_PREFIXES, type CredentialPrefix } from "./credential-prefixes.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import { type Signing, SigningUnavailable } from "../ports/signing.ts";
import { milliseconds } from "../config/option-schemas.ts";
import { Secret } from "../config/secret.ts";
import { fromEnv } from "../config/shape.ts";
import type { Records, Write } from "../ports/records.ts";
import { readOncePerTurn } from "./store-calls.ts";
import type { Caller } from "../ports/identity.ts";

/** One kind of short-lived tokens: constants in code. */
export interface SignedTokenKind {
  /** Purpose of the signature. Tokens of one purpose are not accepted for another. */
  readonly purpose: string;
  /** The first characters of every token of this kind. */
  readonly prefix: CredentialPrefix;
  /** Milliseconds. */
  readonly lifetimeMs: number;
}

/** The facts about a token. */
export interface SignedToken {
  /** Identifies the token. It is not a credential. */
  readonly tokenId: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** Issues and reads tokens of one kind. */
export interface SignedTokens {
  /** A new token. Throws SigningUnavailable if the instance has no key. */
  issue(): Promise<SignedToken & { readonly token: Secret }>;
  /**
   * Reads a presented text. Undefined unless it is a token of this kind that this instance issued and that has not expired. Without
   * a key, every text is refused. Compares in constant time.
   */
  read(presented: string): Promise<SignedToken | undefined>;
}

/**
 * Tokens that expire and that no store keeps: the instance signs their ID and expiry time. Every process with the instance's key
 * issues and accepts them. They end with the key.
 */
export function createSignedTokens(
  { purpose, prefix, lifetimeMs }: SignedTokenKind,
  { signing, clock, ids }: { readonly signing: Signing; readonly clock: Clock; readonly ids: Ids },
): SignedTokens {
  return {
    async issue() {
      const expiresAt = Math.floor(clock.now() + lifetimeMs);
      const tokenId = ids.id(prefix);
      const message = `${tokenId}.${expiresAt}`;
      return { tokenId, expiresAt, token: new Secret(`${message}.${await signing.sign(purpose, message)}`) };
    },
    async read(presented) {
      const found = presented.startsWith(prefix) ? FORM.exec(presented) : null;
      if (!found) return undefined;
      const [, message = "", tokenId = "", digits = "", signature = ""] = found;
      try {
        if (!(await signing.verify(purpose, message, signature))) return undefined;
      } catch (error) {
        if (error instanceof SigningUnavailable) return undefined;
        throw error;
      }
      const expiresAt = Number(digits);
      return expiresAt > clock.now() ? { tokenId, expiresAt } : undefined;
    },
  };
}

const FORM = /^(([A-Za-z0-9_-]{1,128})\.(\d{1,16}))\.([A-Za-z0-9_-]{43})$/;

/** How long a session lasts: one working day. */
const SESSION_MS = 12 * 60 * 60 * 1000;

/**
 * Sessions of the instance's first owner, for a browser that was signed in with a link. The plugin `sign-in` opens them, and
 * `tokenIdentity` accepts them as a token of the agent service. A session is not the instance access token: `isInstanceToken`
 * answers false, so a session can open no other session.
 */
export function createInstanceSessions(given: {
  readonly signing: Signing;
  readonly clock: Clock;
  readonly ids: Ids;
}): SignedTokens {
  return createSignedTokens({ purpose: "instance-session", prefix: CREDENTIAL_PREFIXES.session, lifetimeMs: SESSION_MS }, given);
}

/** The sessions that were ended before their time, for all processes of an instance. Functions throw RecordsUnavailable. */
export interface EndedSessions {
  /** Whether a session was ended. */
  has(tokenId: string): Promise<boolean>;
  /** The write that ends a session. */
  write(session: SignedToken): Write;
  /** Forget sessions whose time has ended by now: their signature ends them, too. */
  sweep(now: number): Promise<void>;
}

interface EndedSession {
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

const SWEPT_AT_ONCE = 200;

/** The list in the port `records`. It is short, because sessions last for hours. */
export function createEndedSessions(records: Records): EndedSessions {
  const ended = records.collection<EndedSession>({ name: "ended-sessions", indexes: { byEnd: ["expiresAt"] } });
  return {
    has: readOncePerTurn(async (tokenId) => (await ended.get(tokenId)) !== undefined),
    write: ({ tokenId, expiresAt }) => ended.write.put(tokenId, { expiresAt }),
    async sweep(now) {
      const { items } = await ended.query({ order: { by: "expiresAt", direction: "ascending" }, limit: SWEPT_AT_ONCE });
      await Promise.all(items.filter(({ value }) => value.expiresAt <= now).map(({ id }) => ended.remove(id)));
    },
  };
}

/** The option of plugins that issue credentials. Presets have it once, as a setting of agents. */
export const sessionIssuesSettings = {
  sessionIssuesMs: v.optional(
    fromEnv(
      "PORTICO_AGENT_SESSION_ISSUES_MS",
      milliseconds(60_000),
      "How long execution grants, safe tokens and webhook secrets are valid at most that the session of a sign-in link issues. Default: as long as those that the owner's token issues.",
    ),
  ),
};

/**
 * When a credential ends at the latest that a caller issues now, in milliseconds since 1970: `mostMs` after now if the caller's own token ends
 * by itself, as a session does. Undefined: there is no such end, also without `mostMs`.
 */
export function latestEnd(
  { expiresAt }: Pick<Caller, "expiresAt">,
  { now, mostMs }: { readonly now: number; readonly mostMs: number | undefined },
): number | undefined {
  return expiresAt === undefined || mostMs === undefined ? undefined : Math.floor(now + mostMs);
}
