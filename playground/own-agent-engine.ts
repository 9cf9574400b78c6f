// A custom agent engine: a clerk that needs no model. It runs the tool that the prompt names. Clients use it like any other agent.
import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { functionTools } from "@portico/adapters/tools/functions";
import { connectAgent } from "@portico/client";
import { type App, createApp, defineAdapter, definePreset, ports } from "@portico/core";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { testing } from "@portico/presets/testing";
import { listen } from "./listen.ts";

export interface ClerkOptions {
  /** The answer to prompts that name no known tool; default: "Tell me to run a tool." */
  readonly greeting?: string;
}

/** Runs agents whose `agent.json` says `"engine": "clerk"`. The prompt `run TOOL {"some":"arguments"}` runs a tool. */
export const clerk = defineAdapter({
  name: "agent-engines/clerk",
  port: ports.agentEngines,
  needs: {},
  open: (_given, { greeting = "Tell me to run a tool." }: ClerkOptions): ports.AgentEngine => ({
    id: "clerk",
    async run({ input, tools }, { step, callTool, say, signal }) {
      signal.throwIfAborted();
      const told = input.flatMap((part) => (part.type === "text" ? part.text : [])).join(" ");
      const [, name, args = "{}"] = /^run (\S+)\s*(\{.*\})?$/s.exec(told.trim()) ?? [];
      const tool = tools.find((each) => each.name === name);
      const call = tool && { callId: "1", toolId: tool.id, name: tool.name, arguments: readJson(args) };
      if (!call) return answer(await step("greet", async () => greeting));

      await say({ type: "tool_call", ...call });
      // The call is a separate step, so a tool that has run is not run again after a crash.
      const result = await step("tool", (stepSignal) => callTool(call, stepSignal));
      await say({ type: "tool_result", callId: call.callId, toolId: call.toolId, result });
      return answer(
        textOf(result),
        [
          { role: "assistant", parts: [{ type: "tool_call", ...call }] },
          { role: "tool", parts: [{ type: "tool_result", callId: call.callId, toolId: call.toolId, name: call.name, result }] },
        ],
        [{ ...call, isError: result.isError }],
      );

      async function answer(
        output: string,
        before: readonly ports.ConversationMessage[] = [],
        toolCalls: readonly ports.TurnToolCall[] = [],
      ): Promise<ports.TurnOutcome> {
        for (const delta of output.match(/\s*\S+\s*/g) ?? []) {
          signal.throwIfAborted();
          await say({ type: "text", delta });
        }
        const words = { role: "assistant" as const, parts: [{ type: "text" as const, text: output }] };
        return { output, messages: [...before, words], toolCalls, end: "completed" };
      }
    },
  }),
});

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textOf({ content }: ports.ToolResult): string {
  return content.map((part) => (part.type === "text" ? part.text : `[${part.mimeType}]`)).join("\n");
}

const tally = functionTools({
  tools: [
    {
      name: "add",
      description: "Adds two numbers.",
      inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
      riskLevel: "low",
      requiresConfirmation: false,
      idempotent: true,
      run: async (args) => `${(args as { a: number }).a + (args as { b: number }).b}`,
    },
  ],
});

/** An agent service in memory. The clerk runs its only agent. */
export const office = definePreset(() => ({
  name: "office",
  extends: testing({ agents: new Map([["office", { name: "Office", engine: "clerk", tools: ["add"] }]]) }),
  adapters: [systemClock(), randomIds(), socketIoRealtime(undefined), clerk({}), tally],
  plugins: [conversationsRuns({})],
}));

export const start = (): Promise<App> => createApp(office());

if (import.meta.main) {
  await using opened = new AsyncDisposableStack();
  const app = opened.use(await start());
  const { url } = opened.use(await listen(app.surface("agent").node, app.surface("agent")));
  const client = opened.use(connectAgent({ baseURL: url, token: "owner-token" }));
  for (const prompt of ["Hello", 'run add {"a":19,"b":23}', 'run add {"a":"x"}']) {
    const { result } = (await client.submit({ agentId: "office", prompt }).ended) as { result?: { output: string } };
    console.log(`clerk: ${result?.output}`);
  }
}
