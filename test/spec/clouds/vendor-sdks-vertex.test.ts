import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vertex } from "@portico/clouds/models/vertex";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CloudLibraries, loadCloudLibraries } from "../../harness/cloud-libraries.ts";
import {
  addressOf,
  BEGUN,
  clientOf,
  eventsOf,
  messageOf,
  partsOf,
  QUESTIONS,
  questionOf,
  startCloud,
} from "../../harness/cloud-questions.ts";
import { readMessagesPrompt, writeMessage, writeMessageEvents } from "../../harness/echo-messages.ts";
import { echoTurn } from "../../harness/echo-turn.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { hasTools } from "../../harness/oracle.ts";
import { CUT, events, json, type Step } from "../../harness/upstream-answers.ts";
import type { Answer } from "../../harness/upstream-exchange.ts";

const MODEL = "claude-sonnet-4-5@20250929";

const isInstalled = hasTools("test/oracles", "Comparisons with the libraries of clouds");
const libraries = isInstalled ? await loadCloudLibraries() : ({} as CloudLibraries);

let upstream: FakeUpstream;
let folder: string;
beforeEach(async () => {
  upstream = await startFakeUpstream();
  upstream.answerAll(fakeVertex);
  folder = mkdtempSync(join(tmpdir(), "vendor-sdks-"));
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  await upstream.close();
});

describe.skipIf(!isInstalled)("a provider of the protocol vertex, beside the library of its vendor", () => {
  const startVertex = (more: Partial<Parameters<typeof vertex>[0]> = {}) => {
    const options = { id: "cloud", type: "google", region: "europe-west1", project: "my-project", models: [MODEL] };
    return startCloud(vertex({ ...options, keyFile: keyFile(), baseUrl: upstream.baseUrl, fetch: withToken(fetch), ...more }));
  };
  const theirs = (more: object = {}) =>
    new libraries.AnthropicVertex({
      baseURL: upstream.baseUrl,
      region: "europe-west1",
      projectId: "my-project",
      authClient: { getRequestHeaders: async () => new Headers({ authorization: "Bearer ya29.token" }) },
      maxRetries: 0,
      defaultHeaders: { "anthropic-version": "vertex-2023-10-16" },
      ...more,
    });

  it.each(QUESTIONS)("sends what the library sends: %s", async (_what, question) => {
    await using proxy = await startVertex();
    const asked = questionOf(question, MODEL);
    for (const client of [theirs(), await clientOf(proxy)]) {
      await client.messages.create(asked);
      await client.messages.stream(asked).finalMessage();
      await client.beta.messages.create({ ...asked, betas: ["one-2025-01-01", "two-2025-01-01"] });
    }
    const sent = await Promise.all(
      upstream.requests.map(async (request) => ({
        ...(await partsOf(request)),
        authorization: request.headers.authorization,
        betas: request.headers["anthropic-beta"],
        version: request.headers["anthropic-version"],
        key: request.headers["x-api-key"],
      })),
    );
    expect(sent.slice(3)).toEqual(sent.slice(0, 3));
  });

  it.each(["claude-sonnet-4-5@20250929", "claude 5;v=1", "a/b", "a%b"])(
    "names the model %j in the path as the library does",
    async (model) => {
      await using proxy = await startVertex({ models: [model] });
      for (const client of [theirs(), await clientOf(proxy)]) await client.messages.create(questionOf(QUESTIONS[0]![1], model));
      const [first, second] = upstream.requests.map(({ url }) => url);
      expect(second).toBe(first);
    },
  );

  it.each(QUESTIONS)("gives the text, calls and usage that the library reads from a stream: %s", async (_what, question) => {
    await using proxy = await startVertex();
    const client = await clientOf(proxy);
    const asked = questionOf(question, MODEL);
    const message = await theirs().messages.stream(asked).finalMessage();
    expect(await client.messages.stream(asked).finalMessage()).toEqual(message);
    expect(await client.messages.create(asked)).toMatchObject(messageOf(message));
    expect(await eventsOf(client, asked)).toEqual(await eventsOf(theirs(), asked));
  });

  it.each<[what: string, broken: Step]>([
    ["an error event", 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'],
    ["the end of the connection", CUT],
  ])("fails with the library after %s in the middle of a stream", async (_what, broken) => {
    await using proxy = await startVertex();
    upstream.answerAll(events([...BEGUN.map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`), broken]));
    for (const client of [theirs(), await clientOf(proxy)])
      await expect(client.messages.stream(questionOf(QUESTIONS[0]![1], MODEL)).finalMessage()).rejects.toThrow(
        broken === CUT ? "" : "Overloaded",
      );
  });

  it.each([true, false])("fails with the library if Google limits the rate, in a list %s", async (isList) => {
    await using proxy = await startVertex();
    const error = { error: { code: 429, message: "Quota exceeded", status: "RESOURCE_EXHAUSTED" } };
    upstream.answerAll(json(429, isList ? [error] : error));
    for (const client of [theirs(), await clientOf(proxy)])
      await expect(client.messages.stream(questionOf(QUESTIONS[0]![1], MODEL)).finalMessage()).rejects.toMatchObject({
        status: 429,
        message: expect.stringContaining("Quota exceeded"),
      });
  });

  it.each(["global", "us", "eu", "us-east5", "europe-west1"])("calls the address of the region %s", async (region) => {
    const address = await addressOf((send) => startVertex({ region, baseUrl: undefined, fetch: withToken(send) }), MODEL);
    expect(address).toBe(new URL(theirs({ region, baseURL: undefined }).baseURL).host);
  });

  /** A token without a call to Google. */
  function withToken(send: typeof fetch): typeof fetch {
    return async (input, init) => {
      const url = String(input instanceof Request ? input.url : input);
      if (!url.startsWith("https://oauth2.googleapis.com/")) return send(input, init);
      return Response.json({ access_token: "ya29.token", expires_in: 3600, token_type: "Bearer" });
    };
  }

  function keyFile(): string {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const file = join(folder, "key.json");
    const key = { private_key: privateKey.export({ type: "pkcs8", format: "pem" }), client_email: "tests@my-project.example" };
    writeFileSync(file, JSON.stringify({ type: "service_account", ...key }));
    return file;
  }
});

/** Answers as the model does. Its refusals are tested in `vertex.test.ts`. */
const fakeVertex: Answer = async (exchange) => {
  const { request } = exchange;
  const turn = echoTurn(readMessagesPrompt({ ...((await request.json()) as object), model: "claude" }));
  return request.url.endsWith(":streamRawPredict")
    ? events(writeMessageEvents(turn, "msg_vrtx_1"))(exchange)
    : json(200, writeMessage(turn, "msg_vrtx_1"))(exchange);
};
