import { type AuditWriter, CREDENTIAL_PREFIXES, ports, readOncePerTurn, type Secret } from "@portico/core";

export type WebhookSecrets = ReturnType<typeof createWebhookSecrets>;

/** The stored form of an agent's secret. It is enough to verify the secret. */
interface StoredSecret {
  /** SHA-256, as the port `secrets` makes it. */
  readonly digest: string;
  /** Milliseconds since 1970. Absent: it has no end. */
  readonly expiresAt?: number;
}

/** Who makes a secret, and when it ends at the latest. */
export interface SecretOrder {
  readonly by: ports.AuditActor;
  /** Milliseconds since 1970. Default: it has no end. */
  readonly expiresAt?: number | undefined;
}

/** The webhook secrets of agents. All events of an agent share one secret (open points 5). Its value is returned only once. */
export function createWebhookSecrets({
  records,
  secrets,
  clock,
  audit,
}: {
  readonly records: ports.Records;
  readonly secrets: ports.Secrets;
  readonly clock: ports.Clock;
  readonly audit: AuditWriter;
}) {
  const stored = records.collection<StoredSecret>({ name: "webhook-secrets" });
  const make = ({ expiresAt }: SecretOrder) => {
    const secret = secrets.create(CREDENTIAL_PREFIXES.webhookSecret);
    const record = { digest: secrets.digest(secret.reveal()), ...(expiresAt !== undefined && { expiresAt }) };
    return { secret, record };
  };

  /** Triggers of one turn of the event loop share a read that begins after it: none is checked against a secret replaced before it was sent. */
  const find = readOncePerTurn((agentId) => stored.get(agentId));

  return {
    has: async (agentId: string): Promise<boolean> => (await stored.get(agentId)) !== undefined,
    /** Whether this is the agent's secret and has not expired; undefined if the agent has no secret. Compares in constant time. */
    async check(agentId: string, presented: string): Promise<boolean | undefined> {
      const found = await find(agentId);
      if (!found) return undefined;
      const { digest, expiresAt = Infinity } = found.value;
      return secrets.matches(presented, digest) && expiresAt > clock.now();
    },
    /** Creates the first secret; undefined if there is one already. Of several simultaneous calls, only one receives the secret. */
    async makeFirst(agentId: string, order: SecretOrder): Promise<Secret | undefined> {
      const { secret, record } = make(order);
      try {
        const fact = { action: "webhook-secret.create", object: agentId, who: order.by };
        await audit.record(fact, [stored.write.put(agentId, record, "absent")]);
        return secret;
      } catch (error) {
        if (error instanceof ports.RecordConflict) return undefined;
        throw error;
      }
    },
    /** Replaces the secret. When this resolves, the previous secret is invalid. */
    async rotate(agentId: string, order: SecretOrder): Promise<Secret> {
      const { secret, record } = make(order);
      await audit.record({ action: "webhook-secret.rotate", object: agentId, who: order.by }, [
        stored.write.put(agentId, record),
      ]);
      return secret;
    },
  };
}
