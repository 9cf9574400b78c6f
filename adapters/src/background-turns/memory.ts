import { defineAdapter, ports } from "@portico/core";

/** What is done with a turn; `deliver` is what `SendUserMessage` would do. */
export type PlayBackgroundTurn = (
  turn: ports.BackgroundTurn & { readonly runId: string },
  deliver: (message: Pick<ports.Delivery, "delivery" | "text">) => void,
) => void | Promise<void>;

export interface MemoryBackgroundTurnsOptions {
  /** Default: nothing is done. */
  readonly play?: PlayBackgroundTurn;
  /** Tools that turns may be given; default: `SendUserMessage` alone. */
  readonly tools?: readonly ports.ToolDefinition[];
}

const sendUserMessage: ports.ToolDefinition = {
  id: "SendUserMessage",
  name: "SendUserMessage",
  description: "Shows the user a message.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  riskLevel: "low",
  requiresConfirmation: false,
};

/** Background turns that a program plays, without agents and models: for tests. Nothing is durable, and all are played in their order. */
export const memoryBackgroundTurns = defineAdapter({
  name: "background-turns/memory",
  port: ports.backgroundTurns,
  needs: { clock: ports.clock, ids: ports.ids },
  open({ clock, ids }, options: MemoryBackgroundTurnsOptions, scope): ports.BackgroundTurns {
    const { play = () => {}, tools = [sendUserMessage] } = options;
    const delivered = new Map<string, ports.Delivery[]>();
    let last: Promise<void> = Promise.resolve();
    let isClosed = false;
    scope.onClose(() => {
      isClosed = true;
      return last;
    });
    return {
      async tools(signal) {
        signal.throwIfAborted();
        return tools;
      },
      async start(turn) {
        if (isClosed) throw new ports.EngineUnavailable("The background turns are closed");
        const runId = ids.id("run_");
        const deliveries = delivered.get(turn.agentId) ?? [];
        delivered.set(turn.agentId, deliveries);
        const deliver: Parameters<PlayBackgroundTurn>[1] = (message) =>
          void deliveries.push({
            id: ids.id("dlv_"),
            runId,
            deliveredAt: new Date(clock.now()).toISOString(),
            ...turn.origin,
            ...message,
          });
        // A turn that fails is over, as it is with agents.
        last = last.then(() => play({ ...turn, runId }, deliver)).catch(() => {});
        return { runId };
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
