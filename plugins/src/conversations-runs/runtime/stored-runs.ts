import { ports, readPages } from "@portico/core";
import { createConsents } from "../approvals/consents.ts";
import { createTurnWaits } from "../approvals/turn-waits.ts";
import { createDeliveries } from "../background/deliveries.ts";
import { openFailedTurns } from "../background/failed-turns.ts";
import { openSaidToTurns } from "../background/said-to-turns.ts";
import { createOpenBackgroundTurns } from "../background/background-records.ts";
import { createConversations, messageStream } from "../conversations/conversations.ts";
import { createMemories } from "../memory/memories.ts";
import { type ClientRequest, clientRequests, isOpenRequest } from "../requests/client-requests.ts";
import { receiptStream } from "../runs/receipts.ts";
import { createRemovedRuns } from "../retention/removed-runs.ts";
import { createRuns, type Run } from "../runs/runs.ts";
import { transcriptStream } from "../turns/turn.ts";

/** The stores of conversations and runs. */
export interface StoredRunsGiven {
  readonly records: ports.Records;
  readonly log: ports.EventLog;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
}

/** One stored item of a user: for export. */
export interface StoredItem {
  readonly kind:
    | "run"
    | "receipt"
    | "conversation"
    | "branches"
    | "message"
    | "submission"
    | "delivery"
    | "waiting-event"
    | "failed-event"
    | "approval"
    | "consent"
    | "memory";
  readonly value: object;
}

/** The removed data of a user, by kind. */
export interface ErasedRuns {
  readonly runs: number;
  readonly conversations: number;
  readonly submissions: number;
  readonly deliveries: number;
  /** Documents that agents remembered of the user. */
  readonly memories: number;
}

/** Access to all that this area keeps of a user, for the operators of an instance. */
export interface StoredRuns {
  /** Turns of a user that wait or execute. Throws RecordsUnavailable. */
  countOpen(userId: string): Promise<number>;
  /** Everything of a user, in pieces. Throws RecordsUnavailable and LogUnavailable. */
  items(userId: string, signal: AbortSignal): AsyncIterable<StoredItem>;
  /**
   * Remove everything of a user, except for turns that wait or execute. A call that was interrupted can be repeated. Throws
   * RecordsUnavailable and LogUnavailable.
   */
  erase(userId: string, signal: AbortSignal): Promise<ErasedRuns>;
}

/** After all ids of runs. */
const END = "s";
const ERASED_AT_ONCE = 200;

/** Works in any process, also beside a running service. */
export function createStoredRuns(given: StoredRunsGiven): StoredRuns {
  const { records, log } = given;
  const runs = createRuns(records);
  const conversations = createConversations(records);
  const waits = createTurnWaits({ records, runs });
  const consents = createConsents(records);
  const memories = createMemories(records);
  const removed = createRemovedRuns({ records, log, runs, conversations, waits });
  const deliveries = createDeliveries(given);
  const requests = records.collection<ClientRequest>(clientRequests);
  const open = createOpenBackgroundTurns(records);
  const failedTurns = openFailedTurns(records);
  const said = openSaidToTurns(records);

  async function* runsOf(userId: string): AsyncGenerator<Run, void> {
    for await (const page of runs.before(END)) yield* page.filter(({ user_id }) => user_id === userId);
  }
  async function* requestsOf(userId: string): AsyncGenerator<ports.Stored<ClientRequest>, void> {
    for await (const page of readPages(requests, {})) yield* page.filter(({ value }) => value.userId === userId);
  }
  async function* deliveriesOf(userId: string, signal: AbortSignal) {
    const agentIds = new Set<string>();
    for await (const run of runsOf(userId)) if (run.background) agentIds.add(run.agent_id);
    for (const agentId of agentIds) {
      for await (const found of deliveries.all(agentId, signal)) {
        if ((await runs.find(found.delivery.runId))?.value.user_id === userId) yield { agentId, ...found };
      }
    }
  }

  return {
    async countOpen(userId) {
      const openRuns = new Set<string>();
      for await (const { value } of requestsOf(userId)) if (isOpenRequest(value)) openRuns.add(value.turnId);
      let count = openRuns.size;
      for await (const _turn of open.ofUser(userId)) count++;
      return count;
    },
    async *items(userId, signal) {
      for await (const run of runsOf(userId)) {
        yield { kind: "run", value: run };
        for await (const entry of log.read(receiptStream(run.run_id), { signal }))
          if (!entry.damaged) yield { kind: "receipt", value: entry.entry };
        for await (const page of waits.ofRun(run.run_id)) for (const value of page) yield { kind: "approval", value };
        const failed = run.status === "failed" ? await failedTurns.get(run.run_id) : undefined;
        if (failed)
          yield { kind: "failed-event", value: { runId: run.run_id, agentId: run.agent_id, input: failed.value.prompt } };
      }
      for await (const page of conversations.oldest({ userId })) {
        for (const { id, value } of page) {
          yield { kind: "conversation", value };
          const branches = await conversations.branches.find(id);
          if (branches) yield { kind: "branches", value: { conversationId: id, ...branches.value } };
          for await (const entry of log.read(messageStream(id), { signal }))
            if (!entry.damaged) yield { kind: "message", value: { conversationId: id, ...entry.entry } };
        }
      }
      for await (const { value } of requestsOf(userId)) yield { kind: "submission", value };
      for await (const { agentId, delivery } of deliveriesOf(userId, signal))
        yield { kind: "delivery", value: { agentId, ...delivery } };
      for await (const page of consents.of(userId)) for (const value of page) yield { kind: "consent", value };
      for await (const page of memories.ofUser(userId)) {
        for (const { agentId, documents } of page)
          for (const document of documents) yield { kind: "memory", value: { agentId, ...document } };
      }
      // Those that execute have a run, but no receipt yet.
      for await (const { runId, agentId, prompt, origin, isAsked } of open.ofUser(userId)) {
        const told = isAsked ? (await said.get(runId))?.value : undefined;
        yield { kind: "waiting-event", value: { runId, agentId, input: prompt, ...origin, ...told } };
      }
    },
    async erase(userId, signal) {
      const erased = { runs: 0, conversations: 0, submissions: 0, deliveries: 0, memories: 0 };
      await removed.finish(signal);
      // Their owner is known by their run: they go first.
      const found = new Map<string, number[]>();
      const eraseFound = async () => {
        for (const [agentId, sequences] of found) await deliveries.erase(agentId, sequences);
        found.clear();
      };
      for await (const { agentId, sequence } of deliveriesOf(userId, signal)) {
        found.set(agentId, [...(found.get(agentId) ?? []), sequence]);
        if (++erased.deliveries % ERASED_AT_ONCE === 0) await eraseFound();
      }
      await eraseFound();
      for await (const run of runsOf(userId)) {
        signal.throwIfAborted();
        if (await removed.remove(run.run_id, () => true)) {
          erased.runs++;
          if (run.conversation_id !== undefined && !run.cleared) erased.conversations++;
        }
      }
      for await (const page of conversations.oldest({ userId })) {
        for (const { id } of page) {
          signal.throwIfAborted();
          const hasNoRun = ({ sessionId }: { readonly sessionId?: string | undefined }) => sessionId === undefined;
          if (await removed.removeConversation(id, hasNoRun)) erased.conversations++;
        }
      }
      for await (const { id, value, version } of requestsOf(userId)) {
        signal.throwIfAborted();
        if (isOpenRequest(value)) continue;
        await log.remove(transcriptStream(value.turnId));
        if (await requests.remove(id, version).catch(orChanged)) erased.submissions++;
      }
      for await (const page of consents.of(userId)) for (const { id } of page) await consents.remove(id);
      erased.memories = await memories.eraseUser(userId);
      return erased;
    },
  };
}

/** The service itself removed or changed it: the next call removes the remaining data. */
function orChanged(error: unknown): boolean {
  if (error instanceof ports.RecordConflict) return false;
  throw error;
}
