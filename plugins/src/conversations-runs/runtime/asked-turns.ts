import { defineAdapter, definePort, optional, type Port, ports, retryWhileStoreAway } from "@portico/core";
import { defineAskedWork } from "../asked/asked-work.ts";
import { type FollowedEvent, FollowedTurn } from "../asked/followed-turn.ts";
import { createBackgroundRecords } from "../background/background-records.ts";
import { ASKED_TURN, type AskedTurn, turnIds, workIdOf } from "../background/background-turn.ts";
import { openSaidToTurns, type SaidToTurn } from "../background/said-to-turns.ts";
import { agentErrors } from "../errors.ts";
import { ASKED_AT_ONCE } from "../limits.ts";
import { lastReceipt, toldEnd } from "../runs/receipts.ts";
import { newIdSuffix } from "../turns/turn.ts";
import { agentRuntimePort } from "./agent-runtime.ts";

/** What an agent is asked. */
export interface Asking extends SaidToTurn {
  readonly agentId: string;
  /** The owner of the run. */
  readonly userId: string;
  /** The text of `input`, which the run's title and its receipt show. */
  readonly prompt: string;
  /** Which part of the service asks. */
  readonly origin: ports.TurnOrigin;
}

/** How an asked turn ended. */
export interface AskedEnd extends ports.BackgroundTurnEnd {
  /** The part of the input tokens that was read from a cache. */
  readonly cachedInputTokens?: number | undefined;
}

/** What the caller of a turn is told, in order. */
export type AskedEvent =
  /** The turn is durable. The first event. */
  | { readonly type: "accepted"; readonly runId: string }
  | Exclude<FollowedEvent, { type: "ended" }>
  /** The last event. */
  | { readonly type: "ended"; readonly end: AskedEnd };

/** Turns whose caller waits for the answer. */
export interface AskedTurns {
  /**
   * Ask an agent. The turn has a run and a receipt, and no conversation: what was said before comes with it. A caller that leaves before the last
   * event, or whose signal aborts, stops the turn with the reason `caller_left`, except while the turn waits for a person: then it goes on without the
   * caller. Throws `unknown_agent`, `limit_reached`, RecordsUnavailable, EngineUnavailable, TurnFailed if the events are read too slowly, and the
   * signal's reason.
   */
  ask(asking: Asking, signal: AbortSignal): AsyncGenerator<AskedEvent, void>;
}

/** Filled by `askedTurns`. */
export const askedTurnsPort: Port<AskedTurns> = definePort<AskedTurns>("conversations-runs/asked-turns");

/** Asked turns on the runtime of queries. */
export const askedTurns = defineAdapter({
  name: "conversations-runs/asked-turns",
  port: askedTurnsPort,
  needs: {
    runtime: agentRuntimePort,
    turns: ports.backgroundTurns,
    records: ports.records,
    log: ports.log,
    engine: ports.engine,
    agents: ports.agents,
    clock: ports.clock,
    ids: ports.ids,
    telemetry: ports.telemetry,
    usage: optional(ports.usage),
  },
  open(given, _options: void): AskedTurns {
    const { runtime, turns, log, engine, agents, clock, ids, telemetry } = given;
    const { runs, waits, limits, running } = runtime;
    const records = createBackgroundRecords({ ...given, runs, waits });
    const said = openSaidToTurns(given.records);
    const followed = new Map<string, FollowedTurn>();
    const atOnce = new Map<string, number>();
    const count = (agentId: string, change: 1 | -1) => {
      const now = (atOnce.get(agentId) ?? 0) + change;
      if (now === 0) atOnce.delete(agentId);
      else atOnce.set(agentId, now);
    };
    defineAskedWork({ ...given, ...runtime, records, said, followed });
    waits.onWake("asked", async ({ turnId, runId, number: part }) => {
      const { turn } = (await records.openTurn(runId)) ?? {};
      if (turn) await engine.start(ASKED_TURN, workIdOf(turnId, { part }), { ...turn, part }, { key: turnId });
    });

    const stop = async ({ turnId, runId }: AskedTurn): Promise<void> => {
      try {
        if (!running.stop({ turnId }, "caller_left")) await turns.stop(runId, "caller_left");
      } catch (error) {
        telemetry.log.warn("A turn whose caller left could not be stopped", { turn: turnId }, error);
      }
    };
    const endOf = async (runId: string): Promise<AskedEnd> => {
      const [run, receipt] = await Promise.all([runs.find(runId), lastReceipt(log, runId)]);
      const { cachedInputTokens }: Partial<ports.TurnUsage> = receipt?.usage ?? {};
      return { ...toldEnd(runId, run?.value, receipt), cachedInputTokens };
    };
    const accept = async (turn: AskedTurn, { history, input }: SaidToTurn): Promise<void> => {
      await limits.admit(turn);
      try {
        const written = [...records.accept(turn), said.write.put(turn.runId, { history, input })];
        await engine.start(ASKED_TURN, turn.turnId, turn, { key: turn.turnId, records: written });
      } catch (error) {
        limits.withdraw(turn.turnId);
        throw error;
      }
    };

    return {
      async *ask({ agentId, userId, prompt, origin, ...words }, signal) {
        signal.throwIfAborted();
        if (!(await agents.find(agentId))) throw agentErrors.unknown_agent();
        if ((atOnce.get(agentId) ?? 0) >= ASKED_AT_ONCE)
          throw agentErrors.limit_reached("The agent answers too many callers at once");
        const now = clock.now();
        const turn: AskedTurn = {
          ...turnIds(newIdSuffix(ids, now)),
          ...{ agentId, userId, prompt, origin },
          isAsked: true,
          askedIn: runtime.serverInstanceId,
          traceparent: telemetry.traceparent(),
          acceptedAt: now,
        };
        const { turnId, runId } = turn;
        const follower = new FollowedTurn(turn, { log, clock, records });
        let state: "open" | "waits" | "over" = "over";
        followed.set(turnId, follower);
        count(agentId, 1);
        try {
          await accept(turn, words);
          state = "open";
          yield { type: "accepted", runId };
          for await (const event of follower.events(signal)) {
            state = event.type === "waiting" ? "waits" : event.type === "ended" ? "over" : "open";
            yield event.type === "ended"
              ? { type: "ended", end: await retryWhileStoreAway({ clock, signal }, () => endOf(runId)) }
              : event;
          }
        } finally {
          followed.delete(turnId);
          count(agentId, -1);
          // The caller does not wait for it.
          if (state === "open") void stop(turn);
        }
      },
    };
  },
});
