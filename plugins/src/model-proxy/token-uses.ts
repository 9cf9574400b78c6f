import { type ports, readPages } from "@portico/core";
import { USE_NOTED_MS } from "./limits.ts";

/** When safe tokens were used last. */
export interface TokenUses {
  /** A call came with the token. Returns at once: the time is stored later, and at most once in five minutes for each token and process. */
  note(tokenId: string): void;
  /** When each token was used last, in ISO 8601, by the ID of the token. At most five minutes old. */
  last(): Promise<ReadonlyMap<string, string>>;
  /** The write that removes what is known of a token. */
  removal(tokenId: string): ports.Write;
}

/** Tokens whose last use a process remembers to have stored. Beyond it, it begins anew. */
const MOST_KNOWN = 10_000;

/** Last uses in the port `records`, beside the tokens: a token itself never changes. */
export function createTokenUses({ records, clock }: { readonly records: ports.Records; readonly clock: ports.Clock }): TokenUses {
  const stored = records.collection<{ readonly at: string }>({ name: "safe-token-uses", indexes: { byTime: ["at"] } });
  const known = new Map<string, number>();
  return {
    note(tokenId) {
      const now = clock.now();
      const before = known.get(tokenId);
      if (before !== undefined && now - before < USE_NOTED_MS) return;
      if (known.size >= MOST_KNOWN) known.clear();
      known.set(tokenId, now);
      // A call does not fail because its time could not be stored. The next call tries again.
      stored.put(tokenId, { at: new Date(now).toISOString() }).catch(() => known.delete(tokenId));
    },
    async last() {
      const order = { by: "at", direction: "ascending" } as const;
      const pages = await Array.fromAsync(readPages(stored, { order, limit: 1000 }));
      return new Map(pages.flat().map(({ id, value }) => [id, value.at]));
    },
    removal: (tokenId) => stored.write.remove(tokenId),
  };
}
