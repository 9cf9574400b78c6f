import { loopAgentEngine, type LoopOptions } from "@portico/adapters/agent-engines/loop";
import { systemClock } from "@portico/adapters/clock/system";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import type { ports } from "@portico/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answerEvents } from "../harness/answer-events.ts";
import { type FakeUpstream, startFakeUpstream } from "../harness/fake-upstream.ts";
import { events } from "../harness/upstream-answers.ts";
import { rememberedContext } from "./agent-engines.ts";
import { openAdapter } from "./open-adapter.ts";

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
afterAll(() => upstream.close());
beforeEach(() => upstream.reset());

const schema = {
  type: "object",
  properties: { city: { type: "string" }, degrees: { type: "number" } },
  required: ["city", "degrees"],
  additionalProperties: false,
};

describe.each<ports.ModelProtocol>(["messages", "chat-completions"])(
  "the settings of an agent, with a provider of %s",
  (protocol) => {
    async function play(
      agent: Partial<ports.AgentDefinition>,
      {
        maxTurns = 5,
        dialect = {},
        options = {},
      }: { maxTurns?: number; dialect?: Partial<ports.ChatDialect>; options?: LoopOptions } = {},
    ): Promise<ports.TurnOutcome> {
      const at = { id: "main", type: "test", baseUrl: upstream.baseUrl, models: ["echo-large"] };
      const provider = protocol === "messages" ? messagesHttp(at) : chatHttp({ ...at, dialect });
      const { port, close } = await openAdapter(loopAgentEngine(options), [provider, systemClock(), memoryTelemetry({})]);
      try {
        return await port.run(
          {
            agentId: "agent",
            agent: { name: "Agent", engine: "loop", tools: [], skills: [], core: false, ...agent },
            provider: "main",
            model: "echo-large",
            history: [],
            input: [{ type: "text", text: "How warm is it?" }],
            tools: [],
            maxTurns,
            caller: {},
          },
          rememberedContext(new Map()).context,
        );
      } finally {
        await close();
      }
    }
    const body = async (number: number) => JSON.parse((await (await upstream.request(number)).bytes()).toString());
    const says = (...texts: string[]) => upstream.answerNext(...texts.map((text) => events(answerEvents(protocol, { text }))));
    const refusal = (agent: Partial<ports.AgentDefinition>, more = {}) =>
      play(agent, more).catch((error: unknown) => error as Error);

    it("are sent with each call: temperature, most tokens of an answer, and stop texts", async () => {
      await play({ temperature: 0.3, maxOutputTokens: 77, stop: ["END", "HALT"] });
      const sent = await body(1);
      expect(sent.temperature).toBe(0.3);
      expect(sent.max_tokens ?? sent.max_completion_tokens).toBe(77);
      expect(sent.stop_sequences ?? sent.stop).toEqual(["END", "HALT"]);
    });

    it("are not sent where the agent says nothing", async () => {
      await play({});
      const names = ["temperature", "stop", "stop_sequences", "reasoning_effort", "thinking", "output_config", "response_format"];
      expect(Object.keys(await body(1)).filter((name) => names.includes(name))).toEqual([]);
    });

    it("win over the engine's own: the agent's maxOutputTokens", async () => {
      await play({ maxOutputTokens: 50 }, { options: { maxOutputTokens: 900 } });
      await play({}, { options: { maxOutputTokens: 900 } });
      const sent = [await body(1), await body(2)];
      expect(sent.map((each) => each.max_tokens ?? each.max_completion_tokens)).toEqual([50, 900]);
    });

    it("say how much the model thinks", async () => {
      await play({ effort: "low" });
      await play({ effort: "none" });
      const [low, none] = [await body(1), await body(2)];
      if (protocol === "messages") {
        expect([low.thinking, low.output_config?.effort]).toEqual([{ type: "adaptive" }, "low"]);
        expect(none.thinking).toEqual({ type: "disabled" });
      } else expect([low.reasoning_effort, none.reasoning_effort]).toEqual(["low", "none"]);
    });

    it.runIf(protocol === "chat-completions")("leave out the effort where the provider's dialect has none", async () => {
      await play({ effort: "low" }, { dialect: { reasoning: "none" } });
      expect(await body(1)).not.toHaveProperty("reasoning_effort");
    });

    it("ask for an answer by outputSchema, each protocol in its own way, and the answer is JSON that fits", async () => {
      const answer = JSON.stringify({ city: "Oslo", degrees: 4 });
      says(answer);
      const outcome = await play({ outputSchema: schema });
      expect([outcome.output, outcome.end, outcome.usage?.modelCalls]).toEqual([answer, "completed", 1]);
      const sent = await body(1);
      if (protocol === "messages") expect(sent.output_config.format).toEqual({ type: "json_schema", schema });
      else expect(sent.response_format).toMatchObject({ type: "json_schema", json_schema: { schema } });
    });

    it.runIf(protocol === "chat-completions")(
      "ask for strict output where the schema keeps the rules of strict output",
      async () => {
        const loose = { ...schema, required: ["city"] };
        const nested = { ...schema, properties: { city: { type: "object", properties: { name: {} } }, degrees: {} } };
        for (const outputSchema of [schema, loose, nested]) {
          says('{"city":{},"degrees":1}', '{"city":"Oslo","degrees":1}');
          await refusal({ outputSchema });
        }
        const bodies = await Promise.all(
          upstream.requests.map(async (request) => JSON.parse((await request.bytes()).toString())),
        );
        const strict = new Map(
          bodies.map(({ response_format: { json_schema: asked } }) => [JSON.stringify(asked.schema), asked.strict]),
        );
        expect([schema, loose, nested].map((each) => strict.get(JSON.stringify(each)))).toEqual([true, false, false]);
      },
    );

    it("let a model whose answer does not fit correct it once: the conversation keeps the corrected answer alone", async () => {
      const answer = JSON.stringify({ city: "Oslo", degrees: 4 });
      says('{"city":"Oslo","degrees":"warm"}', answer);
      const outcome = await play({ outputSchema: schema });
      expect([outcome.output, outcome.usage?.modelCalls]).toEqual([answer, 2]);
      expect(outcome.messages).toEqual([{ role: "assistant", parts: [{ type: "text", text: answer }] }]);
      const sent = JSON.stringify((await body(2)).messages);
      expect(sent).toMatch(/warm.*does not fit the required JSON Schema: \/degrees: must be number/);
    });

    it("fail a turn whose answer does not fit after its correction, and say where, but not what", async () => {
      says("It is warm", '{"city":"Secret"}');
      const failed = await refusal({ outputSchema: schema });
      expect(failed).toMatchObject({ name: "OutputInvalid" });
      expect((failed as Error).message).toContain("required property 'degrees'");
      expect((failed as Error).message).not.toContain("Secret");
      expect(upstream.requests.length).toBe(2);
    });

    it("ask for no correction after the last model call of the turn", async () => {
      says("It is warm");
      expect(await refusal({ outputSchema: schema }, { maxTurns: 1 })).toMatchObject({ name: "OutputInvalid" });
      expect(upstream.requests.length).toBe(1);
    });

    it("fail a turn without a call where outputSchema is not a JSON Schema", async () => {
      expect(await refusal({ outputSchema: { type: "nothing" } })).toMatchObject({ name: "OutputSchemaInvalid" });
      expect(upstream.requests.length).toBe(0);
    });
  },
);
