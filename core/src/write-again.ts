import { RecordConflict } from "./ports/records.ts";

const ATTEMPTS = 50;

/**
 * Optimistic locking over the port `records`: `attempt` reads, decides and writes under the versions that it read, again until nobody else
 * wrote in between. Throws what it throws, and the last RecordConflict when somebody always did.
 */
export async function writeAgain<T>(attempt: () => Promise<T>): Promise<T> {
  for (let count = 1; ; count++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof RecordConflict) || count >= ATTEMPTS) throw error;
    }
  }
}
