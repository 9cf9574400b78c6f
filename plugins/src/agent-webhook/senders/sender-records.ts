import type { AuditWriter, ports, Secret } from "@portico/core";
import { sealAgain } from "@portico/core/kit";
import { FORMER_SECRET_MS } from "../limits.ts";
import type { SenderKind } from "./sender-rules.ts";

/** A sender of an agent's notifications, as it is stored. */
interface StoredSender {
  readonly agentId: string;
  readonly sender: string;
  readonly kind: SenderKind;
  /** Pairs of the vendor's name of an event, and the agent's. */
  readonly events: readonly (readonly [string, string])[];
  /** The secrets, sealed: JSON of `KeptSecret[]`, the present one first. */
  readonly sealed: string;
}

/** A secret with which notifications may be signed. */
interface KeptSecret {
  readonly secret: string;
  /** Milliseconds since 1970. Absent: until it is replaced. */
  readonly until?: number;
}

/** A sender without its secrets. */
export interface Sender {
  readonly sender: string;
  readonly kind: SenderKind;
  /** The agent's events, by the vendor's names. */
  readonly events: ReadonlyMap<string, string>;
}

/** A sender to create, or to change. */
export interface SenderOrder {
  readonly kind: SenderKind;
  readonly events: ReadonlyMap<string, string>;
  /** Default: the present secret stays, if the sender has one of this kind. */
  readonly secret?: Secret | undefined;
  /** Makes the secret of a sender that has no secret yet; undefined if the vendor makes it. */
  readonly make: () => Secret | undefined;
  readonly by: ports.AuditActor;
}

export type SenderRecords = ReturnType<typeof createSenderRecords>;

/**
 * The senders of all agents, with their secrets. A signature can only be checked with the secret itself, so it is stored sealed, and not as a
 * digest. Functions throw RecordsUnavailable and SealingUnavailable, and RecordConflict if another call changed the sender.
 */
export function createSenderRecords({
  records,
  sealing,
  clock,
  audit,
}: {
  readonly records: ports.Records;
  readonly sealing: ports.Sealing;
  readonly clock: ports.Clock;
  readonly audit: AuditWriter;
}) {
  const stored = records.collection<StoredSender>({ name: "webhook-senders", indexes: { by_agent: ["agentId"] } });
  const open = async ({ agentId, sender, sealed }: StoredSender): Promise<readonly KeptSecret[]> =>
    JSON.parse(await sealing.open(contextOfSender(agentId, sender), sealed)) as readonly KeptSecret[];
  const seal = (agentId: string, sender: string, secrets: readonly KeptSecret[]) =>
    sealing.seal(contextOfSender(agentId, sender), JSON.stringify(secrets));

  return {
    /** The senders of an agent, by their names; at most `limit`. */
    async list(agentId: string, limit: number): Promise<readonly Sender[]> {
      const { items } = await stored.query({ where: { agentId }, limit });
      return items.map(({ value }) => toSender(value));
    },
    /** A sender, and the secrets that are valid now. Throws SealBroken if they were sealed under another instance key. */
    async find(
      agentId: string,
      sender: string,
    ): Promise<(Sender & { readonly secrets: () => Promise<readonly string[]> }) | undefined> {
      const found = await stored.get(idOf(agentId, sender));
      if (!found) return undefined;
      const secrets = async () => {
        const now = clock.now();
        return (await open(found.value)).filter(({ until = Infinity }) => until > now).map(({ secret }) => secret);
      };
      return { ...toSender(found.value), secrets };
    },
    /** Creates or replaces a sender, and returns the secret that it made for it. `no-secret`: it would have none, and nothing was stored. */
    async save(
      agentId: string,
      sender: string,
      { kind, events, secret, make, by }: SenderOrder,
    ): Promise<{ readonly made?: Secret | undefined } | "no-secret"> {
      const id = idOf(agentId, sender);
      const found = await stored.get(id);
      const known = secret === undefined && found?.value.kind === kind ? found.value.sealed : undefined;
      const made = secret === undefined && known === undefined ? make() : undefined;
      const present = secret ?? made;
      const sealed = present ? await seal(agentId, sender, [{ secret: present.reveal() }]) : known;
      if (sealed === undefined) return "no-secret";
      const value = { agentId, sender, kind, events: [...events], sealed };
      await audit.record({ action: "webhook-sender.save", object: id, who: by }, [
        stored.write.put(id, value, found?.version ?? "absent"),
      ]);
      return { made };
    },
    /** Replaces the secret. The former one stays valid for a day if `keepFormer` is set. False for an unknown sender. */
    async rotate(
      agentId: string,
      sender: string,
      { secret, keepFormer, by }: { readonly secret: Secret; readonly keepFormer: boolean; readonly by: ports.AuditActor },
    ): Promise<boolean> {
      const id = idOf(agentId, sender);
      const found = await stored.get(id);
      if (!found) return false;
      const until = clock.now() + FORMER_SECRET_MS;
      const former = keepFormer ? (await open(found.value)).slice(0, 1).map((kept) => ({ ...kept, until })) : [];
      const sealed = await seal(agentId, sender, [{ secret: secret.reveal() }, ...former]);
      await audit.record({ action: "webhook-sender.rotate", object: id, who: by }, [
        stored.write.put(id, { ...found.value, sealed }, found.version),
      ]);
      return true;
    },
    /** Seals the secrets again that were sealed with an earlier key of the instance. */
    sealAgain: (closing: AbortSignal): Promise<void> => {
      const contextOf = (_id: string, { agentId, sender }: StoredSender) => contextOfSender(agentId, sender);
      return sealAgain({ collection: stored, contextOf }, sealing, closing);
    },
    /** False for an unknown sender. */
    async remove(agentId: string, sender: string, by: ports.AuditActor): Promise<boolean> {
      const id = idOf(agentId, sender);
      const found = await stored.get(id);
      if (!found) return false;
      await audit.record({ action: "webhook-sender.delete", object: id, who: by }, [stored.write.remove(id, found.version)]);
      return true;
    },
  };
}

function toSender({ sender, kind, events }: StoredSender): Sender {
  return { sender, kind, events: new Map(events) };
}

function idOf(agentId: string, sender: string): string {
  return `${agentId}/${sender}`;
}

function contextOfSender(agentId: string, sender: string): string {
  return `webhook-sender:${idOf(agentId, sender)}`;
}
