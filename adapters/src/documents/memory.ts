import { defineAdapter, ports } from "@portico/core";
import { createDocuments } from "./create-documents.ts";
import type { DocumentPlace } from "./document-place.ts";

/** Options of `memoryDocuments`. */
export interface MemoryDocumentsOptions {
  /** ID of the source: `agents`, `workflows`. */
  readonly id: string;
  /** Initial documents: texts by name. */
  readonly texts?: Readonly<Record<string, string>>;
}

/** Documents in this process's memory, for tests and for trying things out. Opening throws TypeError for an invalid name. */
export const memoryDocuments = defineAdapter({
  name: "documents/memory",
  port: ports.documents,
  needs: { clock: ports.clock },
  open({ clock }, { id, texts = {} }: MemoryDocumentsOptions, scope) {
    const wrong = Object.keys(texts).find((name) => !ports.isDocumentName(name));
    if (wrong !== undefined) throw new TypeError(`"${wrong}" is not a valid document name`);
    // No other program can change them, so all changes are reported at once.
    return createDocuments(id, memoryPlace(new Map(Object.entries(texts))), { clock, times: {}, scope });
  },
});

function memoryPlace(texts: Map<string, string>): DocumentPlace {
  return {
    read: async (name) => texts.get(name),
    async replace(name, text, check) {
      check(texts.get(name));
      texts.set(name, text);
    },
    async remove(name, check) {
      check(texts.get(name));
      texts.delete(name);
    },
    list: async () => [...texts.keys()],
    fingerprint: async (name) => texts.get(name),
    watch: async () => () => {},
  };
}
