import { setTimeout as sleep } from "node:timers/promises";
import { ports } from "@portico/core";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readSettings } from "./read-settings.ts";
import { readSince } from "./read-options.ts";
import type { SettingsFlags } from "./settings-flags.ts";
import { printable, printableJson } from "./terminal.ts";
import { hasStore, withStores } from "./store-app.ts";

interface AuditFlags {
  readonly since?: string | undefined;
  readonly action?: string | undefined;
  readonly address?: string | undefined;
  readonly json?: boolean | undefined;
  readonly follow?: boolean | undefined;
}

const DEFAULT_SINCE = "7d";
const LOOK_MS = 1000;
/** An entry's time is set before its commit: an earlier one may appear after a later one. */
const LATE_MS = 60_000;

/**
 * Prints the entries of the audit, the newest first; with `follow` those that are recorded from now on. Opens the store itself: the same with
 * and without a running service. Returns the exit code. Throws CommandFailed (64, 69, 78).
 */
export async function printAudit(flags: SettingsFlags, wanted: AuditFlags): Promise<number> {
  const since = readSince(wanted.since ?? DEFAULT_SINCE);
  const { settings } = await readSettings(flags);
  const print = (entry: ports.AuditEntry) => console.log(wanted.json ? printableJson(entry) : lineOf(entry));
  if (!hasStore(settings)) {
    if (wanted.follow) throw new CommandFailed("The instance has no store yet: its first start creates it", EXIT.failed);
    return EXIT.ok;
  }
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  process.once("SIGINT", leave);
  process.stdout.once("error", leave);
  try {
    return await withStores(settings, { needed: [ports.records] }, async (app) => {
      const audit = app.port(ports.audit);
      const query = { action: wanted.action, address: wanted.address };
      if (!wanted.follow) {
        for await (const entry of eachEntry(audit, { ...query, since }, leaving.signal)) print(entry);
        return EXIT.ok;
      }
      for await (const entry of newEntries(
        audit,
        { ...query, since: wanted.since === undefined ? Date.now() : since },
        leaving.signal,
      ))
        print(entry);
      return EXIT.stopped;
    });
  } finally {
    process.off("SIGINT", leave);
    process.stdout.off("error", leave);
  }
}

async function* eachEntry(audit: ports.Audit, query: ports.AuditQuery, signal: AbortSignal): AsyncIterable<ports.AuditEntry> {
  let after: string | undefined;
  do {
    const page = await audit.read({ ...query, limit: 1000, after });
    yield* page.items;
    after = page.next;
  } while (after !== undefined && !signal.aborted);
}

/** Entries that appear, the oldest first. */
async function* newEntries(
  audit: ports.Audit,
  { since = 0, ...query }: ports.AuditQuery,
  signal: AbortSignal,
): AsyncIterable<ports.AuditEntry> {
  let seen = new Map<string, string>();
  let from = since;
  while (!signal.aborted) {
    const found: ports.AuditEntry[] = [];
    for await (const entry of eachEntry(audit, { ...query, since: from }, signal)) if (!seen.has(entry.id)) found.push(entry);
    for (const entry of found.toReversed()) {
      seen.set(entry.id, entry.at);
      yield entry;
    }
    const newest = [...seen.values()].reduce((one, other) => (one > other ? one : other), "");
    // The first entries are read from the given time on, and later ones as far back as late entries may be.
    if (newest !== "") from = Math.max(since, Date.parse(newest) - LATE_MS);
    seen = new Map([...seen].filter(([, at]) => Date.parse(at) >= from));
    await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
  }
}

/** One line for a person: when, what, with which outcome, who, from where. */
function lineOf({ at, action, object, count, outcome, error, who }: ports.AuditEntry): string {
  const by = [who.role, who.userId, who.tokenId].filter((part) => part !== undefined).join(" ");
  const parts = [
    at,
    action,
    object ?? "",
    count === undefined ? "" : `(${count})`,
    outcome === "done" ? "" : outcome,
    error ?? "",
    `by ${by}`,
    who.address === undefined ? "" : `from ${who.address}`,
  ];
  return printable(parts.filter((part) => part !== "").join("  "));
}
