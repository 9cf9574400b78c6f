import { type ports, readOncePerTurn, type Secret } from "@portico/core";

/** The stored facts about a token. The token itself is not stored. */
export interface SafeToken {
  /** Identifies the token in lists and for revocation. It is not a credential. */
  readonly tokenId: string;
  /** The provider configuration of the token. It never changes (specification 2.1). */
  readonly providerId: string;
  readonly label: string | undefined;
  /** ISO 8601. */
  readonly createdAt: string;
}

/** Issues, lists and revokes tokens that stand in for a provider's credential. */
export interface SafeTokens {
  /** Creates a token. Only this call returns its value. The token is durable when the call resolves. */
  issue(at: {
    readonly providerId: string;
    readonly label?: string | undefined;
  }): Promise<SafeToken & { readonly token: Secret }>;
  /** The facts about a presented token; undefined if it is wrong or revoked. Changes by other processes are visible immediately. */
  find(presented: string): Promise<SafeToken | undefined>;
  /** All tokens, oldest first. */
  list(): Promise<readonly SafeToken[]>;
  /** True if the token existed. */
  revoke(tokenId: string): Promise<boolean>;
  /** Returns the number of revoked tokens. */
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

/** Safe tokens in the port `records`. Only their SHA-256 is stored (open points 2). */
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
  const find = readOncePerTurn(async (digest) => {
    const stored = await collection.get(digest);
    return stored && toToken(stored.value);
  });
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
      return find(secrets.digest(presented));
    },
    list: async () => (await all()).map((stored) => toToken(stored.value)),
    async revoke(tokenId) {
      const { items } = await collection.query({ where: { tokenId }, limit: 1 });
      return items[0] ? collection.remove(items[0].id) : false;
    },
    async revokeAll() {
      const removed = await Promise.all((await all()).map((stored) => collection.remove(stored.id)));
      return removed.filter(Boolean).length;
    },
  };
}

function toToken({ tokenId, providerId, label, createdAt }: TokenRecord): SafeToken {
  return { tokenId, providerId, label, createdAt };
}
