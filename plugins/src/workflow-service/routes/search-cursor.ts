import { type FindPlace, ports, readFindCursor, toFindCursor } from "@portico/core";
import { askedOf, type RunSearch } from "../runs/run-search.ts";

const CONTEXT = "workflow-run-search";

/**
 * A text from which the same search continues after a place. It is sealed: the place may be a run that the caller may not read. Throws
 * SealingUnavailable.
 */
export function toSearchCursor(sealing: ports.Sealing, search: RunSearch, place: FindPlace): Promise<string> {
  return sealing.seal(CONTEXT, toFindCursor(askedOf(search), place));
}

/** The place of a cursor. Undefined for an invalid cursor, and for one of another search. Throws SealingUnavailable. */
export async function readSearchCursor(
  sealing: ports.Sealing,
  search: RunSearch,
  cursor: string,
): Promise<FindPlace | undefined> {
  try {
    return readFindCursor(askedOf(search), await sealing.open(CONTEXT, cursor));
  } catch (error) {
    if (error instanceof ports.SealBroken) return undefined;
    throw error;
  }
}
