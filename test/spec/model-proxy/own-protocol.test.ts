import { type Adapter, ports, Secret } from "@portico/core";
import { type AnswerPiece, defineModelProvider, ModelRefusal, type OwnProvider } from "@portico/core/model-protocols";
import { describe, expect, it } from "vitest";
import { CALLERS } from "../../harness/callers.ts";
import { startProxy } from "../../harness/proxy-app.ts";

const KEY = "a-key-of-eleven-words";

/** A provider that answers with these pieces, or as the function does. */
function own(answer: OwnProvider["answer"], more: Partial<OwnProvider> = {}): Adapter {
  return defineModelProvider({
    name: "models/own",
    open: () => ({ id: "own", models: ["small"], secrets: [new Secret(KEY)], answer, ...more }),
  })();
}

function saying(...pieces: readonly AnswerPiece[]): OwnProvider["answer"] {
  return async function* () {
    yield* pieces;
  };
}

function failing(error: Error): OwnProvider["answer"] {
  return async function* () {
    yield { type: "start" };
    throw error;
  };
}

const proxyOf = (adapter: Adapter) => startProxy({ providers: [{ protocol: "own", id: "own", adapter }] });
const MESSAGE = { model: "small", max_tokens: 100, messages: [{ role: "user", content: "hello" }] };

describe.each(["messages", "chat-completions"] as const)(
  "a provider with a protocol of its own, for a caller of %s",
  (protocol) => {
    const caller = CALLERS[protocol];

    it.each([true, false])("answers with the texts that it yields (stream: %s)", async (stream) => {
      await using proxy = await proxyOf(own(saying("Hel", "lo")));
      const answer = await proxy.post(caller.path, caller.request("hello", { model: "small", stream }));
      expect(answer.status).toBe(200);
      const text = await answer.text();
      expect(text).toContain("Hel");
      expect(text).toContain("lo");
    });

    it("refuses with the status, the words and the time to wait of the provider, without its key", async () => {
      const refusing = own(
        failing(new ModelRefusal("rate-limit", `The key ${KEY} made too many calls`, { retryAfterMs: 1_500 })),
      );
      await using proxy = await proxyOf(refusing);
      for (const stream of [true, false]) {
        const answer = await proxy.post(caller.path, caller.request("hello", { model: "small", stream }));
        expect([answer.status, answer.headers["retry-after"]]).toEqual([429, "2"]);
        expect(await answer.text()).toContain("The key *** made too many calls");
      }
    });

    it("is unreachable if its connection fails, and its address is not told", async () => {
      const refused = new Error("connect ECONNREFUSED 10.1.2.3:80");
      const lost = own(failing(Object.assign(refused, { code: "ECONNREFUSED", syscall: "connect" })));
      await using proxy = await proxyOf(lost);
      const answer = await proxy.post(caller.path, caller.request("hello", { model: "small" }));
      expect(answer.status).toBe(502);
      expect(await answer.text()).not.toContain("10.1.2.3");
    });

    it.each([
      ["JSON", () => JSON.parse("{") as string],
      ["a piece", () => 7 as unknown as string],
    ])("is at fault for an answer that is not %s", async (_what, piece) => {
      const broken = own(async function* () {
        yield piece();
      });
      await using proxy = await proxyOf(broken);
      const answer = await proxy.post(caller.path, caller.request("hello", { model: "small" }));
      expect(answer.status).toBeGreaterThanOrEqual(500);
    });

    it("has failed if its answer has no content", async () => {
      await using proxy = await proxyOf(own(saying({ type: "usage", usage: { input: 1 } })));
      const answer = await proxy.post(caller.path, caller.request("hello", { model: "small" }));
      expect(answer.status).toBe(502);
    });
  },
);

describe("a provider with a protocol of its own", () => {
  it("gets what a request holds, in a form that is easy to read", async () => {
    const asked: unknown[] = [];
    const reading = own(
      async function* ({ system, turns, tools, toolChoice, maxTokens, temperature, stopSequences }) {
        asked.push({ system, turns, tools, toolChoice, maxTokens, temperature, stopSequences });
        yield "ok";
      },
      { takes: ["tools", "images", "thinking"] },
    );
    await using proxy = await proxyOf(reading);
    const source = { type: "base64", media_type: "image/png", data: "AAAA" };
    const answer = await proxy.post("/v1/messages", {
      ...MESSAGE,
      system: [{ type: "text", text: "Be kind" }],
      temperature: 0.5,
      stop_sequences: ["END"],
      tools: [{ name: "look", input_schema: { type: "object" } }],
      tool_choice: { type: "tool", name: "look", disable_parallel_tool_use: true },
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is it?" },
            { type: "image", source },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm", signature: "s1" },
            { type: "tool_use", id: "t1", name: "look", input: { at: 12345678901234567890n.toString() } },
          ],
        },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "t1", is_error: true, content: [{ type: "image", source }] }],
        },
      ],
    });
    expect(answer.status).toBe(200);
    const image = { type: "image", source: { type: "base64", mediaType: "image/png", data: "AAAA" } };
    expect(asked).toEqual([
      {
        system: "Be kind",
        turns: [
          { role: "user", text: "What is it?", parts: [{ type: "text", text: "What is it?" }, image] },
          {
            role: "assistant",
            text: "",
            parts: [
              { type: "thinking", text: "Hm", signature: "s1" },
              { type: "tool-call", id: "t1", name: "look", arguments: { at: "12345678901234567890" } },
            ],
          },
          { role: "user", text: "", parts: [{ type: "tool-result", id: "t1", text: "", parts: [image], isError: true }] },
        ],
        tools: [{ name: "look", description: undefined, schema: { type: "object" } }],
        toolChoice: { type: "tool", name: "look", isSingle: true },
        maxTokens: 100,
        temperature: 0.5,
        stopSequences: ["END"],
      },
    ]);
  });

  it("calls tools, and the stop reason says so", async () => {
    const calling = own(saying("I look.", { type: "tool-call", name: "look", arguments: { at: "tea" } }), { takes: ["tools"] });
    await using proxy = await proxyOf(calling);
    const answer = await proxy.post("/v1/messages", { ...MESSAGE, tools: [{ name: "look", input_schema: { type: "object" } }] });
    expect(await answer.json()).toMatchObject({
      stop_reason: "tool_use",
      content: [
        { type: "text", text: "I look." },
        { type: "tool_use", name: "look", input: { at: "tea" } },
      ],
    });
  });

  it.each([
    ["tools", { tools: [{ name: "look", input_schema: { type: "object" } }] }],
    [
      "messages.0.content.0",
      { messages: [{ role: "user", content: [{ type: "image", source: { type: "url", url: "http://a.b" } }] }] },
    ],
    ["output_config.format", { output_config: { format: { type: "json_schema", schema: { type: "object" } } } }],
    ["tools.0", { tools: [{ type: "web_search_20250305", name: "web_search" }] }],
    ["mcp_servers", { mcp_servers: [{ name: "there" }] }],
  ])("refuses by name what it cannot carry: %s", async (path, more) => {
    await using proxy = await proxyOf(own(saying("ok")));
    const answer = await proxy.post("/v1/messages", { ...MESSAGE, ...more });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain(`${path}: `);
  });

  it("tells in x-portico-dropped what it left out", async () => {
    await using proxy = await proxyOf(own(saying("ok")));
    const answer = await proxy.post("/v1/messages", {
      ...MESSAGE,
      metadata: { user_id: "u1" },
      thinking: { type: "enabled", budget_tokens: 1024 },
      messages: [{ role: "user", content: [{ type: "text", text: "hello", cache_control: { type: "ephemeral" } }] }],
    });
    expect(answer.status).toBe(200);
    expect(answer.headers["x-portico-dropped"]).toBe("metadata, thinking, cache_control");
  });

  it("fails with ModelTimeout after a timeout of its own, and with the error of its port", async () => {
    for (const [thrown, status] of [
      [new DOMException("late", "TimeoutError"), 504],
      [new ports.ModelUnreachable("It is away"), 502],
    ] as const) {
      await using proxy = await proxyOf(own(failing(thrown)));
      expect((await proxy.post("/v1/messages", MESSAGE)).status).toBe(status);
    }
  });
});
