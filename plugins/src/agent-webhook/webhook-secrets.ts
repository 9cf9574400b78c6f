import { ports, type Secret } from "@portico/core";

export type WebhookSecrets = ReturnType<typeof createWebhookSecrets>;

/** The stored form of an agent's secret. It is enough to verify the secret. */
interface StoredSecret {
  /** SHA-256, as the port `secrets` makes it. */
  readonly digest: string;
}

const PREFIX = "whs_";

/** The webhook secrets of agents. All events of an agent share one secret (open points 5). Its value is returned only once. */
export function createWebhookSecrets({ records, secrets }: { readonly records: ports.Records; readonly secrets: ports.Secrets }) {
  const stored = records.collection<StoredSecret>({ name: "webhook-secrets" });
  const make = () => {
    const secret = secrets.create(PREFIX);
    return { secret, record: { digest: secrets.digest(secret.reveal()) } };
  };

  /**
   * Under load many triggers of one agent arrive in one turn of the event loop. They share one read of the store. It begins after all of them
   * arrived: none is checked against a secret that was replaced, in whichever process, before it was sent.
   */
  const ofThisTurn = new Map<string, Promise<ports.Stored<StoredSecret> | undefined>>();
  const find = (agentId: string) => {
    const looking = ofThisTurn.get(agentId) ?? readAfterTurn(agentId);
    ofThisTurn.set(agentId, looking);
    return looking;
  };
  const readAfterTurn = async (agentId: string) => {
    await new Promise<void>((resolve) => setImmediate(resolve));
    ofThisTurn.delete(agentId);
    return stored.get(agentId);
  };

  return {
    has: async (agentId: string): Promise<boolean> => (await stored.get(agentId)) !== undefined,
    /** Whether this is the agent's secret; undefined if the agent has no secret. Compares in constant time. */
    async check(agentId: string, presented: string): Promise<boolean | undefined> {
      const found = await find(agentId);
      return found && secrets.matches(presented, found.value.digest);
    },
    /** Creates the first secret; undefined if there is one already. Of several simultaneous calls, only one receives the secret. */
    async makeFirst(agentId: string): Promise<Secret | undefined> {
      const { secret, record } = make();
      try {
        await stored.put(agentId, record, "absent");
        return secret;
      } catch (error) {
        if (error instanceof ports.RecordConflict) return undefined;
        throw error;
      }
    },
    /** Replaces the secret. When this resolves, the previous secret is invalid. */
    async rotate(agentId: string): Promise<Secret> {
      const { secret, record } = make();
      await stored.put(agentId, record);
      return secret;
    },
  };
}
