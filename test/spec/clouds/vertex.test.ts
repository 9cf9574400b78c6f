import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vertex, type VertexOptions } from "@portico/clouds/models/vertex";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, expectError, PROTOCOLS } from "../../harness/callers.ts";
import { readMessagesPrompt, writeMessage, writeMessageEvents } from "../../harness/echo-messages.ts";
import { echoTurn } from "../../harness/echo-turn.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { events, html, json } from "../../harness/upstream-answers.ts";
import type { Answer } from "../../harness/upstream-exchange.ts";

const MODEL = "claude-sonnet-4-5@20250929";
const PUBLISHER = "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models";

let upstream: FakeUpstream;
let folder: string;
let keyFile: string;
let tokens = 0;
beforeEach(async () => {
  tokens = 0;
  upstream = await startFakeUpstream();
  upstream.answerAll(fakeVertex);
  folder = await mkdtemp(join(tmpdir(), "vertex-"));
  keyFile = join(folder, "key.json");
  await writeFile(keyFile, JSON.stringify(serviceAccount()));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
  await upstream.close();
});

const startWith = (more: Partial<VertexOptions> = {}) => {
  const options = { id: "vertex", type: "google", region: "europe-west1", project: "my-project", models: [MODEL], keyFile };
  const adapter = vertex({ ...options, baseUrl: upstream.baseUrl, fetch: toFake, ...more });
  return startProxy({ providers: [{ protocol: "own", id: "vertex", adapter }] });
};
const calls = () => upstream.requests.filter(({ url }) => url !== "/token");

describe.each(PROTOCOLS)("a provider of the protocol vertex, for callers of %s", (protocol) => {
  const caller = CALLERS[protocol];
  const ask = (more: object = {}) => caller.request("hello there", { model: MODEL, ...more });

  it("answers whole and as a stream, with tokens of a service account", async () => {
    await using proxy = await startWith();
    const whole = await proxy.post(caller.path, ask());
    expect(caller.textOf(await whole.json())).toContain("hello there");
    caller.assertStream(await (await proxy.post(caller.path, ask({ stream: true }))).text());
    expect(calls().map(({ url }) => url)).toEqual([`${PUBLISHER}/${MODEL}:rawPredict`, `${PUBLISHER}/${MODEL}:streamRawPredict`]);
    expect(calls().map(({ headers }) => headers.authorization)).toEqual([
      "Bearer ya29.token-number-1",
      "Bearer ya29.token-number-1",
    ]);
    const bodies = await Promise.all(calls().map((each) => each.json()));
    for (const body of bodies) {
      expect(body).toMatchObject({ anthropic_version: "vertex-2023-10-16" });
      expect(body).not.toHaveProperty("model");
    }
  });

  it.each([
    [429, { error: { code: 429, message: "Quota exceeded", status: "RESOURCE_EXHAUSTED" } }, 429, "Quota exceeded"],
    [429, [{ error: { code: 429, message: "Quota exceeded", status: "RESOURCE_EXHAUSTED" } }], 429, "Quota exceeded"],
    [
      403,
      { error: { code: 403, message: "Permission denied on resource", status: "PERMISSION_DENIED" } },
      403,
      "Permission denied on resource",
    ],
    [
      404,
      { error: { code: 404, message: "Publisher Model was not found", status: "NOT_FOUND" } },
      404,
      "Publisher Model was not found",
    ],
    [
      400,
      { type: "error", error: { type: "invalid_request_error", message: "max_tokens: Field required" } },
      400,
      "max_tokens: Field required",
    ],
    [529, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, 529, "Overloaded"],
  ])("answers an error %i of Google or of the model with the status of its kind", async (status, body, expected, message) => {
    await using proxy = await startWith();
    for (const isStream of [false, true]) {
      await (await proxy.post(caller.path, ask())).text();
      upstream.answerNext(json(status, body));
      const reply = await proxy.post(caller.path, ask({ stream: isStream }));
      expect((await expectError(reply, expected, protocol)).message).toBe(message);
    }
  });

  it("keeps no page in place of an error", async () => {
    await using proxy = await startWith();
    await (await proxy.post(caller.path, ask())).text();
    upstream.answerNext(html(404));
    expect((await expectError(await proxy.post(caller.path, ask()), 404, protocol)).message).not.toContain("<");
  });
});

describe("a provider of the protocol vertex", () => {
  const { path, request } = CALLERS.messages;
  const ask = request("hi", { model: MODEL });

  it("renews a token once for many calls", async () => {
    await using proxy = await startWith();
    const replies = await Promise.all(Array.from({ length: 20 }, () => proxy.post(path, ask)));
    expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(tokens).toBe(1);
  });

  it("sends a request again without the header anthropic-beta if it is refused (vercel/ai#4431)", async () => {
    await using proxy = await startWith();
    await (await proxy.post(path, ask)).text();
    const message = "Unexpected value(s) `prompt-caching-2024-07-31` for the `anthropic-beta` header.";
    upstream.answerNext(json(400, { type: "error", error: { type: "invalid_request_error", message } }));
    const reply = await proxy.post(path, ask, { "anthropic-beta": "prompt-caching-2024-07-31" });
    expect(reply.status).toBe(200);
    expect(
      calls()
        .slice(1)
        .map(({ headers }) => headers["anthropic-beta"]),
    ).toEqual(["prompt-caching-2024-07-31", undefined]);
  });

  it("answers 502 without a secret if there is no token, and tries again with the next call", async () => {
    await using proxy = await startWith();
    upstream.answerNext(json(400, { error: "invalid_grant", error_description: "of the account my-account@example" }));
    const { message } = await expectError(await proxy.post(path, ask), 502, "messages");
    expect(message).toMatch(/^Provider "vertex" could not get a token of Google \(\w+\)$/);
    expect((await proxy.post(path, ask)).status).toBe(200);
  });

  it("hides its token in what the upstream says", async () => {
    await using proxy = await startWith();
    await (await proxy.post(path, ask)).text();
    upstream.answerNext(json(401, { error: { code: 401, message: "Bad token ya29.token-number-1", status: "UNAUTHENTICATED" } }));
    expect((await expectError(await proxy.post(path, ask), 401, "messages")).message).toBe("Bad token ***");
  });

  it("cannot be led to another path by the name of a model", async () => {
    await using proxy = await startWith({ models: ["../../x", ".."] });
    for (const model of ["../../x", ".."]) await (await proxy.post(path, request("hi", { model }))).text();
    expect(calls().map(({ url }) => url)).toEqual([`${PUBLISHER}/..%2F..%2Fx:rawPredict`, `${PUBLISHER}/%2E%2E:rawPredict`]);
  });
});

/** Refuses what Vertex AI refuses: no token, a body with `model`, and a body without a version (docs.cloud.google.com, Claude models). */
const fakeVertex: Answer = async (exchange) => {
  const { request } = exchange;
  if (request.url === "/token") {
    tokens += 1;
    return json(200, { access_token: `ya29.token-number-${tokens}`, expires_in: 3600, token_type: "Bearer" })(exchange);
  }
  if (request.headers.authorization !== `Bearer ya29.token-number-${tokens}`)
    return json(401, {
      error: { code: 401, message: "Request had invalid authentication credentials.", status: "UNAUTHENTICATED" },
    })(exchange);
  const body = (await request.json()) as Record<string, unknown>;
  if ("model" in body || body["anthropic_version"] !== "vertex-2023-10-16")
    return json(400, {
      type: "error",
      error: { type: "invalid_request_error", message: "model: Extra inputs are not permitted" },
    })(exchange);
  const turn = echoTurn(readMessagesPrompt({ ...body, model: "claude" }));
  return request.url.endsWith(":streamRawPredict")
    ? events(writeMessageEvents(turn, "msg_vrtx_1"))(exchange)
    : json(200, writeMessage(turn, "msg_vrtx_1"))(exchange);
};

/** Google's address of tokens is fixed in its library: requests for tokens go to the fake instead. */
const toFake: typeof fetch = (input, init) => {
  const url = String(input instanceof Request ? input.url : input);
  return fetch(url.replace("https://oauth2.googleapis.com", new URL(upstream.baseUrl).origin), init);
};

function serviceAccount(): object {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return {
    type: "service_account",
    project_id: "my-project",
    private_key_id: "1",
    private_key: privateKey.export({ type: "pkcs8", format: "pem" }),
    client_email: "tests@my-project.iam.gserviceaccount.com",
    client_id: "1",
    token_uri: "https://oauth2.googleapis.com/token",
    universe_domain: "googleapis.com",
  };
}
