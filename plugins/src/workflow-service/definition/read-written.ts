import type { ports, Scope } from "@portico/core";
import { READ_HERE_CHARACTERS } from "./definition-limits.ts";
import { createReadingThread } from "./reading-thread.ts";
import { readSource } from "./read-source.ts";

/** Reads the text of a stored definition as JSON. Undefined if it cannot be read. Never rejects. */
export type ReadWritten = (text: string) => Promise<unknown>;

/** Reads texts of any size. Long texts are parsed in a thread, so that they do not block the event loop. */
export function readWritten(clock: ports.Clock, scope: Scope): ReadWritten {
  const thread = createReadingThread(clock);
  scope.onClose(() => thread.close());
  return async (text) => {
    if (text.length <= READ_HERE_CHARACTERS) {
      const read = readSource(text, { isStored: true });
      return "source" in read ? read.source.value : undefined;
    }
    const answer = await thread.ask({ text, isStored: true }, () => {}).catch(() => undefined);
    return answer && "json" in answer ? (JSON.parse(answer.json) as unknown) : undefined;
  };
}
