/** A resource that a machine can run out of. */
export type Shortage = "storage_full" | "too_many_open_files";

/** By the error codes of the system, SQLite (`errcode`) and PostgreSQL. */
const SHORTAGES: ReadonlyMap<unknown, Shortage> = new Map([
  ...["ENOSPC", "EDQUOT", "EFBIG", "53100"].map((code) => [code, "storage_full"] as const),
  // Node.js uses the last code if it loads a module for the first time during the shortage.
  ...["EMFILE", "ENFILE", "ERR_INVALID_PACKAGE_CONFIG"].map((code) => [code, "too_many_open_files"] as const),
]);
const SQLITE_FULL = 13;
/** Limits a circle of causes. Real chains are short. */
const DEPTH = 10;

/** The shortage that an error reports, or that caused it. Undefined for other errors. */
export function findShortage(error: unknown): Shortage | undefined {
  for (let each = error, depth = 0; each instanceof Error && depth < DEPTH; each = each.cause, depth++) {
    const found = SHORTAGES.get((each as NodeJS.ErrnoException).code);
    if (found) return found;
    if ("errcode" in each && Number(each.errcode) === SQLITE_FULL) return "storage_full";
  }
  return undefined;
}

/** Descriptions for people. */
export const SHORTAGE_WORDS: Readonly<Record<Shortage, string>> = {
  storage_full: "The disk is full",
  too_many_open_files: "Too many files are open",
};
