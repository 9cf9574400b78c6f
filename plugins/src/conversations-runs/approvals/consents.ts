import { type ports, readPages } from "@portico/core";
import { digestOf } from "./digest.ts";

/** A user's consent to all calls of a tool by an agent, as long as the tool is the same. */
export interface Consent {
  readonly id: string;
  readonly userId: string;
  readonly agentId: string;
  readonly toolId: string;
  /** Of the tool's definition (`toolDigest`). */
  readonly digest: string;
  /** ISO 8601. */
  readonly grantedAt: string;
}

type Subject = Pick<Consent, "userId" | "agentId" | "toolId">;

export type Consents = ReturnType<typeof createConsents>;

/** The standing consents of an instance: at most one for each user, agent and tool. */
export function createConsents(records: ports.Records) {
  const consents = records.collection<Consent>({ name: "tool-consents", indexes: { byUser: ["userId"] } });
  return {
    /** The write that grants a consent, in place of one to an earlier definition of the tool. */
    grant(subject: Subject, digest: string, at: number): ports.Write {
      const id = idOf(subject);
      return consents.write.put(id, { id, ...subject, digest, grantedAt: new Date(at).toISOString() });
    },
    /** Whether the user consented to this definition of the tool. */
    has: async (subject: Subject, digest: string): Promise<boolean> =>
      (await consents.get(idOf(subject)))?.value.digest === digest,
    find: async (id: string): Promise<Consent | undefined> => (await consents.get(id))?.value,
    /** The write that revokes a consent. */
    revoke: (id: string): ports.Write => consents.write.remove(id),
    remove: (id: string): Promise<boolean> => consents.remove(id),
    /** Those of a user, or of all users, in pages. */
    async *of(userId: string | undefined): AsyncGenerator<readonly Consent[], void> {
      for await (const page of readPages(consents, userId === undefined ? {} : { where: { userId } }))
        yield page.map(({ value }) => value);
    },
  };
}

function idOf({ userId, agentId, toolId }: Subject): string {
  return `consent_${digestOf([userId, agentId, toolId])}`;
}
