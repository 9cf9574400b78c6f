import { type ports, readPages } from "@portico/core";
import { type OpenTurn, openTurns } from "./background-records.ts";
import type { AcceptedTurn } from "./background-turn.ts";

/** Background turns that wait or execute, and those that were stopped and have not left the queue yet. */
export function createOpenTurns(records: ports.Records) {
  const open = records.collection<OpenTurn>(openTurns);
  return {
    has: async (runId: string): Promise<boolean> => (await open.get(runId)) !== undefined,
    /** A user's turns. Reads the records of all users. */
    async *ofUser(userId: string): AsyncGenerator<AcceptedTurn, void> {
      for await (const page of readPages(open, {})) {
        for (const { value } of page) if (value.turn?.userId === userId) yield value.turn;
      }
    },
  };
}
