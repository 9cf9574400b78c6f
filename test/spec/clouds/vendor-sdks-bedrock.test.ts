import { bedrock } from "@portico/clouds/models/bedrock";
import { Secret } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type CloudLibraries, loadCloudLibraries, type MessagesClient } from "../../harness/cloud-libraries.ts";
import {
  addressOf,
  BEGUN,
  clientOf,
  eventsOf,
  messageOf,
  NOW,
  partsOf,
  QUESTIONS,
  questionOf,
  readAll,
  startCloud,
} from "../../harness/cloud-questions.ts";
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
  signatureOf,
} from "../../harness/fake-bedrock.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { hasTools } from "../../harness/oracle.ts";
import { CUT, type Step } from "../../harness/upstream-answers.ts";

const MODEL = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
const ARN = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc123xyz";
const VERSION = "bedrock-2023-05-31";

const isInstalled = hasTools("test/oracles", "Comparisons with the libraries of clouds");
const libraries = isInstalled ? await loadCloudLibraries() : ({} as CloudLibraries);

let upstream: FakeUpstream;
let origin: string;
let environment: Disposable;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date(NOW) });
  environment = withEnvironment({
    ...NO_AWS,
    AWS_ACCESS_KEY_ID: AWS_KEYS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: AWS_KEYS.secretAccessKey,
  });
  upstream = await startFakeUpstream();
  upstream.answerAll(fakeBedrock());
  origin = new URL(upstream.baseUrl).origin;
});
afterEach(async () => {
  vi.useRealTimers();
  environment[Symbol.dispose]();
  await upstream.close();
});

describe.skipIf(!isInstalled)("a provider of the protocol bedrock, beside the libraries of its vendors", () => {
  const startBedrock = (more: Partial<Parameters<typeof bedrock>[0]> = {}) =>
    startCloud(bedrock({ id: "cloud", type: "aws", region: BEDROCK_REGION, models: [MODEL, ARN], baseUrl: origin, ...more }));
  const anthropic = (more: object = {}) =>
    new libraries.AnthropicBedrock({
      baseURL: origin,
      awsRegion: BEDROCK_REGION,
      awsAccessKey: AWS_KEYS.accessKeyId,
      awsSecretKey: AWS_KEYS.secretAccessKey,
      maxRetries: 0,
      // Its own default is a version that models before Claude 4.7 refuse in Bedrock (platform.claude.com, Claude on Amazon Bedrock).
      defaultHeaders: { "anthropic-version": VERSION },
      ...more,
    });
  const invoke = async (body: object, model: string, isStream: boolean) => {
    const client = new libraries.BedrockRuntimeClient({
      region: BEDROCK_REGION,
      endpoint: origin,
      credentials: AWS_KEYS,
      maxAttempts: 1,
      // Its default handler speaks HTTP/2 alone.
      requestHandler: new libraries.NodeHttpHandler(),
    });
    const Command = isStream ? libraries.InvokeModelWithResponseStreamCommand : libraries.InvokeModelCommand;
    const input = { modelId: model, contentType: "application/json", accept: "application/json", body: JSON.stringify(body) };
    return (await client.send(new Command(input))).body;
  };
  /** The events in the frames, as AWS's library unpacks them. */
  const unpack = async (model: string, question: object) => {
    const frames = await invoke({ anthropic_version: VERSION, max_tokens: 2048, ...question }, model, true);
    return (await readAll(frames)).flatMap(({ chunk }) =>
      chunk ? [JSON.parse(Buffer.from(chunk.bytes).toString("utf8")) as { type: string }] : [],
    );
  };

  const expectSignatures = async () => {
    for (const request of upstream.requests) {
      expect(request.headers["x-amz-date"]).toBe("20260304T050607Z");
      expect(request.headers.authorization).toBe(await signatureOf(request, AWS_KEYS));
    }
  };

  describe.each([MODEL, ARN])("for the model %s", (model) => {
    it.each(QUESTIONS)("sends what @anthropic-ai/bedrock-sdk sends, and signs it alike: %s", async (_what, question) => {
      await using proxy = await startBedrock();
      const ours = await clientOf(proxy);
      for (const client of [anthropic(), ours]) {
        await client.messages.create(questionOf(question, model));
        await client.messages.stream(questionOf(question, model)).finalMessage();
        await client.beta.messages.create({ ...questionOf(question, model), betas: ["one-2025-01-01", "two-2025-01-01"] });
      }
      const sent = await Promise.all(upstream.requests.map(partsOf));
      expect(sent.slice(3)).toEqual(sent.slice(0, 3));
      await expectSignatures();
    });

    it("is named in the path as in that of @aws-sdk/client-bedrock-runtime, and signed alike", async () => {
      await using proxy = await startBedrock();
      const body = { max_tokens: 2048, ...QUESTIONS[2]![1] };
      const ours = await clientOf(proxy);
      await invoke({ anthropic_version: VERSION, ...body }, model, false);
      await readAll(await invoke({ anthropic_version: VERSION, ...body }, model, true));
      await ours.messages.create({ ...body, model });
      await ours.messages.stream({ ...body, model }).finalMessage();
      const sent = await Promise.all(upstream.requests.map(partsOf));
      // AWS's library escapes colons, too. It asks for the type of the events in a header of its own.
      const plain = sent.map(({ accept: _accept, ...each }) => ({ ...each, url: each.url.replaceAll("%3A", ":") }));
      expect(plain.slice(2)).toEqual(plain.slice(0, 2));
      await expectSignatures();
    });
  });

  it("sends the version that all models take, in place of its caller's, which the library sends", async () => {
    await using proxy = await startBedrock();
    const defaultHeaders = { "anthropic-version": "2026-10-21" };
    const asked = questionOf(QUESTIONS[0]![1], MODEL);
    await expect(anthropic({ defaultHeaders }).messages.create(asked)).rejects.toMatchObject({ status: 400 });
    await (await clientOf(proxy, { defaultHeaders })).messages.create(asked);
    const bodies = await Promise.all(upstream.requests.map((each) => each.json() as Promise<{ anthropic_version: string }>));
    expect(bodies.map((body) => body.anthropic_version)).toEqual(["2026-10-21", VERSION]);
  });

  it("signs with the token of a session, as the libraries do", async () => {
    const keys = { ...AWS_KEYS, sessionToken: "the-token-of-a-session" };
    using _environment = withEnvironment({ AWS_SESSION_TOKEN: keys.sessionToken });
    upstream.answerAll(fakeBedrock({ keys: [keys] }));
    await using proxy = await startBedrock();
    for (const client of [anthropic({ awsSessionToken: keys.sessionToken }), await clientOf(proxy)])
      await client.messages.create(questionOf(QUESTIONS[0]![1], MODEL));
    expect(upstream.requests.map(({ headers }) => headers["x-amz-security-token"])).toEqual([
      keys.sessionToken,
      keys.sessionToken,
    ]);
  });

  it("sends a Bedrock API key as the libraries do", async () => {
    upstream.answerAll(fakeBedrock({ apiKey: "ABSK-a-key-of-bedrock" }));
    await using proxy = await startBedrock({ credential: new Secret("ABSK-a-key-of-bedrock") });
    const theirs = anthropic({ apiKey: "ABSK-a-key-of-bedrock", awsAccessKey: undefined, awsSecretKey: undefined });
    for (const client of [theirs, await clientOf(proxy)]) await client.messages.create(questionOf(QUESTIONS[0]![1], MODEL));
    const [first, second] = upstream.requests.map(({ headers }) => [headers.authorization, headers["x-api-key"]]);
    expect(second).toEqual(first);
  });

  it("sends the profile of a caller's user in the body, where Bedrock reads it (@anthropic-ai/bedrock-sdk 1.1.3)", async () => {
    await using proxy = await startBedrock();
    const headers = { "anthropic-user-profile-id": "profile-1" };
    const theirs = anthropic({ defaultHeaders: { "anthropic-version": VERSION, ...headers } });
    for (const client of [theirs, await clientOf(proxy, { defaultHeaders: headers })])
      for (const own of [{}, { user_profile_id: "profile-2" }])
        await client.messages.create({ ...questionOf(QUESTIONS[0]![1], MODEL), ...own });
    const bodies = (await Promise.all(upstream.requests.map((each) => each.json()))) as { user_profile_id: string }[];
    expect(bodies.map((body) => body.user_profile_id)).toEqual(["profile-1", "profile-2", "profile-1", "profile-2"]);
    for (const request of upstream.requests) expect(request.headers).not.toHaveProperty("anthropic-user-profile-id");
  });

  it.each(QUESTIONS)("gives the text, calls and usage that the libraries read from a stream: %s", async (_what, question) => {
    await using proxy = await startBedrock();
    const client = await clientOf(proxy);
    const asked = questionOf(question, MODEL);
    const theirs = await anthropic().messages.stream(asked).finalMessage();
    expect(await client.messages.stream(asked).finalMessage()).toEqual(theirs);
    expect(await client.messages.create(asked)).toMatchObject(messageOf(theirs));
    const unpacked = (await unpack(MODEL, question)).filter(({ type }) => type !== "ping");
    for (const each of [anthropic(), client]) expect(await eventsOf(each, asked)).toEqual(unpacked);
  });

  it.each<[what: string, broken: Step, message: string | undefined]>([
    ["throttlingException", exceptionFrame("throttlingException", { message: "It is too much" }), "It is too much"],
    ["modelStreamErrorException", exceptionFrame("modelStreamErrorException", { message: "It failed" }), "It failed"],
    ["internalServerException", exceptionFrame("internalServerException", { message: "It broke" }), "It broke"],
    ["validationException", exceptionFrame("validationException", { message: "It is wrong" }), "It is wrong"],
    ["modelTimeoutException", exceptionFrame("modelTimeoutException", { message: "It is late" }), "It is late"],
    ["serviceUnavailableException", exceptionFrame("serviceUnavailableException", { message: "It is away" }), "It is away"],
    ["an exception without a known name", exceptionFrame("otherException", { message: "It is new" }), undefined],
    [
      "a frame of an error",
      frame({ ":message-type": "error", ":error-code": "InternalError", ":error-message": "It went" }, ""),
      "It went",
    ],
    [
      "an error event of the model",
      chunkFrame({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }),
      "Overloaded",
    ],
    ["a frame with a wrong checksum", Buffer.concat([chunkFrame({ type: "ping" }).subarray(0, -4), Buffer.alloc(4)]), undefined],
    ["the end of the connection", CUT, undefined],
  ])("fails with the libraries after %s in the middle of a stream", async (_what, broken, message) => {
    await using proxy = await startBedrock();
    upstream.answerAll(eventStream(...BEGUN.map(chunkFrame), broken));
    const asked = questionOf(QUESTIONS[0]![1], MODEL);
    const expected = expect.objectContaining({ message: expect.stringContaining(message ?? "") });
    for (const client of [anthropic(), await clientOf(proxy)])
      await expect(client.messages.stream(asked).finalMessage()).rejects.toEqual(expected);
    // AWS's library does not look into chunks.
    if (message !== "Overloaded") await expect(unpack(MODEL, {})).rejects.toThrow();
  });

  it.each([
    [429, "ThrottlingException", 429],
    [400, "ValidationException", 400],
    [403, "AccessDeniedException", 403],
    [404, "ResourceNotFoundException", 404],
    [403, "ExpiredTokenException", 401],
    [503, "ServiceUnavailableException", 529],
  ])("fails with the libraries if the answer is %i %s", async (status, name, ours) => {
    await using proxy = await startBedrock();
    upstream.answerAll(awsError(status, name, "Not now"));
    const asked = questionOf(QUESTIONS[0]![1], MODEL);
    const failing = { message: expect.stringContaining("Not now") };
    for (const ask of ["create", "stream"] as const) {
      const of = async (client: MessagesClient) =>
        ask === "create" ? client.messages.create(asked) : client.messages.stream(asked).finalMessage();
      await expect(of(anthropic())).rejects.toMatchObject({ ...failing, status });
      await expect(of(await clientOf(proxy))).rejects.toMatchObject({ ...failing, status: ours });
      await expect(invoke({}, MODEL, ask === "stream")).rejects.toMatchObject({ ...failing, name });
    }
  });

  it.each([
    "eu-central-1",
    "us-gov-west-1",
    "cn-north-1",
    "eusc-de-east-1",
    "us-iso-east-1",
    "us-isob-east-1",
    "eu-isoe-west-1",
    "us-isof-south-1",
  ])("calls the address of the region %s", async (region) => {
    const { config } = new libraries.BedrockRuntimeClient({ region });
    const { url } = config.endpointProvider({ Region: region, UseFIPS: false, UseDualStack: false });
    expect(await addressOf((send) => startBedrock({ region, baseUrl: undefined, fetch: send }), MODEL)).toBe(url.host);
  });
});
