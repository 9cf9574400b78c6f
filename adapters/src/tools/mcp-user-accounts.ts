import type { ports } from "@portico/core";
import { openGrantCollections } from "./mcp/oauth/grant-records.ts";

/** What is known of an account that a user connected. Never a token. */
export interface UserAccount {
  readonly server: string;
  /** ISO 8601. */
  readonly connectedAt: string;
  readonly scope?: string | undefined;
}

/** The accounts of MCP servers that users connected themselves, for exports and removals of a user. */
export function storedUserAccounts(records: ports.Records) {
  const { grants, logins } = openGrantCollections(records);
  return {
    /** The accounts of a user. */
    async *items(userId: string): AsyncIterable<UserAccount> {
      for await (const { value } of pages(grants, userId)) {
        const { server, connectedAt, scope } = value;
        yield { server, connectedAt: new Date(connectedAt).toISOString(), ...(scope !== undefined && { scope }) };
      }
    },
    /** Remove the accounts of a user, and the connections that were begun. Returns the number of accounts. */
    async erase(userId: string): Promise<number> {
      let count = 0;
      // First the connections: one that is being finished then saves no grant, or has saved it.
      for await (const { id } of pages(logins, userId)) await logins.remove(id);
      for await (const { id } of pages(grants, userId)) if (await grants.remove(id)) count++;
      return count;
    },
  };
}

async function* pages<T extends object>(collection: ports.Collection<T>, userId: string): AsyncIterable<ports.Stored<T>> {
  let after: string | undefined;
  do {
    const page = await collection.query({ where: { userId }, ...(after !== undefined && { after }) });
    yield* page.items;
    after = page.next;
  } while (after !== undefined);
}
