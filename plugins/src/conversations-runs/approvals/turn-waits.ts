import { type ports, readPages, writeAgain } from "@portico/core";
import { APPROVAL_DESCRIPTION_CHARACTERS, EVENT_CHARACTERS } from "../limits.ts";
import type { ListChanges } from "@portico/core/kit";
import type { Run, Runs } from "../runs/runs.ts";
import { boundedText, boundedValue } from "../turns/bounds.ts";
import type { Decision } from "../turns/recorded-call.ts";
import type { PlayedTurn } from "../turns/turn.ts";
import { type Approval, approvalId, approvalsSpec, type AskedTool, decided, shownInRun } from "./approval.ts";
import { digestOf } from "./digest.ts";

/** A call that is put before a person. */
export interface AskedCall extends ports.PausedCall {
  readonly tool: AskedTool;
}

/** What a turn waits for. */
export interface Asked {
  readonly of: TurnWait["of"];
  readonly number: number;
  readonly calls: readonly AskedCall[];
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly timeoutMs: number;
}

/** A decision that takes effect, before its writes are made. */
export interface Deciding {
  readonly approval: Approval;
  readonly wait: TurnWait;
  readonly writes: readonly ports.Write[];
}

/** Who decides an approval, and how the decision is written. */
export interface HowToDecide {
  /** Default: always. */
  isVisible?(approval: Approval): boolean;
  check?(approval: Approval): void | Promise<void>;
  commit(deciding: Deciding): Promise<void>;
}

/** IDs that need no encoding as a segment of a path. Those of models may be any text. */
const IN_PATHS = /^[\w-][\w.~-]{0,127}$/;

export type TurnWaits = ReturnType<typeof createTurnWaits>;

/** Waiting turns, and the approvals that they wait for. `changes`: told when open approvals change, where callers follow them. */
export function createTurnWaits({
  records,
  runs,
  changes,
}: {
  readonly records: ports.Records;
  readonly runs: Runs;
  readonly changes?: ListChanges | undefined;
}) {
  const approvals = records.collection<Approval>(approvalsSpec);
  const waits = records.collection<TurnWait>(turnWaitsSpec);
  const wakers = new Map<TurnWait["of"], (wait: TurnWait) => Promise<void>>();

  /** An ID that no earlier approval of the run has. */
  const newCallId = async (runId: string, toolCallId: string, taken: ReadonlySet<string>): Promise<string> => {
    const name = IN_PATHS.test(toolCallId) ? toolCallId : `call_${digestOf(toolCallId)}`;
    for (let number = 1; ; number++) {
      const callId = number === 1 ? name : `${name}~${number}`;
      if (!taken.has(callId) && !(await approvals.get(approvalId(runId, callId)))) return callId;
    }
  };

  return {
    write: (writes: readonly ports.Write[]): Promise<void> => records.batch(writes),

    find: async (turnId: string): Promise<TurnWait | undefined> => (await waits.get(turnId))?.value,

    /** The approvals of a new wait of a turn. */
    async ask(turn: PlayedTurn, { of, number, calls, at, timeoutMs }: Asked): Promise<readonly Approval[]> {
      const { turnId, runId, sessionId, userId, agentId, conversationId, clientRequestId } = turn;
      const taken = new Set<string>();
      const asked: Approval[] = [];
      for (const { callId: toolCallId, tool, arguments: args } of calls) {
        const callId = await newCallId(runId, toolCallId, taken);
        taken.add(callId);
        asked.push({
          ...{ runId, callId, turnId, userId, agentId, sessionId, toolCallId },
          ...(conversationId !== undefined && { conversationId }),
          ...(clientRequestId !== undefined && { clientRequestId }),
          ...(of === "background" && { background: true as const }),
          wait: number,
          tool: { ...tool, description: boundedText(tool.description, APPROVAL_DESCRIPTION_CHARACTERS) },
          arguments: boundedValue(args, EVENT_CHARACTERS / 2),
          argumentsDigest: digestOf(args),
          askedAt: at,
          expiresAt: at + timeoutMs,
          isOpen: true,
        });
      }
      return asked;
    },

    /** The writes with which a turn begins to wait, without those of its run. */
    begin(turn: PlayedTurn, { of, number }: Asked, asked: readonly Approval[]): readonly ports.Write[] {
      const { turnId, runId, sessionId, clientRequestId } = turn;
      const ids = asked.map(({ callId }) => approvalId(runId, callId));
      const wait: TurnWait = { turnId, runId, sessionId, clientRequestId, of, number, approvals: ids, open: ids };
      return [waits.write.put(turnId, wait, "absent"), ...asked.map((each, at) => approvals.write.put(ids[at]!, each, "absent"))];
    },

    /**
     * The approvals of a wait that was read, with the writes that end it at this time: none if it has ended. Approvals that are still open are
     * withdrawn.
     */
    async end(
      wait: TurnWait,
      at: number,
    ): Promise<{ readonly approvals: readonly Approval[]; readonly writes: readonly ports.Write[] }> {
      const [stored, ...found] = await Promise.all([waits.get(wait.turnId), ...wait.approvals.map((id) => approvals.get(id))]);
      const all = found.filter((each) => each !== undefined);
      const after = all.map(({ value }) => (value.isOpen ? decided(value, { decision: "withdrawn", at }) : value));
      if (stored?.value.number !== wait.number) return { approvals: after, writes: [] };
      if (all.some(({ value }) => value.isOpen)) changes?.notify();
      const withdrawn = all.flatMap(({ id, value, version }, index) =>
        value.isOpen ? [approvals.write.put(id, after[index]!, version)] : [],
      );
      return { approvals: after, writes: [waits.write.remove(stored.id, stored.version), ...withdrawn] };
    },

    /**
     * Decides an approval: `commit` makes the writes, and is called again after a conflict. Undefined if there is no such approval, or it is not
     * visible; `false` if it is decided, its time has ended, or its turn was stopped. `check` may throw.
     */
    async decide(
      runId: string,
      callId: string,
      decision: Decision,
      { isVisible = () => true, check, commit }: HowToDecide,
    ): Promise<TurnWait | false | undefined> {
      const id = approvalId(runId, callId);
      const done = await writeAgain(async (): Promise<TurnWait | false | undefined> => {
        const found = await approvals.get(id);
        if (!found || !isVisible(found.value)) return undefined;
        const wait = await waits.get(found.value.turnId);
        if (!found.value.isOpen || !wait?.value.open.includes(id)) return false;
        // It was stopped, and nothing that it asked runs any more.
        if (wait.value.isDue) return false;
        if (decision.decision !== "expired" && decision.at >= found.value.expiresAt) return false;
        await check?.(found.value);
        const open = wait.value.open.filter((each) => each !== id);
        const after: TurnWait = {
          ...wait.value,
          open,
          ...(open.length === 0 && { isDue: true, dueAt: decision.at }),
        };
        const run = await runs.find(runId);
        await commit({
          approval: found.value,
          wait: after,
          writes: [
            approvals.write.put(id, decided(found.value, decision), found.version),
            waits.write.put(wait.id, after, wait.version),
            ...(run ? runs.replace(run, withoutCall(run.value, callId)) : []),
          ],
        });
        return after;
      });
      if (done) changes?.notify();
      return done;
    },

    /** A turn has begun to wait. */
    asked: (): void => changes?.notify(),

    /** The writes that let a turn go on although calls wait, because it is stopped. Empty if it does not wait. */
    async stop(turnId: string, at: number): Promise<readonly ports.Write[]> {
      const wait = await waits.get(turnId);
      if (!wait || wait.value.isDue) return [];
      return [waits.write.put(turnId, { ...wait.value, isDue: true, dueAt: at }, wait.version)];
    },

    /** How a turn of this kind is told that it goes on. */
    onWake(of: TurnWait["of"], waker: (wait: TurnWait) => Promise<void>): void {
      wakers.set(of, waker);
    },

    /** Lets a turn go on that is due. May be repeated. */
    async wake(wait: TurnWait): Promise<void> {
      await wakers.get(wait.of)?.(wait);
    },

    /** Turns that are due since this time, in pages. The process that decided them died before it told them. */
    async *due(until: number): AsyncGenerator<readonly TurnWait[]> {
      const order = { by: "dueAt", direction: "ascending" } as const;
      for await (const page of readPages(waits, { where: { isDue: true }, order })) {
        const found = page.map(({ value }) => value).filter(({ dueAt = 0 }) => dueAt <= until);
        yield found;
        if (found.length < page.length) return;
      }
    },

    /** Open approvals whose time has ended, the first first, in pages. */
    async *expired(now: number): AsyncGenerator<readonly Approval[]> {
      const order = { by: "expiresAt", direction: "ascending" } as const;
      for await (const page of readPages(approvals, { where: { isOpen: true }, order })) {
        const found = page.map(({ value }) => value).filter(({ expiresAt }) => expiresAt <= now);
        yield found;
        if (found.length < page.length) return;
      }
    },

    ofSession: async (sessionId: string): Promise<readonly TurnWait[]> =>
      (await waits.query({ where: { sessionId } })).items.map(({ value }) => value),

    /** A page of open approvals, the oldest first: of a user, or of all users. Throws RecordCursorInvalid. */
    async open(userId: string | undefined, limit: number, after: string | undefined) {
      const { items, next } = await approvals.query({
        where: { isOpen: true, ...(userId !== undefined && { userId }) },
        order: { by: "askedAt", direction: "ascending" },
        limit,
        ...(after !== undefined && { after }),
      });
      return { items: items.map(({ value }) => value), next };
    },

    /** All approvals of a run, in pages. */
    async *ofRun(runId: string): AsyncGenerator<readonly Approval[]> {
      for await (const page of readPages(approvals, { where: { runId } })) yield page.map(({ value }) => value);
    },

    async removeOfRun(runId: string): Promise<void> {
      for await (const page of readPages(approvals, { where: { runId } })) for (const { id } of page) await approvals.remove(id);
    },
  };
}

/** A run whose turn waits for these. */
export function withApprovals(run: Run, asked: readonly Approval[], at: string): Run {
  return { ...run, approvals: asked.map(shownInRun), updatedAt: at };
}

/** A run whose turn does not wait any more. */
export function withoutApprovals({ approvals: _approvals, ...run }: Run): Run {
  return run;
}

function withoutCall(run: Run, callId: string): Run {
  const left = run.approvals?.filter(({ call_id }) => call_id !== callId) ?? [];
  return left.length > 0 ? { ...run, approvals: left } : withoutApprovals(run);
}

/** A turn that waits for decisions, from the commit in which it began to wait until the one in which it goes on or ends. By `turnId`. */
export interface TurnWait {
  readonly turnId: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly clientRequestId?: string | undefined;
  /** Which work the turn is. */
  readonly of: "query" | "background" | "asked";
  /** Counts the waits of the turn, from 1. */
  readonly number: number;
  /** The records of all its approvals, and of those that are not decided. */
  readonly approvals: readonly string[];
  readonly open: readonly string[];
  /** The turn is to go on: everything is decided, or it was stopped. */
  readonly isDue?: true | undefined;
  /** Milliseconds since 1970. */
  readonly dueAt?: number | undefined;
}

/** The collection of waiting turns. */
export const turnWaitsSpec: ports.CollectionSpec = {
  name: "turn-waits",
  indexes: { bySession: ["sessionId"], byDue: ["isDue", "dueAt"] },
};

/** The signal that the work of a waiting turn gets. */
export const wakeSignal = (number: number): string => `go-on-${number}`;
