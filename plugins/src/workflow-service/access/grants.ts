import { CREDENTIAL_PREFIXES, type ports } from "@portico/core";
import * as v from "valibot";
import { GRANT_MS } from "../contracts/limits.ts";

export { GRANT_MS };

/** The rights of an execution grant: to start one workflow once and, until it expires, to decide the gates of the workflow's runs and cancel them. */
export interface ExecutionGrant {
  readonly grantId: string;
  readonly workflowId: string;
  readonly userId?: string | undefined;
  readonly bindingId?: string | undefined;
  /** Allows its holder to test and write the definition, and nothing else. */
  readonly edits?: true | undefined;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** A request to issue a grant. */
export interface GrantOrder extends Pick<ExecutionGrant, "workflowId" | "userId" | "bindingId" | "edits"> {
  /** Milliseconds; default ten minutes. Throws RangeError for a lifetime that is not allowed. */
  readonly ttlMs?: number | undefined;
  /** The grant ends at this time at the latest, in milliseconds since 1970. */
  readonly until?: number | undefined;
}

const PURPOSE = "execution-grant";
const PREFIX = CREDENTIAL_PREFIXES.executionGrant;
// A purpose of its own, so that no grant to edit can be taken for one that starts runs.
const EDITING = { purpose: "editing-grant", prefix: CREDENTIAL_PREFIXES.editingGrant };

const payload = v.strictObject({
  i: v.string(),
  w: v.string(),
  u: v.optional(v.string()),
  b: v.optional(v.string()),
  e: v.pipe(v.number(), v.safeInteger()),
});

/** Issues and reads execution grants. */
export type Grants = ReturnType<typeof createGrants>;

/**
 * Execution grants (open points 8). They are signed with the instance's key. Every process with the key can issue them. Rotating the key revokes
 * all grants. Functions throw SigningUnavailable.
 */
export function createGrants({
  signing,
  clock,
  ids,
}: {
  readonly signing: ports.Signing;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
}) {
  return {
    /** Returns the grant as text. Every holder of the text has its rights. */
    async issue({ workflowId, userId, bindingId, edits, ttlMs = GRANT_MS.usual, until = Infinity }: GrantOrder): Promise<{
      readonly executionGrantId: string;
      readonly grant: ExecutionGrant;
    }> {
      if (!(ttlMs >= GRANT_MS.least && ttlMs <= GRANT_MS.most))
        throw new RangeError("The lifetime of a grant must be one second to 366 days");
      const expiresAt = Math.min(Math.floor(clock.now() + ttlMs), until);
      const grant = { grantId: ids.id(""), workflowId, userId, bindingId, edits, expiresAt };
      const text = JSON.stringify({ i: grant.grantId, w: workflowId, u: userId, b: bindingId, e: grant.expiresAt });
      const encoded = Buffer.from(text).toString("base64url");
      const signature = await signing.sign(edits ? EDITING.purpose : PURPOSE, encoded);
      return { executionGrantId: `${edits ? EDITING.prefix : PREFIX}${encoded}.${signature}`, grant };
    },
    /** Reads a grant that starts runs and decides about them; undefined if this instance did not sign it. The caller must check whether it has expired. */
    async read(text: string): Promise<ExecutionGrant | undefined> {
      return readSigned(text, { signing, purpose: PURPOSE, prefix: PREFIX });
    },
    /** The same for a grant to edit. */
    async readEditing(text: string): Promise<ExecutionGrant | undefined> {
      const grant = await readSigned(text, { signing, ...EDITING });
      return grant && { ...grant, edits: true };
    },
  };
}

async function readSigned(
  text: string,
  { signing, purpose, prefix }: { readonly signing: ports.Signing; readonly purpose: string; readonly prefix: string },
): Promise<ExecutionGrant | undefined> {
  const [encoded = "", signature = "", ...more] = text.startsWith(prefix) ? text.slice(prefix.length).split(".") : [];
  if (more.length > 0 || !(await signing.verify(purpose, encoded, signature))) return undefined;
  const { i, w, u, b, e } = v.parse(payload, JSON.parse(Buffer.from(encoded, "base64url").toString()));
  return { grantId: i, workflowId: w, userId: u, bindingId: b, expiresAt: e };
}

/** The use of a grant: its run, and the idempotency key with which the run was started. */
interface UsedGrant {
  readonly runId: string;
  readonly idempotencyKey: string;
  readonly expiresAt: number;
}

/** Stores which run each grant has started. */
export type UsedGrants = ReturnType<typeof createUsedGrants>;

/** Which grants have started their run. Functions throw RecordsUnavailable. */
export function createUsedGrants(records: ports.Records) {
  const used = records.collection<UsedGrant>({ name: "workflow-grants", indexes: { by_end: ["expiresAt"] } });
  return {
    find: async (grantId: string): Promise<UsedGrant | undefined> => (await used.get(grantId))?.value,
    /** The write that uses up the grant, for the commit of its run. A second use is a RecordConflict. */
    use: (grantId: string, use: UsedGrant): ports.Write => used.write.put(grantId, use, "absent"),
    /** Removes expired grants; returns whether there may be more. */
    async sweep(before: number): Promise<boolean> {
      const { items } = await used.query({
        order: { by: "expiresAt", direction: "ascending" },
        limit: SWEPT_AT_ONCE,
      });
      const expired = items.filter(({ value }) => value.expiresAt < before);
      for (const { id, version } of expired) await used.remove(id, version);
      return expired.length === SWEPT_AT_ONCE;
    },
  };
}

const SWEPT_AT_ONCE = 200;
