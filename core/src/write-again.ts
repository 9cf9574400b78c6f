import { RecordConflict } from "./ports/records.ts";

const ATTEMPTS = 50;

/**
 * Optimistic locking over the port `records`. `attempt` reads, decides and writes with the versions that it read. It is repeated
 * while another caller writes in between. Throws the errors of `attempt`, and the last RecordConflict if every attempt
 * conflicted.
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
