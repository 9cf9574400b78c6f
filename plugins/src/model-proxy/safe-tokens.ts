import { createTokenUses } from "./token-uses.ts";
import { auditWriter, CREDENTIAL_PREFIXES, ports, readOncePerTurn, readPages, type Secret } from "@portico/core";

/** The stored facts about a token. The token itself is not stored. */
export interface SafeToken {
  /** Identifies the token in lists and for revocation. It is not a credential. */
  readonly tokenId: string;
  /** The provider configuration of the token. It never changes (specification 2.1). */
  readonly providerId: string;
  readonly label: string | undefined;
  /** ISO 8601. */
  readonly createdAt: string;
  /** ISO 8601. Undefined: it has no end. */
  readonly expiresAt: string | undefined;
}

/** A token of a list. */
export interface ListedToken extends SafeToken {
  /** ISO 8601, at most five minutes old. Undefined: it was not used yet. */
  readonly lastUsedAt: string | undefined;
}

/** Issues, lists and revokes tokens that stand in for a provider's credential. */
export interface SafeTokens {
  /** Creates a token. Only this call returns its value. The token is durable when the call resolves. */
  issue(at: {
    readonly providerId: string;
    readonly label?: string | undefined;
    /** Who issues it, for the audit. Default: the instance. */
    readonly by?: ports.AuditActor | undefined;
    /** When it ends, in milliseconds since 1970. Default: it has no end. */
    readonly until?: number | undefined;
  }): Promise<SafeToken & { readonly token: Secret }>;
  /** The facts about a presented token; undefined if it is wrong, revoked or expired. Changes by other processes are visible immediately. */
  find(presented: string): Promise<SafeToken | undefined>;
  /** Notes that a call came with the token. Returns at once. */
  used(tokenId: string): void;
  /** All tokens, oldest first. */
  list(): Promise<readonly ListedToken[]>;
  /** True if the token existed. `by` is who revokes it, for the audit. */
  revoke(tokenId: string, by?: ports.AuditActor): Promise<boolean>;
  /** Returns the number of revoked tokens. `by` is who revokes them, for the audit. */
  revokeAll(by?: ports.AuditActor): Promise<number>;
}

/** The prefix of every safe token (specification 2.1). */
export const SAFE_TOKEN_PREFIX = CREDENTIAL_PREFIXES.safeToken;

const INSTANCE: ports.AuditActor = { role: "instance" };
const REVOKED_AT_ONCE = 250;

interface TokenRecord {
  readonly tokenId: string;
  readonly providerId: string;
  readonly label?: string | undefined;
  readonly createdAt: string;
  readonly expiresAt?: string | undefined;
}

/** Safe tokens in the port `records`. Only their SHA-256 is stored (open points 2). */
export function createSafeTokens(given: {
  readonly records: ports.Records;
  readonly secrets: ports.Secrets;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  /** Records who issues and revokes tokens, in the commit that does it. Default: it is not recorded. */
  readonly audit?: ports.Audit | undefined;
}): SafeTokens {
  const { secrets, clock, ids } = given;
  const audit = auditWriter(given.audit, given.records);
  const collection = given.records.collection<TokenRecord>({
    name: "safe-tokens",
    indexes: { byTokenId: ["tokenId"], byCreation: ["createdAt"] },
  });
  const all = async (): Promise<ports.Stored<TokenRecord>[]> => {
    const order = { by: "createdAt", direction: "ascending" } as const;
    return (await Array.fromAsync(readPages(collection, { order, limit: 1000 }))).flat();
  };
  const uses = createTokenUses(given);
  const find = readOncePerTurn(async (digest) => {
    const stored = await collection.get(digest);
    const isValid = stored && !(Date.parse(stored.value.expiresAt ?? "") <= clock.now());
    return isValid ? toToken(stored.value) : undefined;
  });
  return {
    async issue({ providerId, label, until, by = INSTANCE }) {
      const token = secrets.create(SAFE_TOKEN_PREFIX);
      const record: TokenRecord = {
        tokenId: ids.id("tok_"),
        providerId,
        ...(label !== undefined && { label }),
        createdAt: new Date(clock.now()).toISOString(),
        ...(until !== undefined && { expiresAt: new Date(until).toISOString() }),
      };
      const fact = { action: "safe-token.issue", object: record.tokenId, who: by };
      await audit.record(fact, [collection.write.put(secrets.digest(token.reveal()), record, "absent")]);
      return { ...toToken(record), token };
    },
    find: (presented) => (presented.startsWith(SAFE_TOKEN_PREFIX) ? find(secrets.digest(presented)) : Promise.resolve(undefined)),
    used: uses.note,
    async list() {
      const [tokens, last] = await Promise.all([all(), uses.last()]);
      return tokens.map(({ value }) => ({ ...toToken(value), lastUsedAt: last.get(value.tokenId) }));
    },
    async revoke(tokenId, by = INSTANCE) {
      const { items } = await collection.query({ where: { tokenId }, limit: 1 });
      const [found] = items;
      if (!found) return false;
      try {
        const fact = { action: "safe-token.revoke", object: tokenId, who: by };
        await audit.record(fact, [collection.write.remove(found.id, found.version), uses.removal(tokenId)]);
        return true;
      } catch (error) {
        // Another call was quicker: tokens never change.
        if (error instanceof ports.RecordConflict) return false;
        throw error;
      }
    },
    async revokeAll(by = INSTANCE) {
      let revoked = 0;
      for (;;) {
        const { items } = await collection.query({ limit: REVOKED_AT_ONCE });
        if (items.length === 0) return revoked;
        try {
          const fact = { action: "safe-token.revoke-all", count: items.length, who: by };
          await audit.record(
            fact,
            items.flatMap(({ id, version, value }) => [collection.write.remove(id, version), uses.removal(value.tokenId)]),
          );
          revoked += items.length;
        } catch (error) {
          // Another call revoked one of these: the rest is read again.
          if (!(error instanceof ports.RecordConflict)) throw error;
        }
      }
    },
  };
}

function toToken({ tokenId, providerId, label, createdAt, expiresAt }: TokenRecord): SafeToken {
  return { tokenId, providerId, label, createdAt, expiresAt };
}
