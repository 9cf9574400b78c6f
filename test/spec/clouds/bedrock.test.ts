import { bedrock, type BedrockOptions } from "@portico/clouds/models/bedrock";
import { Secret } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, expectError, PROTOCOLS } from "../../harness/callers.ts";
import { NO_AWS, withEnvironment } from "../../harness/environment.ts";
import {
  AWS_KEYS,
  awsError,
  BEDROCK_REGION,
  chunkFrame,
  eventStream,
  exceptionFrame,
  fakeBedrock,
  frame,
} from "../../harness/fake-bedrock.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { CUT, json, splitAt } from "../../harness/upstream-answers.ts";

const MODEL = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
const ARN = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc123xyz";

let upstream: FakeUpstream;
let environment: Disposable;
beforeEach(async () => {
  environment = withEnvironment({
    ...NO_AWS,
    AWS_ACCESS_KEY_ID: AWS_KEYS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: AWS_KEYS.secretAccessKey,
  });
  upstream = await startFakeUpstream();
  upstream.answerAll(fakeBedrock());
});
afterEach(async () => {
  environment[Symbol.dispose]();
  await upstream.close();
});

const startWith = (more: Partial<BedrockOptions> = {}) => {
  const baseUrl = new URL(upstream.baseUrl).origin;
  const options = { id: "bedrock", type: "aws", region: BEDROCK_REGION, models: [MODEL, ARN], baseUrl, ...more };
  return startProxy({ providers: [{ protocol: "own", id: "bedrock", adapter: bedrock(options) }] });
};

/** The events of a stream that has begun. */
const BEGUN = [
  {
    type: "message_start",
    message: {
      ...{ id: "msg_bdrk_1", type: "message", role: "assistant", model: "claude", content: [] },
      ...{ stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } },
    },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hel" } },
].map(chunkFrame);

const ENDED = [
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 1 } },
  { type: "message_stop", "amazon-bedrock-invocationMetrics": { inputTokenCount: 1, outputTokenCount: 1 } },
].map(chunkFrame);

describe.each(PROTOCOLS)("a provider of the protocol bedrock, for callers of %s", (protocol) => {
  const caller = CALLERS[protocol];
  const ask = (more: object = {}) => caller.request("hello there", { model: MODEL, ...more });

  it("signs its requests, and answers whole", async () => {
    await using proxy = await startWith();
    const reply = await proxy.post(caller.path, ask());
    expect(reply.status).toBe(200);
    expect(caller.textOf(await reply.json())).toContain("hello there");
    const { url, headers } = await upstream.request();
    expect(url).toBe(`/model/${MODEL}/invoke`);
    expect(headers).not.toHaveProperty("anthropic-version");
  });

  it("unpacks a stream, in whatever pieces it arrives", async () => {
    await using proxy = await startWith();
    const whole = await (await proxy.post(caller.path, ask({ stream: true }))).text();
    caller.assertStream(whole);
    expect((await upstream.request()).url).toBe(`/model/${MODEL}/invoke-with-response-stream`);
    const bytes = Buffer.concat([...BEGUN, ...ENDED]);
    upstream.answerNext(eventStream(...splitAt(bytes, ...Array.from({ length: bytes.length - 1 }, (_, at) => at + 1))));
    const pieces = await (await proxy.post(caller.path, ask({ stream: true }))).text();
    caller.assertStream(pieces);
    expect(pieces).toContain("Hel");
  });

  it.each([
    ["an exception", exceptionFrame("throttlingException", { message: "Too many tokens, please wait" }), /Too many tokens/],
    [
      "the error of the model",
      exceptionFrame("modelStreamErrorException", {
        message: "The model failed.",
        originalMessage: "Overrun",
        originalStatusCode: 500,
      }),
      /The model failed\. Overrun/,
    ],
    [
      "an error without a body",
      frame({ ":message-type": "error", ":error-code": "InternalServerException", ":error-message": "It broke" }, ""),
      /It broke/,
    ],
  ])("ends a stream by the protocol's error after %s in the middle", async (_what, broken, message) => {
    await using proxy = await startWith();
    upstream.answerNext(eventStream(...BEGUN, broken, ...ENDED));
    const text = await (await proxy.post(caller.path, ask({ stream: true }))).text();
    caller.assertBrokenStream(text);
    expect(text).toMatch(message);
  });

  it.each([
    ["is cut inside of a frame", [BEGUN[0]!.subarray(0, 40), CUT]],
    ["ends inside of a frame", [...BEGUN, BEGUN[0]!.subarray(0, 40)]],
    ["has a frame with a wrong checksum", [...BEGUN, changed(BEGUN[2]!, -1)]],
    ["has a frame with a wrong length", [...BEGUN, changed(BEGUN[2]!, 3)]],
    ["announces a frame of 4 GiB", [...BEGUN, Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0])]],
    ["announces a frame without a payload", [...BEGUN, Buffer.from([0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0])]],
    ["has a chunk that is not JSON", [...BEGUN, frame({ ":event-type": "chunk", ":message-type": "event" }, "<html>")]],
  ] as const)("ends a stream by the protocol's error if it %s", async (_what, steps) => {
    await using proxy = await startWith();
    upstream.answerNext(eventStream(...steps));
    const reply = await proxy.post(caller.path, ask({ stream: true }));
    caller.assertBrokenStream(await reply.text());
    await upstream.quiet();
  });

  it.each([
    [400, "ValidationException", "messages: at least one message is required", 400],
    [403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", 403],
    [404, "ResourceNotFoundException", "Could not resolve the foundation model", 404],
    [403, "ExpiredTokenException", "The security token included in the request is expired", 401],
    [429, "ThrottlingException", "Too many requests, please wait before trying again.", 429],
    [400, "ServiceQuotaExceededException", "Your request exceeds the service quota", 429],
    [408, "ModelTimeoutException", "The model took too long", 504],
    [424, "ModelErrorException", "The model failed", 502],
    [429, "ModelNotReadyException", "The model is not ready", 529],
    [503, "ServiceUnavailableException", "The service is unavailable", 529],
    [500, "InternalServerException", "An internal error", 502],
  ])("answers %i %s with the status of its kind", async (status, type, message, expected) => {
    await using proxy = await startWith();
    for (const isStream of [false, true]) {
      upstream.answerAll(awsError(status, type, message));
      const reply = await proxy.post(caller.path, ask({ stream: isStream }));
      expect((await expectError(reply, expected, protocol)).message).toBe(message);
      expect(reply.headers["request-id"]).toBe("request-1");
    }
  });

  it("says that a prompt is too long in the words by which coding tools shorten it (tigy32/Tycode#15)", async () => {
    await using proxy = await startWith();
    upstream.answerNext(awsError(400, "ValidationException", "Input is too long for requested model."));
    const { message } = await expectError(await proxy.post(caller.path, ask()), 400, protocol);
    expect(message).toBe("prompt is too long: Input is too long for requested model.");
  });

  it("takes a refusal with status 200 for a refusal (Portkey-AI/gateway#1142)", async () => {
    await using proxy = await startWith();
    upstream.answerNext(json(200, { message: "messages.1.content.0.type: Expected `thinking`" }));
    const reply = await proxy.post(caller.path, ask({ stream: true }));
    expect((await expectError(reply, 400, protocol)).message).toContain("Expected `thinking`");
  });
});

describe("a provider of the protocol bedrock", () => {
  const { path, request } = CALLERS.messages;

  it("names a profile's ARN in one segment of the path (vercel/ai#14117, anthropics/anthropic-sdk-python#740)", async () => {
    await using proxy = await startWith();
    expect((await proxy.post(path, request("hi", { model: ARN }))).status).toBe(200);
    expect((await upstream.request()).url).toBe(`/model/${ARN.replace("/", "%2F")}/invoke`);
  });

  it("sends the betas in the body, and everything else of it unchanged", async () => {
    await using proxy = await startWith();
    const given = request("hi", { model: MODEL, stream: true, metadata: { user_id: "u" }, seed: "SEED" });
    const body = JSON.stringify(given).replace('"SEED"', "12345678901234567890");
    await (await proxy.post(path, body, { "anthropic-beta": "one-2025-01-01, two-2025-01-01" })).text();
    const sent = await (await upstream.request()).text();
    const { model: _model, stream: _stream, ...rest } = JSON.parse(body);
    expect(JSON.parse(sent)).toEqual({
      ...rest,
      anthropic_version: "bedrock-2023-05-31",
      anthropic_beta: ["one-2025-01-01", "two-2025-01-01"],
    });
    expect(sent).toContain("12345678901234567890");
    expect((await upstream.request()).headers).not.toHaveProperty("anthropic-beta");
  });

  it.each([true, false])(
    "sends a request again without betas if its model refuses them (anthropics/claude-code#49648), stream %s",
    async (stream) => {
      await using proxy = await startWith();
      upstream.answerNext(json(400, { message: "The model returned the following errors: invalid beta flag" }));
      const reply = await proxy.post(path, request("hi", { model: MODEL, stream }), { "anthropic-beta": "claude-code-20250219" });
      expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining("hi")]);
      const bodies = await Promise.all(upstream.requests.map((each) => each.json() as Promise<object>));
      expect(bodies.map((body) => "anthropic_beta" in body)).toEqual([true, false]);
    },
  );

  it("keeps line ends inside of an event, and leaves out chunks without a named event", async () => {
    await using proxy = await startWith();
    const spaced = chunkFrame('{"type":"ping",\r\n\n"note":"a\\nb"}');
    upstream.answerNext(
      eventStream(
        ...BEGUN,
        spaced,
        chunkFrame("{}"),
        frame({ ":event-type": "other", ":message-type": "event" }, "{}"),
        ...ENDED,
      ),
    );
    const text = await (await proxy.post(path, request("hi", { model: MODEL, stream: true }))).text();
    CALLERS.messages.assertStream(text);
    expect(text).toContain('event: ping\ndata: {"type":"ping", "note":"a\\nb"}\n\n');
  });

  it("sends a Bedrock API key as a bearer token, from its setting or the environment, and shows it to no caller", async () => {
    upstream.answerAll(fakeBedrock({ apiKey: "ABSK-a-key-of-bedrock" }));
    await using set = await startWith({ credential: new Secret("ABSK-a-key-of-bedrock") });
    expect((await set.post(path, request("hi", { model: MODEL }))).status).toBe(200);
    using _environment = withEnvironment({ AWS_BEARER_TOKEN_BEDROCK: "ABSK-a-key-of-bedrock" });
    await using found = await startWith();
    expect((await found.post(path, request("hi", { model: MODEL }))).status).toBe(200);
    upstream.answerNext(awsError(400, "ValidationException", "not ABSK-a-key-of-bedrock"));
    expect(await (await found.post(path, request("hi", { model: MODEL }))).text()).not.toContain("ABSK-a-key-of-bedrock");
  });

  it("refuses a request over 32 MiB, and one that has no model, without a call", async () => {
    await using proxy = await startWith();
    await expectError(await proxy.post(path, request("x".repeat(33 * 1024 * 1024), { model: MODEL })), 413, "messages");
    expect(upstream.requests).toEqual([]);
  });

  it("takes no header of a signature from a caller", async () => {
    await using proxy = await startWith();
    const headers = { "x-amz-date": "20200101T000000Z", "x-amz-content-sha256": "0".repeat(64), "x-amz-security-token": "own" };
    expect((await proxy.post(path, request("hi", { model: MODEL }), headers)).status).toBe(200);
    expect((await upstream.request()).headers).not.toHaveProperty("x-amz-security-token");
  });

  it("signs headers of AWS from its settings, and no other header", async () => {
    await using proxy = await startWith({ headers: { "X-Amzn-Bedrock-GuardrailIdentifier": "guard-1" } });
    expect((await proxy.post(path, request("hi", { model: MODEL }), { "x-own": "1", "user-agent": "tests" })).status).toBe(200);
    const { headers } = await upstream.request();
    expect(headers["x-amzn-bedrock-guardrailidentifier"]).toBe("guard-1");
    expect(headers.authorization).toContain(
      "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amzn-bedrock-guardrailidentifier,",
    );
  });
});

function changed(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at < 0 ? copy.length + at : at]! ^= 0x01;
  return copy;
}
