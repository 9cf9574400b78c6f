import { ports, readPages, type Scope, writeAgain } from "@portico/core";
import { GATHER_MS, GATHERED_EVENTS, KEPT_RECEIVED, QUIET_MS, RECEIVED_MS } from "../limits.ts";

/** What became of an event that arrived. */
export type ReceivedStatus = "accepted" | "ignored" | "refused";

/** Events that arrived, as they are stored and listed: one that was accepted, or several of an hour that were not. Times are ISO 8601. */
export interface ReceivedEvent {
  readonly agentId: string;
  readonly status: ReceivedStatus;
  /** When it arrived last. */
  readonly at: string;
  readonly firstAt: string;
  /** How often it arrived. */
  readonly count: number;
  /** The sender by which it came. Absent for triggers. */
  readonly sender?: string | undefined;
  /** The event of the agent, or the sender's name of the newest event that was not accepted. */
  readonly event?: string | undefined;
  /** Why it was not accepted: the code of the error, or `not_mapped`. */
  readonly reason?: string | undefined;
  readonly runId?: string | undefined;
}

/** An event that was not accepted. */
export interface TurnedAway extends Pick<ReceivedEvent, "agentId" | "sender" | "event"> {
  readonly status: "ignored" | "refused";
  readonly reason: string;
}

export type ReceivedEvents = ReturnType<typeof createReceivedEvents>;

interface ReceivedEventsGiven {
  readonly records: ports.Records;
  readonly agents: ports.Agents;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
}

const HOUR_MS = 60 * 60_000;
const PAGE = 200;
/** Records of one write. */
const AT_ONCE = 100;
const STATUSES: readonly ReceivedStatus[] = ["accepted", "ignored", "refused"];
const NEWEST = { by: "at", direction: "descending" } as const;

/** Events of one kind that this process has not written yet. */
interface Unwritten {
  readonly away: TurnedAway;
  firstAt: number;
  at: number;
  count: number;
  event: string | undefined;
}

/**
 * Which events arrived at the agents, without their contents. Each accepted event has a record. It is written within a second and not before the
 * answer, which would take a third of what a process can accept: the run of the event is durable then. Events that were not accepted are
 * counted: one record for an agent, sender and reason in an hour, which a process writes once in 10 s at most. So callers without a secret cannot fill
 * the store, and cannot push out accepted events.
 */
export function createReceivedEvents({ records, agents, clock, log }: ReceivedEventsGiven, scope: Scope) {
  const stored = records.collection<ReceivedEvent>({
    name: "webhook-received",
    indexes: { by_agent: ["agentId", "at"], by_status: ["agentId", "status", "at"], by_time: ["at"] },
  });
  /** By agent, sender and reason. An entry without events is quiet: the next event waits for the end of its time. */
  const unwritten = new Map<string, Unwritten>();
  /** Accepted events that this process has not written yet, by their runs. */
  let gathered = new Map<string, ReceivedEvent>();
  const writing = new Set<Promise<void>>();

  const add = (id: string, next: ReceivedEvent) =>
    writeAgain(async () => {
      const row = await stored.get(id);
      // Another process may have written a later count already.
      await stored.put(id, row ? together(next, row.value) : next, row?.version ?? "absent");
    });
  /** What was counted must never change how an event is answered. */
  const failed = (agentId: string) => (error: unknown) =>
    log.warn("An event that arrived could not be noted", { agent: agentId }, error);

  const write = ({ away, event, ...counted }: Unwritten): void => {
    const { agentId, sender, reason, status } = away;
    // A sender's name and a code have no spaces.
    const id = [agentId, sender ?? "", reason, Math.floor(counted.firstAt / HOUR_MS)].join(" ");
    keep(add(id, { agentId, status, reason, sender, event, ...toTexts(counted) }).catch(failed(agentId)));
  };
  const keep = (written: Promise<void>): void => {
    const kept = written.finally(() => writing.delete(kept));
    writing.add(kept);
  };
  /** Usually one write for all. Those that their sender sent again are written one by one. */
  const writeGathered = (): void => {
    gathering?.cancel();
    gathering = undefined;
    const all = [...gathered];
    gathered = new Map();
    for (let from = 0; from < all.length; from += AT_ONCE) {
      const some = all.slice(from, from + AT_ONCE);
      const oneByOne = async (error: unknown): Promise<void> => {
        if (!(error instanceof ports.RecordConflict)) throw error;
        for (const [id, each] of some) await add(id, each);
      };
      const written = records.batch(some.map(([id, each]) => stored.write.put(id, each, "absent"))).catch(oneByOne);
      keep(written.catch(failed(some[0]![1].agentId)));
    }
  };
  let gathering: ports.Timer | undefined;
  let timer: ports.Timer | undefined;
  const writeLater = (): void => {
    timer ??= clock.after(QUIET_MS, () => {
      timer = undefined;
      writeAll();
      if (unwritten.size > 0) writeLater();
    });
  };
  const writeAll = (): void => {
    for (const [key, each] of unwritten) {
      if (each.count === 0) unwritten.delete(key);
      else write({ ...each });
      each.count = 0;
    }
  };
  scope.onClose(async () => {
    timer?.cancel();
    writeAll();
    writeGathered();
    await Promise.all(writing);
  });

  return {
    /** Notes an accepted event. An event that its sender repeats has one record. */
    accepted({ agentId, sender, event }: Pick<ReceivedEvent, "agentId" | "sender" | "event">, runId: string): void {
      const now = clock.now();
      const next = {
        agentId,
        status: "accepted",
        sender,
        event,
        runId,
        ...toTexts({ firstAt: now, at: now, count: 1 }),
      } as const;
      const known = gathered.get(runId);
      gathered.set(runId, known ? together(next, known) : next);
      if (gathered.size >= GATHERED_EVENTS) writeGathered();
      else gathering ??= clock.after(GATHER_MS, writeGathered);
    },
    /** Counts an event that was not accepted. The first one is written at once, and the following ones together. */
    turnedAway(away: TurnedAway): void {
      const { agentId, sender, reason, event } = away;
      const key = [agentId, sender ?? "", reason].join(" ");
      const now = clock.now();
      const known = unwritten.get(key);
      if (!known) {
        const first = { away, event, firstAt: now, at: now, count: 1 };
        unwritten.set(key, { ...first, count: 0 });
        writeLater();
        return write(first);
      }
      if (known.count === 0) known.firstAt = now;
      known.count++;
      known.at = now;
      known.event = event;
    },
    /** A page of what arrived at an agent, the newest first. Throws RecordCursorInvalid. */
    async page(agentId: string, { status, limit, after }: ReceivedQuery): Promise<ports.Page<ReceivedEvent>> {
      // A caller finds what it sent to this process.
      writeGathered();
      await Promise.all(writing);
      const where = { agentId, ...(status !== undefined && { status }) };
      return stored.query({ where, order: NEWEST, limit, ...(after !== undefined && { after }) });
    },
    /** Removes what is older than 30 days, and what is beyond the number that is kept for an agent. */
    async sweep(closing: AbortSignal): Promise<void> {
      const oldest = toText(clock.now() - RECEIVED_MS);
      sweeping: for await (const rows of readPages(stored, { order: { by: "at", direction: "ascending" }, limit: PAGE })) {
        for (const { id, value } of rows) {
          closing.throwIfAborted();
          if (value.at >= oldest) break sweeping;
          await stored.remove(id);
        }
      }
      for (const { id: agentId } of await agents.list({ withGit: false })) {
        for (const status of STATUSES) {
          let count = 0;
          const where = { agentId, status };
          for await (const rows of readPages(stored, { where, order: NEWEST, limit: PAGE })) {
            closing.throwIfAborted();
            for (const { id } of rows.slice(Math.max(0, KEPT_RECEIVED[status] - count))) await stored.remove(id);
            count += rows.length;
          }
        }
      }
    },
  };
}

type Counted = Pick<Unwritten, "firstAt" | "at" | "count">;

interface ReceivedQuery {
  readonly status: ReceivedStatus | undefined;
  readonly limit: number;
  readonly after: string | undefined;
}

/** The count of both, with the words of `next`. ISO 8601 texts of one form are ordered as their times. */
function together(next: ReceivedEvent, other: ReceivedEvent): ReceivedEvent {
  return {
    ...next,
    at: next.at > other.at ? next.at : other.at,
    firstAt: next.firstAt < other.firstAt ? next.firstAt : other.firstAt,
    count: next.count + other.count,
  };
}

function toTexts({ firstAt, at, count }: Counted): Pick<ReceivedEvent, "at" | "firstAt" | "count"> {
  return { at: toText(at), firstAt: toText(firstAt), count };
}

function toText(ms: number): string {
  return new Date(ms).toISOString();
}
