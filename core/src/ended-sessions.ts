import type { Records, Write } from "./ports/records.ts";
import { readOncePerTurn } from "./read-once-per-turn.ts";
import type { SignedToken } from "./signed-tokens.ts";

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
