import { createHash } from "node:crypto";
import { ports, type Scope } from "@portico/core";
import { createChanges, type WatchTimes } from "./changes.ts";
import type { CheckCurrent, DocumentPlace } from "./document-place.ts";

/** The port's rules over any storage: names, versions, one write at a time per name, and reports of changes. */
export function createDocuments(
  id: string,
  place: DocumentPlace,
  { clock, times, scope }: { readonly clock: ports.Clock; readonly times: WatchTimes; readonly scope: Scope },
): ports.Documents {
  const writes = new Map<string, Promise<unknown>>();
  const changes = createChanges(place, clock, times);
  let isClosed = false;
  scope.onClose(async () => {
    isClosed = true;
    await changes.close();
    await Promise.allSettled(writes.values());
    await place.close?.();
  });

  const at = guarded(id, () => isClosed);
  // One after another: the second writer sees the first write, and conflicts.
  const inTurn = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const before = writes.get(name);
    const turn = (before ?? Promise.resolve()).catch(() => {}).then(work);
    writes.set(name, turn);
    try {
      return await turn;
    } finally {
      if (writes.get(name) === turn) writes.delete(name);
    }
  };

  return {
    id,
    ...(place.isReadOnly && { isReadOnly: true }),
    ...reading(place, at),
    async write(name, text, expected) {
      checkText(text);
      return at(name, async () => {
        await inTurn(name, () => place.replace(name, text, expecting(name, expected)));
        changes.tell(name);
        return toDocument(name, text);
      });
    },
    remove(name, expected) {
      return at(name, async () => {
        let wasThere = false;
        const check: CheckCurrent = (current) => {
          wasThere = current !== undefined;
          expecting(name, expected)(current);
        };
        await inTurn(name, () => place.remove(name, check));
        if (wasThere) changes.tell(name);
        return wasThere;
      });
    },
    watch: (changed) => at(undefined, () => changes.subscribe(changed)),
  };
}

/** The port's rules for read-only use: nothing is watched, and nothing must be closed. */
export function createReading(id: string, place: DocumentPlace): Pick<ports.Documents, "read" | "list"> {
  return reading(
    place,
    guarded(id, () => false),
  );
}

type At = <T>(name: string | undefined, work: () => Promise<T>) => Promise<T>;

function guarded(id: string, isClosed: () => boolean): At {
  return async (name, work) => {
    if (name !== undefined && !ports.isDocumentName(name)) throw new TypeError("Invalid document name");
    if (isClosed()) throw new ports.DocumentsUnavailable(`The documents "${id}" are closed`);
    try {
      return await work();
    } catch (cause) {
      throw toPortError(id, cause);
    }
  };
}

function reading(place: DocumentPlace, at: At): Pick<ports.Documents, "read" | "list"> {
  return {
    read: (name) =>
      at(name, async () => {
        const text = await place.read(name);
        return text === undefined ? undefined : toDocument(name, text);
      }),
    list: () => at(undefined, async () => sortNames((await place.list()).filter(ports.isDocumentName))),
  };
}

function checkText(text: string): void {
  if (!text.isWellFormed()) throw new TypeError("A document's text must be one that UTF-8 can hold");
  if (Buffer.byteLength(text) > ports.DOCUMENT_BYTES) throw new RangeError("A document's text is at most 16 MiB");
}

/** Throws DocumentConflict unless the current document is the one that the caller expects. */
function expecting(name: string, expected: string): CheckCurrent {
  return (current) => {
    const found = current === undefined ? "absent" : versionOf(current);
    if (found !== expected) throw new ports.DocumentConflict(`The document ${name} is not as it was read`);
  };
}

/** Derived only from the text: an edit by a person counts like one of ours, and restoring a text is no change. */
function versionOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function toDocument(name: string, text: string): ports.Document {
  return { name, text, version: versionOf(text) };
}

function sortNames(names: readonly string[]): string[] {
  return [...new Set(names)].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

function toPortError(id: string, error: unknown): unknown {
  const isOurs = error instanceof ports.DocumentConflict || error instanceof ports.DocumentsUnavailable;
  return isOurs ? error : new ports.DocumentsUnavailable(`The documents "${id}" cannot be read or written`, { cause: error });
}
