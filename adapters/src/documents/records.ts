import { defineAdapter, optional, ports } from "@portico/core";
import { createDocuments } from "./create-documents.ts";
import { recordPlace } from "./records/record-place.ts";

/** Options of `recordDocuments`. */
export interface RecordDocumentsOptions {
  /** ID of the source: `agents`, `workflows`. 1-64 of lowercase letters, digits and `-`. */
  readonly id: string;
  /** Milliseconds between two checks for changes that the bus did not tell. Default: 5,000; without a bus 1,000. */
  readonly pollMs?: number;
}

const ID = /^[a-z0-9-]{1,64}$/;
const NET_MS = 5000;
const POLL_MS = 1000;

/**
 * Documents as records: any number of processes that share the records read and write them. A write whose base another process has
 * changed is refused. Processes tell each other about changes over the bus. Opening throws TypeError for an invalid id.
 */
export const recordDocuments = defineAdapter({
  name: "documents/records",
  port: ports.documents,
  needs: { records: ports.records, bus: optional(ports.bus), clock: ports.clock },
  open({ records, bus, clock }, { id, pollMs }: RecordDocumentsOptions, scope) {
    if (!ID.test(id)) throw new TypeError("The id of a source is 1-64 of lowercase letters, digits and '-'");
    const times = { netMs: pollMs ?? NET_MS, pollMs: pollMs ?? POLL_MS };
    return { ...createDocuments(id, recordPlace(id, records, bus), { clock, times, scope }), isShared: true };
  },
});
