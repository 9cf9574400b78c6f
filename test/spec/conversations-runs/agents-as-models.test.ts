import { functionTools } from "@portico/adapters/tools/functions";
import { recordUsage } from "@portico/adapters/usage/records";
import { ports } from "@portico/core";
import type Anthropic from "@anthropic-ai/sdk";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ASKED_AT_ONCE } from "../../../plugins/src/conversations-runs/limits.ts";
import { askedTurnsPort } from "../../../plugins/src/conversations-runs/runtime/asked-turns.ts";
import { type AskedAgents, type AskedAgentsOptions, startAskedAgents } from "../../harness/asked-agents.ts";
import { CALLERS, expectError, PROTOCOLS, type Protocol } from "../../harness/callers.ts";
import { toolOf } from "../../harness/looped-agents.ts";
import { png } from "../../harness/media-samples.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { promptOf, untilStopped } from "../../harness/scripted-agent.ts";

let agents: AskedAgents;
afterEach(() => agents.close());
const start = async (options?: AskedAgentsOptions) => void (agents = await startAskedAgents(options));

const ask = (protocol: Protocol, text: string, more: object = {}) =>
  agents.post(CALLERS[protocol].path, CALLERS[protocol].request(text, { model: "helper", ...more }));
const runs = async () => (await agents.service.call("owner", "GET", "/api/runs")).body.runs as any[];
const receiptOf = async (runId: string) =>
  (await agents.service.call("member", "GET", `/api/runs/${runId}/receipt`)).body.receipts.at(-1);
const onlyRun = async () => {
  const all = await runs();
  expect(all).toHaveLength(1);
  return all[0];
};

/** The whole answer to a text, through the vendor's own client library. */
const LIBRARIES = {
  messages: {
    async whole(text: string) {
      const { content, usage, stop_reason: end } = await agents.messages.messages.create(messagesOf(text));
      const said = content.map((block) => (block.type === "text" ? block.text : "")).join("");
      return { said, usage: [usage.input_tokens, usage.output_tokens], end };
    },
    async streamed(text: string) {
      const pieces: string[] = [];
      const stream = agents.messages.messages.stream(messagesOf(text)).on("text", (piece) => void pieces.push(piece));
      const { usage } = await stream.finalMessage();
      return { pieces, usage: [usage.input_tokens, usage.output_tokens] };
    },
  },
  "chat-completions": {
    async whole(text: string) {
      const { choices, usage } = await agents.chat.chat.completions.create(chatOf(text));
      const [choice] = choices;
      return {
        said: choice!.message.content,
        usage: [usage!.prompt_tokens, usage!.completion_tokens],
        end: choice!.finish_reason,
      };
    },
    async streamed(text: string) {
      const pieces: string[] = [];
      const stream = agents.chat.chat.completions.stream({ ...chatOf(text), stream_options: { include_usage: true } });
      stream.on("content", (piece) => void pieces.push(piece));
      const { usage } = await stream.finalChatCompletion();
      return { pieces, usage: [usage!.prompt_tokens, usage!.completion_tokens] };
    },
  },
};
const messagesOf = (content: string): Anthropic.MessageCreateParamsNonStreaming => ({
  ...{ model: "helper", max_tokens: 100 },
  messages: [{ role: "user", content }],
});
const chatOf = (content: string) => ({ model: "helper", messages: [{ role: "user" as const, content }] });

describe.each(PROTOCOLS)("an agent is a model for a client of %s", (protocol) => {
  const library = LIBRARIES[protocol];

  it("its answer has the text of the turn, and the sum of its model calls", async () => {
    await start();
    agents.service.engine.otherwise(async (_turn, { say }) => {
      await say({ type: "text", delta: "Looking. " });
      await say({ type: "tool_call", callId: "c1", toolId: "look", name: "look", arguments: {} });
      await say({ type: "tool_result", callId: "c1", toolId: "look", result: { content: [], isError: false } });
      await say({ type: "text", delta: "Found." });
      return { usage: { inputTokens: 30, outputTokens: 12, modelCalls: 2 } };
    });
    const { said, usage, end } = await library.whole("look");
    expect(said).toBe("Looking. \n\nFound.");
    expect(usage).toEqual([30, 12]);
    expect(end).toBe(protocol === "messages" ? "end_turn" : "stop");
  });

  it("its stream has the text piece by piece, reasoning, and the usage", async () => {
    await start();
    const told = Promise.withResolvers<void>();
    agents.service.engine.otherwise(async (_turn, { say }) => {
      await say({ type: "thinking", delta: "Hm" });
      await say({ type: "text", delta: "one " });
      // The rest waits until the client has the first piece.
      await told.promise;
      await say({ type: "text", delta: "two" });
      return { usage: { inputTokens: 3, outputTokens: 4, modelCalls: 1 } };
    });
    const reply = await ask(protocol, "x", {
      stream: true,
      ...(protocol === "chat-completions" && { stream_options: { include_usage: true } }),
    });
    let text = "";
    for (let chunk = await reply.read(); chunk; chunk = await reply.read()) {
      text += chunk.toString();
      if (text.includes("one ")) told.resolve();
    }
    CALLERS[protocol].assertStream(text);
    expect(text).toContain("Hm");
    const { pieces, usage } = await library.streamed("x");
    expect(pieces.join("")).toBe("one two");
    expect(usage).toEqual([3, 4]);
  });

  it("the last message is the input, and the messages before it are the history", async () => {
    await start();
    const seen: ports.AgentTurn[] = [];
    agents.service.engine.otherwise(async (turn, { say }) => void (seen.push(turn), await say({ type: "text", delta: "ok" })));
    const messages = [
      { role: "user", content: "My name is Ada" },
      { role: "assistant", content: "Hello Ada" },
      { role: "user", content: "Who am I?" },
    ];
    expect((await ask(protocol, "", { messages })).status).toBe(200);
    expect(seen[0]?.history).toEqual([
      { role: "user", parts: [{ type: "text", text: "My name is Ada" }] },
      { role: "assistant", parts: [{ type: "text", text: "Hello Ada" }] },
    ]);
    expect(promptOf(seen[0]!)).toBe("Who am I?");
    const run = await onlyRun();
    expect(run).toMatchObject({ user_id: "member", agent_id: "helper", status: "completed", title: "Who am I?" });
    expect(run).toMatchObject({ background: true, inbound: { origin: "model", displayName: "helper" } });
    expect(await receiptOf(run.run_id)).toMatchObject({ input: "Who am I?", output: "ok", outcome: { status: "success" } });
    expect((await agents.service.call("member", "GET", "/api/conversations")).body.conversations).toEqual([]);
  });

  it("tools of the request are refused by name, and no turn begins", async () => {
    await start();
    const schema = { type: "object", properties: {} };
    const tools =
      protocol === "messages"
        ? [{ name: "look", input_schema: schema }]
        : [{ type: "function", function: { name: "look", parameters: schema } }];
    const { message, type } = await expectError(await ask(protocol, "x", { tools }), 400, protocol);
    expect(type).toBe("invalid_request_error");
    expect(message).toMatch(/^tools: /);
    expect(await runs()).toEqual([]);
  });

  it("a caller that leaves stops the turn", async () => {
    await start();
    agents.service.engine.otherwise(async (_turn, context) => {
      await context.say({ type: "text", delta: "so far" });
      return untilStopped(context);
    });
    const reply = await ask(protocol, "x", { stream: true });
    for (let text = ""; !text.includes("so far");) text += String(await reply.read());
    reply.leave();
    await expect.poll(async () => (await runs())[0]?.status).toBe("idle");
    const run = await onlyRun();
    expect(run.interruption_reason).toBe("caller_left");
    expect(await receiptOf(run.run_id)).toMatchObject({ output: "so far", outcome: { status: "partial" } });
  });

  it("a turn that fails is an error of the protocol, and is not sent again if a tool ran", async () => {
    await start();
    agents.service.engine.otherwise(async (_turn, { say }) => {
      await say({ type: "tool_call", callId: "c1", toolId: "look", name: "look", arguments: {} });
      throw new Error("secret words");
    });
    const reply = await ask(protocol, "x");
    expect(reply.headers["x-should-retry"]).toBe("false");
    const { message } = await expectError(reply, 500, protocol);
    const run = await onlyRun();
    expect(message).toBe(`The turn failed (internal_error, run ${run.run_id})`);
  });
});

const tool = { ...toolOf("erase", { riskLevel: "critical", requiresConfirmation: true }), run: async () => "erased" };

describe("a turn of a model that waits for a person", () => {
  it.each([
    ["messages", false],
    ["messages", true],
    ["chat-completions", false],
    ["chat-completions", true],
  ] as const)(
    "is told in words of %s with its address, and goes on without its caller (stream: %s)",
    async (protocol, stream) => {
      await start({
        agents: new Map([["helper", { name: "Helper", tools: ["erase"] }]]),
        adapters: [functionTools({ tools: [tool] })],
        models: { approvalsUrl: (runId) => `https://desk.example/#/runs/${runId}` },
      });
      const reply = await ask(protocol, "use erase", { stream });
      expect(reply.status).toBe(200);
      const text = await reply.text();
      const { run_id: id, status, approvals } = await onlyRun();
      expect(status).toBe("running");
      expect(text).toContain(`erase (${approvals[0].call_id}). Decide here: https://desk.example/#/runs/${id}.`);
      expect(text).toContain(protocol === "messages" ? "end_turn" : '"stop"');
      await agents.service.call("member", "POST", `/api/runs/${id}/approvals/${approvals[0].call_id}`, { decision: "approve" });
      await expect.poll(async () => (await onlyRun()).status).toBe("completed");
      expect((await receiptOf(id)).tool_calls).toMatchObject([{ tool_id: "erase", is_error: false }]);
      expect(await kept()).toEqual([0, 0]);
    },
  );

  it("is told the call of the agent service where no page has an address", async () => {
    await start({
      agents: new Map([["helper", { name: "Helper", tools: ["erase"] }]]),
      adapters: [functionTools({ tools: [tool] })],
    });
    const text = await (await ask("messages", "use erase")).text();
    const { run_id: id, approvals } = await onlyRun();
    expect(text).toContain(`POST /api/runs/${id}/approvals/${approvals[0].call_id} of the agent service`);
  });
});

/** How many records of asked turns are kept: what the callers said, and the open turns. */
async function kept(): Promise<readonly number[]> {
  const records = agents.service.app.port(ports.records);
  const collections = [{ name: "said-to-turns" }, { name: "background-turns" }];
  return Promise.all(collections.map(async (each) => (await records.collection(each).query()).items.length));
}

describe("the provider `agents`", () => {
  it("lists each agent without a fault in its agent.json, and the models of other providers", async () => {
    await start({
      agents: new Map<string, object | string>([
        ["b", { name: "B" }],
        ["a", { name: "A" }],
        ["broken", "{"],
      ]),
    });
    const listed = (await agents.chat.models.list()).data.map(({ id, owned_by: by }) => [id, by]);
    expect(listed.toSorted()).toEqual([
      ["a", "agents"],
      ["b", "agents"],
      ["demo", "demo"],
    ]);
    await expectError(await ask("messages", "x", { model: "broken" }), 400, "messages");
  });

  it("is unreachable while agents cannot be read, and then leaves them out of the list", async () => {
    await start();
    const away = () => Promise.reject(new ports.AgentsUnavailable("The agents are away"));
    vi.spyOn(agents.service.app.port(ports.agents), "list").mockImplementation(away);
    await expectError(await ask("messages", "x"), 502, "messages");
    expect((await agents.chat.models.list()).data.map(({ id }) => id)).toEqual(["demo"]);
  });

  it("refuses a call that cannot be accepted, because a store is away", async () => {
    await start();
    const away = () => Promise.reject(new ports.EngineUnavailable("The engine is away"));
    vi.spyOn(agents.service.app.port(ports.engine), "start").mockImplementation(away);
    await expectError(await ask("messages", "x"), 529, "messages");
    expect(await runs()).toEqual([]);
  });

  it("is not there for agents: an agent cannot call agents as its model", async () => {
    await start({ agents: new Map([["helper", { name: "Helper", provider: "agents", model: "helper" }]]) });
    const { message } = await expectError(await ask("messages", "x"), 502, "messages");
    expect(message).toMatch(/^The agent's provider is not configured \(provider_unavailable, run run_\w+\)$/);
  });

  it("never is the provider that an agent without a provider of its own gets", async () => {
    await start({ agents: new Map([["demo", { name: "Demo", model: "demo" }]]) });
    expect(await (await ask("messages", "Hello", { model: "demo" })).text()).toContain("You said: Hello");
  });

  it("refuses further callers of an agent that are too many, as of a circle of agents", async () => {
    await start();
    agents.service.engine.otherwise(async (_turn, context) => untilStopped(context));
    const asked = agents.service.app.port(askedTurnsPort);
    const asking = {
      agentId: "helper",
      userId: "member",
      prompt: "x",
      history: [],
      input: [],
      origin: { origin: "test", displayName: "x" },
    };
    const left = new AbortController();
    const open = Array.from({ length: ASKED_AT_ONCE }, () => asked.ask(asking, left.signal));
    await Promise.all(open.map((each) => each.next()));
    await expect(asked.ask(asking, left.signal).next()).rejects.toMatchObject({ code: "limit_reached" });
    await Promise.all(open.map((each) => each.return()));
    const again = asked.ask(asking, left.signal);
    expect(await again.next()).toMatchObject({ value: { type: "accepted" } });
    await again.return();
  });
});

describe("a turn of a model", () => {
  it("counts for the limits of its user, which refuse it in the protocol of its caller", async () => {
    await start({ runtime: { limits: { user: { turnsAtOnce: 1 } } } });
    agents.service.engine.otherwise(async (_turn, context) => untilStopped(context));
    const first = new AbortController();
    const stopped = agents.chat.chat.completions
      .create(chatOf("first"), { signal: first.signal })
      .catch((error: unknown) => error);
    await expect.poll(() => agents.service.engine.played).toEqual(["first"]);
    for (const protocol of PROTOCOLS) {
      const reply = await ask(protocol, "second");
      expect(reply.headers["retry-after"]).toBe("5");
      expect((await expectError(reply, 429, protocol)).type).toBe("rate_limit_error");
    }
    first.abort();
    expect(await stopped).toBeInstanceOf(Error);
    await expect.poll(async () => (await onlyRun()).interruption_reason).toBe("caller_left");
    expect(await kept()).toEqual([0, 0]);
  });

  it("is counted once, as turns of its user are, and not as a call of the proxy", async () => {
    await start({ agents: new Map([["helper", { name: "Helper" }]]), adapters: [recordUsage({})] });
    const { usage } = await agents.messages.messages.create(messagesOf("Hello"));
    const today = async () => (await agents.service.app.port(ports.usage).today()).groups;
    await expect
      .poll(async () => (await today()).map(({ subject }) => subject))
      .toEqual([{ source: "agent", provider: "demo", model: "demo", userId: "member", agentId: "helper" }]);
    await expect.poll(async () => (await today())[0]?.sums.outputTokens).toBe(usage.output_tokens);
    expect((await today())[0]?.sums.inputTokens).toBe(usage.input_tokens);
  });

  it("gets images and documents of the request, and notes in place of addresses", async () => {
    await start();
    const seen: ports.AgentTurn[] = [];
    agents.service.engine.otherwise(async (turn, { say }) => void (seen.push(turn), await say({ type: "text", delta: "ok" })));
    const data = png(4, 3).toString("base64");
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data } };
    const content = [
      image,
      { type: "document", title: "Rules", source: { type: "text", media_type: "text/plain", data: "Be kind" } },
      { type: "image", source: { type: "url", url: "http://127.0.0.1:1/x.png" } },
      { type: "text", text: "What is it?" },
    ];
    expect((await ask("messages", "", { messages: [{ role: "user", content }] })).status).toBe(200);
    const whole = { image_url: { url: `data:image/png;base64,${data}` }, type: "image_url" };
    expect((await ask("chat-completions", "", { messages: [{ role: "user", content: [whole] }] })).status).toBe(200);
    const media = { type: "media", mediaType: "image/png", data };
    expect(seen.map(({ input }) => input)).toEqual([
      [
        media,
        { type: "text", text: "Rules\n\nBe kind" },
        { type: "text", text: "[The image at an address was left out: only its bytes can be shown]" },
        { type: "text", text: "What is it?" },
      ],
      [media],
    ]);
  });

  it("leaves out what has no meaning for an agent, and says so", async () => {
    await start();
    const more = { system: "You are a pirate", temperature: 0.5, top_p: 0.5, top_k: 3, stop_sequences: ["END"] };
    const reply = await ask("messages", "Hello", more);
    expect(reply.headers["x-portico-dropped"]).toBe("system, temperature, top_p, top_k, stop_sequences");
    expect(await reply.text()).toContain("You said: Hello");
  });

  it.each([
    [
      "no message of the user at its end",
      {
        messages: [
          { role: "user", content: "x" },
          { role: "assistant", content: "y" },
        ],
      },
    ],
    ["an empty message", { messages: [{ role: "user", content: [] }] }],
    ["a schema of the answer", { output_config: { format: { type: "json_schema", schema: { type: "object" } } } }],
  ])("does not begin for a request with %s", async (_what, more) => {
    await start();
    await expectError(await ask("messages", "x", more), 400, "messages");
    expect(await runs()).toEqual([]);
  });

  it("shows its caller what the agent sends to its user", async () => {
    await start({ agents: new Map([["helper", { name: "Helper", engine: "scripted", tools: ["SendUserMessage"] }]]) });
    agents.service.engine.otherwise(async (_turn, { callTool, say, signal }) => {
      await callTool({ toolId: "SendUserMessage", arguments: { text: "I begin" } }, signal);
      await say({ type: "text", delta: "Done" });
    });
    expect(CALLERS.messages.textOf(await (await ask("messages", "x")).json())).toBe("I begin\n\nDone");
    expect((await agents.service.call("owner", "GET", "/api/agents/helper/schedule-messages")).body?.items ?? []).toEqual([]);
  });

  it("has the answer of an engine that said nothing", async () => {
    await start();
    agents.service.engine.otherwise(async () => ({ output: "In the end" }));
    expect(CALLERS.messages.textOf(await (await ask("messages", "x")).json())).toBe("In the end");
  });

  it.each([
    ["max_turns", "max_tokens"],
    ["refusal", "refusal"],
    ["empty_answer", "end_turn"],
  ] as const)("that ended with %s ends as an answer with %s", async (end, reason) => {
    await start();
    agents.service.engine.otherwise(async () => ({ end }));
    expect(await (await ask("messages", "x")).json()).toMatchObject({ stop_reason: reason });
  });

  it("that its user stops is an error, with its run", async () => {
    await start();
    agents.service.engine.otherwise(async (_turn, context) => untilStopped(context));
    const asked = ask("messages", "x");
    await expect.poll(() => agents.service.engine.played).toEqual(["x"]);
    expect((await agents.service.call("owner", "POST", "/api/users/member/stop-turns")).body).toMatchObject({ stopped: 1 });
    const { message } = await expectError(await asked, 502, "messages");
    expect(message).toBe(`The turn was stopped (user_stop, run ${(await onlyRun()).run_id})`);
  });

  it("whose process died is closed as failed at the next start, and nothing of it stays but its run and its receipt", async () => {
    const folder = temporaryFolder();
    try {
      await start({ dataDir: folder.path });
      agents.service.engine.otherwise(async (_turn, context) => {
        await context.say({ type: "text", delta: "so far" });
        return untilStopped(context);
      });
      const cut = ask("messages", "x").catch((error: unknown) => error);
      await expect.poll(() => agents.service.engine.played).toEqual(["x"]);
      const { run_id: id } = await onlyRun();
      const away = () => Promise.reject(new ports.LogUnavailable("The log is away"));
      await expect.poll(() => agents.service.app.port(ports.log).count(`turns/${id.replace("run_", "turn_")}`)).toBe(1);
      vi.spyOn(agents.service.app.port(ports.log), "appendAll").mockImplementation(away);
      await agents.close();
      await cut;
      await start({ dataDir: folder.path });
      await expect.poll(async () => (await onlyRun()).status).toBe("failed");
      expect((await onlyRun()).failure_reason).toBe("process_restart");
      expect(await receiptOf(id)).toMatchObject({ output: "so far", outcome: { status: "failed" } });
      expect(agents.service.engine.played).toEqual([]);
      await expect.poll(kept).toEqual([0, 0]);
      await expect.poll(() => agents.service.app.port(ports.log).count(`turns/${id.replace("run_", "turn_")}`)).toBe(0);
      expect((await agents.service.call("owner", "POST", `/api/runs/${id}/again`)).status).toBe(409);
    } finally {
      await agents.close();
      folder.remove();
    }
  });

  it("that executes in another process brings its caller everything", async () => {
    await start({ isOneExecuting: true });
    agents.service.engine.otherwise(async (_turn, { say }) => {
      await say({ type: "text", delta: "one" });
      await say({ type: "thinking", delta: "Hm" });
      await say({ type: "text", delta: "two" });
      // The end has only the last text.
      return { output: "two", usage: { inputTokens: 3, outputTokens: 4, modelCalls: 1 } };
    });
    const answers = await Promise.all(["a", "b", "c"].map((text) => LIBRARIES.messages.whole(text)));
    for (const { said, usage } of answers) expect([said, usage]).toEqual(["one\n\ntwo", [3, 4]]);
    const waiting = agents.service.engine.played.length;
    agents.service.engine.otherwise(async (_turn, context) => untilStopped(context));
    const left = ["d", "e", "f"].map(async (text) => {
      const controller = new AbortController();
      const call = agents.chat.chat.completions.create(chatOf(text), { signal: controller.signal }).catch(() => {});
      await expect.poll(() => agents.service.engine.played).toContain(text);
      controller.abort();
      await call;
    });
    await Promise.all(left);
    expect(agents.service.engine.played).toHaveLength(waiting + 3);
    await expect
      .poll(async () => (await runs()).filter(({ interruption_reason: reason }) => reason === "caller_left").length)
      .toBe(3);
    expect(await kept()).toEqual([0, 0]);
  });
});
