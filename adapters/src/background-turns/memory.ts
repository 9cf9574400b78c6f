import { defineAdapter, ports } from "@portico/core";

/** Executes a turn. `deliver` does what `SendUserMessage` would do. A returned text is the turn's output. */
export type PlayBackgroundTurn = (
  turn: ports.BackgroundTurn & { readonly runId: string },
  deliver: (message: Pick<ports.Delivery, "delivery" | "text">) => void,
  /** Aborts when the turn is stopped. The stop does not wait for a function that ignores the signal. */
  signal: AbortSignal,
) => string | void | Promise<string | void>;

/** Options of `memoryBackgroundTurns`. */
export interface MemoryBackgroundTurnsOptions {
  /** Default: a function without effect. */
  readonly play?: PlayBackgroundTurn;
  /** Tools that turns may be given. Default: only `SendUserMessage`. */
  readonly tools?: readonly ports.ToolDefinition[];
}

const sendUserMessage: ports.ToolDefinition = {
  id: "SendUserMessage",
  name: "SendUserMessage",
  description: "Shows the user a message.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  riskLevel: "low",
  requiresConfirmation: false,
  idempotent: false,
};

/**
 * Background turns that a program executes, without agents and models: for tests. Not durable. All turns run one after another.
 */
export const memoryBackgroundTurns = defineAdapter({
  name: "background-turns/memory",
  port: ports.backgroundTurns,
  needs: { clock: ports.clock, ids: ports.ids, engine: ports.engine },
  open({ clock, ids, engine }, options: MemoryBackgroundTurnsOptions, scope): ports.BackgroundTurns {
    const { play = () => {}, tools = [sendUserMessage] } = options;
    const delivered = new Map<string, ports.Delivery[]>();
    const runOfKey = new Map<string, string>();
    /** Stops each open turn, by its run. */
    const open = new Map<string, (reason: string) => void>();
    /** How each turn ended, by its run. */
    const ends = new Map<string, NonNullable<ports.FoundTurn["end"]>>();
    let last: Promise<unknown> = Promise.resolve();
    let isClosed = false;
    scope.onClose(() => {
      isClosed = true;
      return last;
    });

    const deliverer = ({ agentId, origin }: ports.BackgroundTurn, runId: string): Parameters<PlayBackgroundTurn>[1] => {
      const deliveries = delivered.get(agentId) ?? [];
      delivered.set(agentId, deliveries);
      return (message) =>
        void deliveries.push({
          id: ids.id("dlv_"),
          runId,
          deliveredAt: new Date(clock.now()).toISOString(),
          ...origin,
          ...message,
        });
    };

    /** Resolves when the turn has ended. A stopped turn ends at once, also if it is still queued or ignores its signal. */
    const playInLine = (turn: ports.BackgroundTurn, runId: string): Promise<ports.BackgroundTurnEnd> => {
      const stopping = new AbortController();
      const { promise: stopped, resolve } = Promise.withResolvers<ports.BackgroundTurnEnd>();
      open.set(runId, (reason) => {
        stopping.abort(new DOMException("The turn was stopped", "AbortError"));
        resolve({ runId, status: "interrupted", output: "", reason });
      });
      const played = last.then(async (): Promise<ports.BackgroundTurnEnd> => {
        if (stopping.signal.aborted) return stopped;
        try {
          const output = (await play({ ...turn, runId }, deliverer(turn, runId), stopping.signal)) ?? "";
          return { runId, status: "completed", output };
        } catch {
          return { runId, status: "failed", output: "", reason: "error", failure };
        }
      });
      return Promise.race([played, stopped]);
    };

    return {
      async tools(signal) {
        signal.throwIfAborted();
        return tools;
      },
      async start(turn) {
        if (isClosed) throw new ports.EngineUnavailable("The background turns are closed");
        const known = turn.key === undefined ? undefined : runOfKey.get(turn.key);
        if (known !== undefined) return { runId: known };
        const runId = ids.id("run_");
        if (turn.key !== undefined) runOfKey.set(turn.key, runId);
        const over = playInLine(turn, runId).then(async (end) => {
          open.delete(runId);
          const { status, reason } = end;
          ends.set(runId, { status, at: clock.now(), ...(status === "interrupted" && { reason }) });
          // An engine that was never ready has no waiting work.
          if (turn.tell) await engine.signal(turn.tell.workId, turn.tell.signal, end).catch(() => {});
        });
        last = last.then(() => over);
        return { runId };
      },
      async find(key) {
        const runId = runOfKey.get(key);
        if (runId === undefined) return undefined;
        const end = ends.get(runId);
        return { runId, isOpen: open.has(runId), ...(end && { end }) };
      },
      async stop(runId, reason) {
        const stop = open.get(runId);
        stop?.(reason);
        return stop !== undefined;
      },
      async deliveries(agentId, { offset, limit, signal }) {
        signal.throwIfAborted();
        const all = (delivered.get(agentId) ?? []).toReversed();
        const items = async function* () {
          yield* all.slice(offset, offset + limit);
        };
        return { items: items(), total: all.length };
      },
    };
  },
});

const failure = { code: "internal_error", message: "The turn failed" };
