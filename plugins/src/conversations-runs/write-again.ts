import { ports } from "@portico/core";

const ATTEMPTS = 50;

/** Read, decide and write until nobody else wrote in between. Throws the last RecordConflict when somebody always did. */
export async function writeAgain<T>(attempt: () => Promise<T>): Promise<T> {
  for (let count = 1; ; count++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ports.RecordConflict) || count >= ATTEMPTS) throw error;
    }
  }
}
