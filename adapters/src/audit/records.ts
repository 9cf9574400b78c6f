import { defineAdapter, fromEnv, keeping, keepingMs, ports, type Scope, ServiceError } from "@portico/core";
import * as v from "valibot";
import { createFindAddress, isNetwork } from "./records/caller-address.ts";
import { dayOf, readEntries, type StoredEntry } from "./records/read-entries.ts";

/** Options of `recordAudit`, which presets have as settings. */
export const auditSettings = {
  keep: v.optional(fromEnv("PORTICO_AUDIT_KEEP", keeping(), "How long entries of the audit are kept."), "forever"),
  trustedProxies: v.optional(
    fromEnv(
      "PORTICO_AUDIT_TRUSTED_PROXIES",
      v.array(v.pipe(v.string(), v.check(isNetwork, "an address or a network, such as 10.0.0.0/8"))),
      "Addresses and networks of the reverse proxies whose `X-Forwarded-For` the audit believes. Otherwise it records the address of the connection.",
    ),
    [],
  ),
};

const auditOptions = v.strictObject(auditSettings);
/** Options of `recordAudit`. */
export type RecordAuditOptions = v.InferInput<typeof auditOptions>;

/** The audit in any adapter of the port `records`. An action that is a write of records is recorded in the same commit. */
export const recordAudit = defineAdapter({
  name: "audit/records",
  port: ports.audit,
  needs: { records: ports.records, clock: ports.clock, ids: ports.ids, telemetry: ports.telemetry },
  open(given, { keep = "forever", trustedProxies = [] }: RecordAuditOptions, scope): ports.Audit {
    const { records, clock, ids, telemetry } = given;
    const keepMs = keepingMs(keep);
    const findAddress = createFindAddress(trustedProxies);
    const entries = records.collection<StoredEntry>({
      name: "audit-entries",
      indexes: { byTime: ["at"], byDay: ["day", "at"], byAction: ["action", "day", "at"] },
    });
    const entryOf = ({ action, object, count, who }: ports.AuditFact): StoredEntry => {
      const at = new Date(clock.now()).toISOString();
      const { role, userId, tokenId } = who;
      const from = { address: findAddress(who) };
      const named = { userId: shortened(userId), tokenId: shortened(tokenId) };
      return { day: dayOf(at), at, action, object: shortened(object), count, outcome: "done", who: { role, ...named, ...from } };
    };
    if (keepMs !== undefined) sweepHourly(entries, keepMs, given, scope);
    return {
      async record(fact, writes = []) {
        await records.batch([...writes, entries.write.put(ids.id("audit_"), entryOf(fact), "absent")]);
      },
      async attempt(fact, run) {
        const of = ids.id("audit_");
        await entries.put(of, { ...entryOf(fact), outcome: "begun" }, "absent");
        const end = async (outcome: Pick<StoredEntry, "outcome" | "error">) => {
          try {
            await entries.put(ids.id("audit_"), { ...entryOf(fact), ...outcome, of }, "absent");
          } catch (error) {
            // The action has ended already, and its beginning is recorded.
            telemetry.log.warn("The end of an action could not be recorded in the audit", { action: fact.action }, error);
          }
        };
        try {
          const result = await run();
          await end({ outcome: "done" });
          return result;
        } catch (error) {
          await end({ outcome: "failed", error: ServiceError.is(error) ? error.code : "internal_error" });
          throw error;
        }
      },
      read: (query = {}) => readEntries(entries, query),
    };
  },
});

const LONGEST = 512;
const SWEEP_MS = 60 * 60_000;
/** The first sweep runs soon, for services that do not run for an hour, but not at the start, which has enough work. */
const FIRST_SWEEP_MS = 60_000;
const SWEPT_AT_ONCE = 200;

/** Ids come from callers, too. */
function shortened(text: string | undefined): string | undefined {
  return text?.slice(0, LONGEST).toWellFormed().replaceAll("\0", "\uFFFD");
}

function sweepHourly(
  entries: ports.Collection<StoredEntry>,
  keepMs: number,
  { clock, telemetry }: { readonly clock: ports.Clock; readonly telemetry: ports.Telemetry },
  scope: Scope,
): void {
  const closing = new AbortController();
  let sweeping: Promise<void> = Promise.resolve();
  const sweep = async () => {
    try {
      while (!closing.signal.aborted && (await removeBefore(entries, new Date(clock.now() - keepMs).toISOString())));
    } catch (error) {
      if (!closing.signal.aborted) telemetry.log.warn("Old entries of the audit could not be removed", {}, error);
    }
  };
  const next = (ms: number): ports.Timer =>
    clock.after(ms, () => {
      sweeping = sweep();
      timer = next(SWEEP_MS);
    });
  let timer = next(FIRST_SWEEP_MS);
  scope.onClose(async () => {
    closing.abort();
    timer.cancel();
    await sweeping;
  });
}

/** Returns whether there may be more. Several processes may do this at the same time. */
async function removeBefore(entries: ports.Collection<StoredEntry>, before: string): Promise<boolean> {
  const { items } = await entries.query({ order: { by: "at", direction: "ascending" }, limit: SWEPT_AT_ONCE });
  const old = items.filter(({ value }) => value.at < before);
  for (const { id } of old) await entries.remove(id);
  return old.length === SWEPT_AT_ONCE;
}
