import { describe, expect, it } from "vitest";
import { clerk } from "../../../playground/own-agent-engine.ts";
import { agentEngineConformance, rememberedContext } from "../../conformance/agent-engines.ts";
import { openAdapter } from "../../conformance/open-adapter.ts";

agentEngineConformance("playground/own-agent-engine.ts", () => ({ adapter: clerk({}), others: [] }));

describe("an agent engine of one's own", () => {
  it("runs a tool once, however often its turn is played", async () => {
    const { port, close } = await openAdapter(clerk({}));
    const memory = new Map<string, string>();
    const result = { content: [{ type: "text" as const, text: "two words" }], isError: false };
    let calls = 0;
    const tool = {
      id: "desk/ask",
      name: "ask",
      description: "",
      inputSchema: {},
      riskLevel: "low" as const,
      requiresConfirmation: false,
      idempotent: true,
    };
    const turn = {
      agentId: "a",
      agent: { name: "A", engine: "clerk", tools: ["desk/ask"], skills: [], core: false },
      provider: "none",
      model: "none",
      history: [],
      input: [{ type: "text" as const, text: 'run ask {"x":1}' }],
      tools: [tool],
      maxTurns: 1,
      caller: {},
    };
    for (let time = 0; time < 2; time++) {
      const { context, said } = rememberedContext(memory, { callTool: async () => (calls++, result) });
      const outcome = await port.run(turn, context);
      expect(outcome).toMatchObject({
        output: "two words",
        toolCalls: [{ toolId: "desk/ask", arguments: { x: 1 }, isError: false }],
      });
      expect(said.map(({ type }) => type)).toEqual(["tool_call", "tool_result", "text", "text"]);
    }
    expect(calls).toBe(1);
    await close();
  });
});
