import { type AuditWriter, ports, readOncePerTurn, type Secret } from "@portico/core";

export type WebhookSecrets = ReturnType<typeof createWebhookSecrets>;

/** The stored form of an agent's secret. It is enough to verify the secret. */
interface StoredSecret {
  /** SHA-256, as the port `secrets` makes it. */
  readonly digest: string;
}

const PREFIX = "whs_";

/** The webhook secrets of agents. All events of an agent share one secret (open points 5). Its value is returned only once. */
export function createWebhookSecrets({
  records,
  secrets,
  audit,
}: {
  readonly records: ports.Records;
  readonly secrets: ports.Secrets;
  readonly audit: AuditWriter;
}) {
  const stored = records.collection<StoredSecret>({ name: "webhook-secrets" });
  const make = () => {
    const secret = secrets.create(PREFIX);
    return { secret, record: { digest: secrets.digest(secret.reveal()) } };
  };

  /** Triggers of one turn of the event loop share a read that begins after it: none is checked against a secret replaced before it was sent. */
  const find = readOncePerTurn((agentId) => stored.get(agentId));

  return {
    has: async (agentId: string): Promise<boolean> => (await stored.get(agentId)) !== undefined,
    /** Whether this is the agent's secret; undefined if the agent has no secret. Compares in constant time. */
    async check(agentId: string, presented: string): Promise<boolean | undefined> {
      const found = await find(agentId);
      return found && secrets.matches(presented, found.value.digest);
    },
    /** Creates the first secret; undefined if there is one already. Of several simultaneous calls, only one receives the secret. */
    async makeFirst(agentId: string, who: ports.AuditActor): Promise<Secret | undefined> {
      const { secret, record } = make();
      try {
        const fact = { action: "webhook-secret.create", object: agentId, who };
        await audit.record(fact, [stored.write.put(agentId, record, "absent")]);
        return secret;
      } catch (error) {
        if (error instanceof ports.RecordConflict) return undefined;
        throw error;
      }
    },
    /** Replaces the secret. When this resolves, the previous secret is invalid. */
    async rotate(agentId: string, who: ports.AuditActor): Promise<Secret> {
      const { secret, record } = make();
      await audit.record({ action: "webhook-secret.rotate", object: agentId, who }, [stored.write.put(agentId, record)]);
      return secret;
    },
  };
}
