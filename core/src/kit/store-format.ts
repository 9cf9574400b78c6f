/**
 * Why a store was not opened: a newer version wrote it. The error that the port throws has it as a direct or indirect cause. The
 * store was not changed.
 */
export class StoreTooNew extends Error {
  override readonly name = "StoreTooNew";

  /**
   * @param store the beginning of the message: `The records store`.
   * @param found the store's format.
   * @param newest the newest format that this version reads.
   */
  constructor(store: string, found: number, newest: number) {
    super(`${store} was written by a newer version: it has format ${found}, and this version reads formats up to ${newest}`);
  }
}

/**
 * The steps that convert a store of format `found` to the newest format, in order; empty for the newest format. Formats count
 * from 1: `steps[0]` converts format 1 to 2, so the newest format is the number of steps plus one. Throws StoreTooNew, and an
 * Error for an invalid format.
 */
export function stepsFrom<Step>(store: string, found: unknown, steps: readonly Step[]): readonly Step[] {
  const newest = steps.length + 1;
  if (!Number.isSafeInteger(found) || Number(found) < 1) throw new Error(`${store} does not tell its format`);
  if (Number(found) > newest) throw new StoreTooNew(store, Number(found), newest);
  return steps.slice(Number(found) - 1);
}

/**
 * Why a store was not opened: it does not exist yet, or an earlier version wrote it, and its options exclude that opening creates
 * or converts it. The error that the port throws has it as a direct or indirect cause. The store was not changed.
 */
export class StoreUnmigrated extends Error {
  override readonly name = "StoreUnmigrated";

  /**
   * @param store the beginning of the message: `The records store`.
   * @param found the store's format. Undefined for a missing store.
   * @param newest the newest format that this version reads.
   */
  constructor(store: string, found: number | undefined, newest: number) {
    const state = found === undefined ? "does not exist yet" : `has format ${found}, and this version needs format ${newest}`;
    super(`${store} ${state}: run \`portico migrate\` with this version first`);
  }
}

/** Why a store was not opened: another program made it, or another key sealed it. The store was not changed. */
export class StoreForeign extends Error {
  override readonly name = "StoreForeign";
}

/**
 * The StoreTooNew that an error is, or that caused it. Recognised by name, because two copies of this package may be in one
 * process.
 */
export function findStoreTooNew(error: unknown): Error | undefined {
  return findNamed(error, ["StoreTooNew"]);
}

/** The same for StoreTooNew, StoreUnmigrated and StoreForeign: the store does not fit this version or its settings. */
export function findStoreMismatch(error: unknown): Error | undefined {
  return findNamed(error, ["StoreTooNew", "StoreUnmigrated", "StoreForeign"]);
}

function findNamed(error: unknown, names: readonly string[]): Error | undefined {
  for (let each = error, depth = 0; each instanceof Error && depth < 10; each = each.cause, depth++) {
    if (names.includes(each.name)) return each;
  }
  return undefined;
}
