import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { chatEvents } from "../../harness/stream-scripts.ts";
import { events, json } from "../../harness/upstream-answers.ts";

const MODELS = ["gpt-5-mini", "x-ai/grok-4-fast", "gpt-5.5", "house-model"];

describe("stop sequences for a provider of Chat Completions", () => {
  let upstream: FakeUpstream;
  let proxy: ProxyApp;
  beforeAll(async () => {
    upstream = await startFakeUpstream({ models: MODELS });
    proxy = await startProxy({ providers: [{ protocol: "chat-completions", upstream, models: MODELS }] });
  });
  beforeEach(() => upstream.reset());
  afterAll(async () => {
    await proxy.close();
    await upstream.close();
  });
  const choice = { index: 0, message: { role: "assistant", content: "one two three" }, finish_reason: "stop" };
  const whole = json(200, { choices: [choice], usage: { prompt_tokens: 7, completion_tokens: 11 } });
  const ask = async (model: string, stream = false) => {
    const body = CALLERS.messages.request("hello", { model, stream, stop_sequences: [" t", "three"] });
    const reply = await proxy.post("/v1/messages", body);
    return { status: reply.status, text: await reply.text() };
  };
  const sent = async (number: number) => JSON.parse(await (await upstream.request(number)).text());

  it.each([
    ["gpt-5-mini (huggingface/smolagents#1671, crewAIInc/crewAI#2738)", false],
    ["x-ai/grok-4-fast (BerriAI/litellm#12646, huggingface/smolagents#1766)", false],
    ["gpt-5.5 (BerriAI/litellm#28650)", true],
    ["house-model", true],
  ])("are sent if the model takes them: %s", async (model, isSent) => {
    await ask(model.split(" ")[0]!);
    expect("stop" in (await sent(1))).toBe(isSent);
  });

  it("end the answer when it is read, if the model does not take them", async () => {
    upstream.answerNext(whole);
    expect(JSON.parse((await ask("gpt-5-mini")).text)).toMatchObject({
      content: [{ type: "text", text: "one" }],
      stop_reason: "stop_sequence",
      stop_sequence: " t",
      usage: { input_tokens: 7, output_tokens: 11 },
    });
  });

  it("end a stream when it is read", async () => {
    upstream.answerNext(events(chatEvents("one two three", true)));
    const { text } = await ask("gpt-5-mini", true);
    CALLERS.messages.assertStream(text);
    expect(text).toContain('"stop_sequence":" t"');
    expect(text).not.toContain("three");
  });

  it.each([false, true])("end the answer to the second request, if the provider refuses them (stream: %s)", async (stream) => {
    upstream.answerNext(
      json(400, { error: { message: "Unsupported parameter: 'stop' is not supported with this model.", param: "stop" } }),
      stream ? events(chatEvents("one two three", true)) : whole,
    );
    const { status, text } = await ask("house-model", stream);
    expect([status, text]).toEqual([200, expect.stringContaining('"stop_sequence":" t"')]);
    expect(text).not.toContain("three");
    expect(["stop" in (await sent(1)), "stop" in (await sent(2))]).toEqual([true, false]);
  });
});
