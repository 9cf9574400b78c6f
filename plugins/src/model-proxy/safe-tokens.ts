import type { ports, Secret } from "@portico/core";

/** What is known of a token; the token itself is not. */
export interface SafeToken {
  /** Names the token in lists and for revoking; no credential. */
  readonly tokenId: string;
  /** The provider configuration it is bound to, for ever (specification 2.1). */
  readonly providerId: string;
  readonly label: string | undefined;
  /** ISO 8601. */
  readonly createdAt: string;
}

/** Issues, lists and revokes tokens that stand in for a provider's credential. */
export interface SafeTokens {
  /** A new token; its value is given here and never again. Durable when it resolves. */
  issue(at: {
    readonly providerId: string;
    readonly label?: string | undefined;
  }): Promise<SafeToken & { readonly token: Secret }>;
  /** Who holds it; undefined for a wrong or revoked one. Sees at once what another process issued or revoked. */
  find(presented: string): Promise<SafeToken | undefined>;
  /** All tokens, oldest first. */
  list(): Promise<readonly SafeToken[]>;
  /** True if there was one. */
  revoke(tokenId: string): Promise<boolean>;
  /** How many there were. */
  revokeAll(): Promise<number>;
}

/** The prefix of every safe token (specification 2.1). */
export const SAFE_TOKEN_PREFIX = "service_";

interface TokenRecord {
  readonly tokenId: string;
  readonly providerId: string;
  readonly label?: string | undefined;
  readonly createdAt: string;
}

/**
 * Under load many requests with one token arrive in one turn of the event loop: they share one look at the store. Nothing is remembered
 * beyond the turn, and a revocation forgets it at once, in whatever part of this process it happens.
 */
const looksOfThisTurn = new WeakMap<ports.Records, Map<string, Promise<SafeToken | undefined>>>();

/** Safe tokens on the records port, kept under their SHA-256 and nothing else (open points 2). */
export function createSafeTokens(given: {
  readonly records: ports.Records;
  readonly secrets: ports.Secrets;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
}): SafeTokens {
  const { secrets, clock, ids } = given;
  const collection = given.records.collection<TokenRecord>({
    name: "safe-tokens",
    indexes: { byTokenId: ["tokenId"], byCreation: ["createdAt"] },
  });
  const all = async (): Promise<ports.Stored<TokenRecord>[]> => {
    const found: ports.Stored<TokenRecord>[] = [];
    let after: string | undefined;
    do {
      const page = await collection.query({
        order: { by: "createdAt", direction: "ascending" },
        limit: 1000,
        ...(after !== undefined && { after }),
      });
      found.push(...page.items);
      after = page.next;
    } while (after !== undefined);
    return found;
  };
  const looks = looksOfThisTurn.get(given.records) ?? new Map<string, Promise<SafeToken | undefined>>();
  looksOfThisTurn.set(given.records, looks);
  const forgetting = async <T>(revoking: Promise<T>): Promise<T> => {
    try {
      return await revoking;
    } finally {
      looks.clear();
    }
  };
  return {
    async issue({ providerId, label }) {
      const token = secrets.create(SAFE_TOKEN_PREFIX);
      const record: TokenRecord = {
        tokenId: ids.id("tok_"),
        providerId,
        ...(label !== undefined && { label }),
        createdAt: new Date(clock.now()).toISOString(),
      };
      await collection.put(secrets.digest(token.reveal()), record, "absent");
      return { ...toToken(record), token };
    },
    async find(presented) {
      if (!presented.startsWith(SAFE_TOKEN_PREFIX)) return undefined;
      const known = looks.get(presented);
      if (known) return known;
      if (looks.size === 0) setImmediate(() => looks.clear());
      const found = collection.get(secrets.digest(presented)).then((stored) => stored && toToken(stored.value));
      looks.set(presented, found);
      return found;
    },
    list: async () => (await all()).map((stored) => toToken(stored.value)),
    async revoke(tokenId) {
      const { items } = await collection.query({ where: { tokenId }, limit: 1 });
      return items[0] ? forgetting(collection.remove(items[0].id)) : false;
    },
    async revokeAll() {
      const removed = await forgetting(Promise.all((await all()).map((stored) => collection.remove(stored.id))));
      return removed.filter(Boolean).length;
    },
  };
}

function toToken({ tokenId, providerId, label, createdAt }: TokenRecord): SafeToken {
  return { tokenId, providerId, label, createdAt };
}
