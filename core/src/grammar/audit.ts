import type { Audit, AuditActor } from "../ports/audit.ts";
import type { Caller } from "../ports/identity.ts";
import type { Records } from "../ports/records.ts";
import type { RequestHead } from "./contract.ts";
import type { Clock, Timer } from "../ports/clock.ts";
import type { Telemetry } from "../ports/telemetry.ts";

/** The caller of a request, as the audit records it. */
export function auditActor(who: Pick<AuditActor, "role" | "userId" | "tokenId"> | Caller, head: RequestHead): AuditActor {
  const { role, userId, tokenId } = who;
  return { role, userId, tokenId, address: head.address, forwardedFor: head.header("x-forwarded-for") };
}

/** The part of the audit that writes. */
export type AuditWriter = Pick<Audit, "record" | "attempt">;

/** The audit of an app, or one that records nothing and only writes what it is given. */
export function auditWriter(audit: Audit | undefined, records: Records): AuditWriter {
  return (
    audit ?? {
      record: async (_fact, writes = []) => {
        if (writes.length > 0) await records.batch(writes);
      },
      attempt: async (_fact, run) => run(),
    }
  );
}

/** One entry of the audit for all refusals of a surface in this time, so that an attack does not fill the store. */
const GATHERED_MS = 60_000;

interface Gathered {
  count: number;
  last: AuditActor;
  readonly timer: Timer;
}

/** Records in the audit how often callers without a valid credential were refused, by surface, with the last address. */
export class Refusals {
  readonly #given: { readonly audit: Audit; readonly clock: Clock; readonly telemetry: Telemetry };
  readonly #gathered = new Map<string, Gathered>();
  readonly #written = new Set<Promise<void>>();

  constructor(given: { readonly audit: Audit; readonly clock: Clock; readonly telemetry: Telemetry }) {
    this.#given = given;
  }

  note(surface: string, head: RequestHead): void {
    const last: AuditActor = { role: "unknown", address: head.address, forwardedFor: head.header("x-forwarded-for") };
    const known = this.#gathered.get(surface);
    if (known) {
      known.count++;
      known.last = last;
      return;
    }
    const timer = this.#given.clock.after(GATHERED_MS, () => this.#write(surface));
    this.#gathered.set(surface, { count: 1, last, timer });
  }

  /** Records what was gathered. */
  async close(): Promise<void> {
    for (const surface of [...this.#gathered.keys()]) this.#write(surface);
    await Promise.all(this.#written);
  }

  #write(surface: string): void {
    const gathered = this.#gathered.get(surface);
    if (!gathered) return;
    gathered.timer.cancel();
    this.#gathered.delete(surface);
    const { audit, telemetry } = this.#given;
    const fact = { action: "access.refused", object: surface, count: gathered.count, who: gathered.last };
    const writing = Promise.resolve()
      .then(() => audit.record(fact))
      .catch((error: unknown) => telemetry.log.warn("Refused calls could not be recorded in the audit", { surface }, error))
      .finally(() => this.#written.delete(writing));
    this.#written.add(writing);
  }
}
