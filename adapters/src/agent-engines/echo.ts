import { defineAdapter, ports } from "@portico/core";

/** Options of `echoAgentEngine`. */
export interface EchoOptions {
  /** The value of `engine` in `agent.json`. Default: `echo`. */
  readonly id?: string;
}

/**
 * The simplest agent engine: it repeats the user's message, word by word, without a model. For trying an app out, and for tests.
 */
export const echoAgentEngine = defineAdapter({
  name: "agent-engines/echo",
  port: ports.agentEngines,
  needs: {},
  open: (_given, { id = "echo" }: EchoOptions): ports.AgentEngine => ({
    id,
    async run({ input }, { signal, step, say }) {
      const output = await step(
        "answer",
        async () => input.flatMap((part) => (part.type === "text" ? part.text : [])).join("\n"),
        {
          repeatable: true,
        },
      );
      for (const delta of output.match(/^\s*\S+\s*|\S+\s*/g) ?? []) {
        signal.throwIfAborted();
        await say({ type: "text", delta });
      }
      return {
        output,
        messages: [{ role: "assistant", parts: [{ type: "text", text: output }] }],
        toolCalls: [],
        end: "completed",
      };
    },
  }),
});
