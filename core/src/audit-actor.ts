import type { Audit, AuditActor } from "./ports/audit.ts";
import type { Caller } from "./ports/identity.ts";
import type { Records } from "./ports/records.ts";
import type { RequestHead } from "./route.ts";

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
