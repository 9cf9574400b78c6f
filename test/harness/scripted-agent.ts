import { type Adapter, defineAdapter, ports } from "@portico/core";

/** The actions of an agent for a prompt. */
export type Script = (turn: ports.AgentTurn, context: ports.TurnContext) => Promise<Partial<ports.TurnOutcome> | void>;

/** An agent engine that does what the test sets. Without a script it repeats its prompt. */
export interface ScriptedEngine {
  readonly adapter: Adapter;
  /** The actions for exactly this prompt. */
  on(prompt: string, script: Script): void;
  /** The actions for every other prompt. */
  otherwise(script: Script): void;
  /** The prompts that were played, in order; one that is played twice is there twice. */
  readonly played: readonly string[];
}

export function createScriptedEngine(id = "scripted"): ScriptedEngine {
  const scripts = new Map<string, Script>();
  const played: string[] = [];
  let other: Script = echo;
  const adapter = defineAdapter({
    name: "agent-engines/scripted",
    port: ports.agentEngines,
    needs: {},
    open: (): ports.AgentEngine => ({
      id,
      async run(turn, context) {
        const prompt = promptOf(turn);
        played.push(prompt);
        const said: string[] = [];
        const outcome = await (scripts.get(prompt) ?? other)(turn, {
          ...context,
          say(saying) {
            if (saying.type === "text") said.push(saying.delta);
            return context.say(saying);
          },
        });
        const output = said.join("");
        return {
          output,
          messages: [{ role: "assistant", parts: [{ type: "text", text: output }] }],
          toolCalls: [],
          end: "completed",
          ...outcome,
        };
      },
    }),
  });
  return {
    adapter: adapter(undefined),
    played,
    on: (prompt, script) => void scripts.set(prompt, script),
    otherwise: (script) => void (other = script),
  };
}

export function promptOf({ input }: ports.AgentTurn): string {
  return input.flatMap((part) => (part.type === "text" ? part.text : [])).join("");
}

/** Waits until the turn is stopped. */
export function untilStopped({ signal }: ports.TurnContext): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

const echo: Script = async (turn, { say }) => void (await say({ type: "text", delta: `You said: ${promptOf(turn)}` }));
