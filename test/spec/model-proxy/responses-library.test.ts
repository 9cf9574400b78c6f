import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { PROVIDER_KEY, type ProxyApp, startProxy } from "../../harness/proxy-app.ts";

const PARAMETERS = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };

/** The same question as a request of Messages, and as one of the vendor's own client library. */
const QUESTIONS = [
  [
    "a text",
    { max_tokens: 100, system: "be brief", temperature: 0.5, messages: [{ role: "user", content: "say it back" }] },
    {
      max_output_tokens: 100,
      instructions: "be brief",
      temperature: 0.5,
      input: [{ type: "message", role: "user", content: "say it back" }],
    },
  ],
  [
    "reasoning and a forced tool",
    {
      max_tokens: 2_000,
      thinking: { type: "adaptive" },
      messages: [{ role: "user", content: 'weather {"city":"Bern"}' }],
      tools: [{ name: "weather", description: "The weather in a city", input_schema: PARAMETERS, strict: true }],
      tool_choice: { type: "tool", name: "weather" },
    },
    {
      max_output_tokens: 2_000,
      reasoning: { effort: "high", summary: "auto" },
      input: [{ type: "message", role: "user", content: 'weather {"city":"Bern"}' }],
      tools: [{ type: "function", name: "weather", description: "The weather in a city", parameters: PARAMETERS, strict: true }],
      tool_choice: { type: "function", name: "weather" },
    },
  ],
] as const;

describe("the vendor's client library and a provider of the Responses API", () => {
  let upstream: FakeUpstream;
  let proxy: ProxyApp;
  let client: OpenAI;
  beforeAll(async () => {
    upstream = await startFakeUpstream();
    proxy = await startProxy({ providers: [{ protocol: "responses", upstream }] });
    client = new OpenAI({ apiKey: PROVIDER_KEY, baseURL: upstream.baseUrl, maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());
  afterAll(async () => {
    await proxy.close();
    await upstream.close();
  });

  /** What the provider sends, and what the library sends. */
  const sent = () =>
    Promise.all(
      upstream.requests.map(async (request) => ({
        method: request.method,
        url: request.url,
        type: request.headers["content-type"],
        authorization: request.headers.authorization,
        body: await request.json(),
      })),
    );
  const own = (more: object) => ({ model: "echo-large", store: false, include: ["reasoning.encrypted_content"], ...more });

  it.each(QUESTIONS)("ask %s in the same way, whole and as a stream", async (_, messages, responses) => {
    for (const stream of [false, true]) {
      upstream.reset();
      const streamed = stream ? { stream } : {};
      const reply = await proxy.post("/v1/messages", { model: "echo-large", ...messages, ...streamed });
      expect([reply.status, (await reply.bytes()).length > 0]).toEqual([200, true]);
      await client.responses.create(own({ ...responses, ...streamed }) as OpenAI.Responses.ResponseCreateParams).asResponse();
      const [ours, theirs] = await sent();
      expect(ours).toEqual(theirs);
    }
  });

  it.each(QUESTIONS)(
    "the library reads the test's answer to %s, whole and as a stream, as the same response",
    async (_, _messages, responses) => {
      const params = own(responses) as OpenAI.Responses.ResponseCreateParamsNonStreaming;
      const whole = await client.responses.create(params);
      upstream.reset();
      const deltas: string[] = [];
      const stream = client.responses.stream(params as Parameters<typeof client.responses.stream>[0]);
      stream.on("response.output_text.delta", ({ delta }) => deltas.push(delta));
      stream.on("response.function_call_arguments.delta", ({ delta }) => deltas.push(delta));
      const final = await stream.finalResponse();
      const shape = ({ output, status, usage }: Pick<OpenAI.Responses.Response, "output" | "status" | "usage">) => ({
        types: output.map(({ type }) => type),
        status,
        usage,
      });
      expect(shape(final)).toEqual(shape(whole));
      const call = whole.output.find((item) => item.type === "function_call");
      expect(deltas.join("")).toBe(call ? call.arguments : whole.output_text);
      expect(final.output_text).toBe(whole.output_text);
    },
  );
});
