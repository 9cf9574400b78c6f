import { hash } from "node:crypto";
import { ports, readPages, Secret, writeAgain } from "@portico/core";
import type { AgentRuntimeSettings } from "../config.ts";
import type { LookupBody, LookupResult } from "../query-contract.ts";
import { transcriptStream } from "../turns/turn.ts";
import { admissionStatus, advanceRequest, type RequestState } from "./request-state.ts";

/** A message of the user to a turn that goes on. */
export interface SteeringMessage {
  readonly id: string;
  /** A digest of the text. */
  readonly digest: string;
  /** Until the turn ends. */
  readonly text?: string | undefined;
  /** Set when the turn has ended: whether the agent was told. */
  readonly isTaken?: boolean | undefined;
}

/** The registry's record of one submission. */
export interface ClientRequest {
  readonly userId: string;
  readonly clientRequestId: string;
  readonly userMessageId: string;
  readonly agentId: string;
  readonly conversationId: string;
  readonly sessionId: string;
  readonly runId: string;
  readonly turnId: string;
  /** The client's digest, which is opaque, and our own of the same content. */
  readonly requestDigest: string;
  readonly contentDigest: string;
  /** The listener whose connections receive the events of the turn. */
  readonly clientInstanceId?: string | undefined;
  readonly state: Exclude<RequestState, "absent">;
  /** Milliseconds since 1970. */
  readonly reservedAt: number;
  readonly committedAt?: number | undefined;
  readonly endedAt?: number | undefined;
  /** Which process wrote the user message, and which number the turn has among those that began there. */
  readonly serverInstanceId?: string | undefined;
  readonly number?: number | undefined;
  /** The subscriber of the turn (`subscriberOf`), from its beginning until its output is removed. */
  readonly audience?: string | undefined;
  /** Why the turn is to stop: it was stopped before it began, or while it waited for a person. */
  readonly stop?: string | undefined;
  /** The number of the turn's wait for a person, while it waits. */
  readonly waits?: number | undefined;
  /** What the user said to the turn while it went on, oldest first. */
  readonly steering?: readonly SteeringMessage[] | undefined;
  /** Set when the turn has ended. The sweep searches for these, in the order of their times. */
  readonly isOver?: true | undefined;
  readonly sweepAt?: number | undefined;
}

export type ClientRequests = Awaited<ReturnType<typeof openClientRequests>>;

interface Registry {
  /** Milliseconds since 1970: every submission since then is in the registry; `pending` while its first start goes on. */
  readonly coveredSince: number | "pending";
  /** What the instance's secret is made of where this registry is its first. */
  readonly mark?: string | undefined;
  /** How many losses of the store it knows of. */
  readonly losses?: number | undefined;
}

const SWEEP_PAGE = 200;
const HEARD_PAGE = 100;
const EXECUTING_PAGE = 10;

/** The collection of the registry. */
export const clientRequests: ports.CollectionSpec = {
  name: "client-requests",
  indexes: { bySweep: ["isOver", "sweepAt"], byAudience: ["audience", "endedAt"] },
};

/** Whether the turn of a request waits or executes. */
export const isOpenRequest = ({ state }: ClientRequest): boolean => state === "reserved" || state === "committed";

/** The registry of submissions (open points 7): exactly one turn per user and clientRequestId, for as long as it is remembered. */
export async function openClientRequests(given: {
  readonly records: ports.Records;
  readonly log: ports.EventLog;
  readonly secrets: ports.Secrets;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  readonly settings: AgentRuntimeSettings;
  readonly serverInstanceId: string;
  /** Whether the process with this `serverInstanceId` lives. Undefined where that cannot be known now. */
  readonly isAlive: (serverInstanceId: string) => Promise<boolean | undefined>;
}) {
  const { records, log, clock, settings, serverInstanceId, isAlive } = given;
  const { autoReplayRetentionMs, tombstoneRetentionMs } = settings;
  const requests = records.collection<ClientRequest>(clientRequests);
  const coveredSince = await readCoverage(given);

  /** Open points 11: `current` is what any living process committed. */
  const committedBy = async (instance: string | undefined): Promise<"current" | "previous" | "unknown"> => {
    if (instance === undefined) return "previous";
    const lives = await isAlive(instance);
    if (lives === undefined) return "unknown";
    return lives ? "current" : "previous";
  };

  const lookUp = async (userId: string, body: LookupBody, asked: LookupBody["requests"][number]) => {
    const { clientRequestId } = asked;
    const found = (await requests.get(requestKey(userId, clientRequestId)))?.value;
    if (!found) {
      // Only a registry that has covered the whole protection window knows that it never saw an ID.
      const covers = clock.now() - coveredSince >= tombstoneRetentionMs;
      return { clientRequestId, status: covers ? ("absent" as const) : ("unknown" as const) };
    }
    // The ID belongs to another submission than the caller assumes. It is unknown whether the caller's own submission arrived.
    if (!isMeant(found, body, asked)) return { clientRequestId, status: "unknown" as const };
    const status = admissionStatus(found.state);
    if (status !== "committed") return { clientRequestId, status };
    return {
      clientRequestId,
      status,
      ...(found.committedAt !== undefined && { committedAt: new Date(found.committedAt).toISOString() }),
      sessionId: found.sessionId,
      committedServerInstance: await committedBy(found.serverInstanceId),
      executionWitness: "user-message" as const,
    };
  };

  return {
    find: (key: string): Promise<ports.Stored<ClientRequest> | undefined> => requests.get(key),
    write: requests.write,
    put: requests.put,
    /** The states of submissions (specification 2.13). The state is `unknown` if it cannot be read. */
    async lookup(userId: string, body: LookupBody): Promise<LookupResult> {
      const observedAt = new Date(clock.now()).toISOString();
      const results = await Promise.all(
        body.requests.map((asked) =>
          lookUp(userId, body, asked).catch(() => ({ clientRequestId: asked.clientRequestId, status: "unknown" as const })),
        ),
      );
      return { protocolVersion: 1, serverInstanceId, observedAt, autoReplayRetentionMs, tombstoneRetentionMs, results };
    },
    /** Requests of a subscriber whose turns execute now, and those whose turns ended after this time (milliseconds since 1970). */
    async *heardBy(subscriber: string, since: number): AsyncIterable<ClientRequest> {
      const pages = async function* (direction: "ascending" | "descending") {
        const query = { where: { audience: subscriber }, order: { by: "endedAt", direction }, limit: HEARD_PAGE } as const;
        for await (const items of readPages(requests, query)) yield* items.map(({ value }) => value);
      };
      // Those that have not ended come first.
      for await (const request of pages("ascending")) {
        if (request.endedAt !== undefined) break;
        yield request;
      }
      for await (const request of pages("descending")) {
        if (request.endedAt === undefined || request.endedAt <= since) break;
        yield request;
      }
    },
    /** Requests of a subscriber whose turns execute now, or wait for a person. */
    async *executing(subscriber: string): AsyncIterable<ClientRequest> {
      const query = {
        where: { audience: subscriber },
        order: { by: "endedAt", direction: "ascending" },
        limit: EXECUTING_PAGE,
      } as const;
      // Those that have not ended come first.
      for await (const items of readPages(requests, query)) {
        for (const { value } of items) {
          if (value.endedAt !== undefined) return;
          yield value;
        }
      }
    },
    /** Requests of a user whose turns wait or execute. Reads the whole registry. */
    async *openOf(userId: string): AsyncIterable<ClientRequest> {
      for await (const items of readPages(requests, {}))
        yield* items.map(({ value }) => value).filter((request) => request.userId === userId && isOpenRequest(request));
    },
    /** Removes expired data: first the output of turns, later the record of the request. */
    async sweep(signal: AbortSignal): Promise<void> {
      for (;;) {
        const { items } = await requests.query({
          where: { isOver: true },
          order: { by: "sweepAt", direction: "ascending" },
          limit: SWEEP_PAGE,
        });
        const due = items.filter(({ value }) => value.sweepAt! <= clock.now());
        for (const { id, value, version } of due) {
          signal.throwIfAborted();
          if (value.state === "tombstone") {
            advanceRequest(value.state, "forget");
            await requests.remove(id, version);
            continue;
          }
          await log.remove(transcriptStream(value.turnId));
          const state = advanceRequest(value.state, "retire") as ClientRequest["state"];
          const sweepAt = (value.endedAt ?? clock.now()) + tombstoneRetentionMs;
          await requests.put(id, { ...value, state, sweepAt, audience: undefined }, version);
        }
        if (due.length < SWEEP_PAGE) return;
      }
    },
    /** When a turn that ends now is swept first. */
    sweepAt: (endedAt: number): number => endedAt + autoReplayRetentionMs,
  };
}

/** Under which key the registry keeps a user's submission: any text can be an ID. */
export function requestKey(userId: string, clientRequestId: string): string {
  return `req_${hash("sha256", JSON.stringify([userId, clientRequestId]))}`;
}

function isMeant(found: ClientRequest, body: LookupBody, asked: LookupBody["requests"][number]): boolean {
  return (
    found.agentId === body.agentId &&
    (body.conversationId === undefined || body.conversationId === found.conversationId) &&
    (asked.userMessageId === undefined || asked.userMessageId === found.userMessageId)
  );
}

/**
 * Since when the registry has seen everything. An instance's first registry has always done so; one that stands where an earlier one was
 * lost has not, and the instance's own secret, which is kept elsewhere, tells them apart (open points 10). One whose store lost a part has
 * not, either, from when that is noticed.
 */
async function readCoverage({
  records,
  secrets,
  clock,
  ids,
}: {
  readonly records: ports.Records;
  readonly secrets: ports.Secrets;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
}): Promise<number> {
  const registries = records.collection<Registry>({ name: "client-registry" });
  const losses = (await records.collection<ports.StoreLoss>({ name: ports.STORE_LOSSES }).query({ limit: 1000 })).items.length;
  // Processes that start at the same time continue with what the first of them wrote.
  return writeAgain(async () => {
    const known = await registries.get("registry");
    if (known && known.value.coveredSince !== "pending") {
      if (losses <= (known.value.losses ?? 0)) return known.value.coveredSince;
      const coveredSince = clock.now();
      await registries.put("registry", { coveredSince, losses }, known.version);
      return coveredSince;
    }
    // A first start that was cut off goes on with its own mark: the secret holds it, or is made with it now. Another's secret means that
    // there was a registry before.
    const mark = known?.value.mark ?? ids.id("");
    const pending = await registries.put("registry", { coveredSince: "pending", mark }, known?.version ?? "absent");
    const secret = await secrets.keep("clientRequestRegistry", () => new Secret(`registry_${mark}`));
    const coveredSince = secret.value.reveal() === `registry_${mark}` ? 0 : clock.now();
    await registries.put("registry", { coveredSince, ...(losses > 0 && { losses }) }, pending.version);
    return coveredSince;
  });
}
