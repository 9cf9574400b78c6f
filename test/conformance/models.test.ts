import { inspect } from "node:util";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { demo } from "@portico/adapters/models/demo";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { responsesHttp } from "@portico/adapters/models/responses-http";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type Adapter, ports, Secret } from "@portico/core";
import { afterEach, describe, expect, it } from "vitest";
import { createGate } from "../harness/gate.ts";
import { events, json } from "../harness/upstream-answers.ts";
import { CREDENTIAL, createSubjects, failureOf, HEADER_SECRET, readBytes, sampleRequest } from "./models/subject.ts";
import { type MakeModels, modelsConformance, type ProviderSetting } from "./models.ts";
import { openAdapter } from "./open-adapter.ts";

const FRESH_MS = 5 * 60_000;

function overHttp(adapter: (setting: ProviderSetting) => Adapter<typeof ports.models>): MakeModels {
  return (setting) => {
    const clock = createManualClock();
    return { adapter: adapter(setting), others: [manualClock({ clock }), memoryTelemetry({})], pass: clock.advance };
  };
}

modelsConformance("messages-http", overHttp(messagesHttp), { upstream: "http", discovers: { freshMs: FRESH_MS } });
modelsConformance("chat-http", overHttp(chatHttp), { upstream: "http", discovers: { freshMs: FRESH_MS } });
modelsConformance(
  "chat-http over fetch",
  overHttp((setting) => chatHttp({ ...setting, fetch })),
  { upstream: "http", discovers: { freshMs: FRESH_MS }, over: "fetch" },
);
modelsConformance("responses-http", overHttp(responsesHttp), { upstream: "converted", discovers: { freshMs: FRESH_MS } });
modelsConformance("demo", () => ({ adapter: demo({}), pass: async () => {} }), { upstream: "none" });

/** What HTTP itself needs, beside what a call and the provider's configuration say. */
const TRANSPORT = ["connection", "content-length", "host"];

describe("models/messages-http", () => {
  const subjects = createSubjects(overHttp(messagesHttp));
  afterEach(() => subjects.close());

  it("asks at /messages with its key in x-api-key and a version, and with nothing else of its own", async () => {
    const { send, upstream } = await subjects.open();
    await send({ headers: { "x-caller": "1" } });
    const { url, headers } = await upstream.request();
    expect(url).toBe("/v1/messages");
    expect(headers).toMatchObject({ "x-api-key": CREDENTIAL, "anthropic-version": "2023-06-01" });
    const own = ["anthropic-version", "x-api-key", "x-caller", "x-vendor-token"];
    expect(Object.keys(headers).sort()).toEqual([...TRANSPORT, ...own].sort());
  });

  it("gives an answer that arrived in one piece as `whole`, and one that goes on as a stream", async () => {
    const { send, upstream } = await subjects.open();
    const rest = createGate();
    upstream.answerNext(json(200, { ok: true }), events(["data: 1\n\n", rest.opened, "data: 2\n\n"]));
    expect((await send()).whole?.toString("utf8")).toBe('{"ok":true}');
    const { whole, body } = await send();
    expect(whole).toBeUndefined();
    rest.open();
    expect((await readBytes(body)).toString("utf8")).toBe("data: 1\n\ndata: 2\n\n");
  });

  it("uses the caller's version if the call names one", async () => {
    const { send, upstream } = await subjects.open();
    await send({ headers: { "anthropic-version": "2024-01-01", "anthropic-beta": "a-1,b-2" } });
    expect((await upstream.request()).headers).toMatchObject({ "anthropic-version": "2024-01-01", "anthropic-beta": "a-1,b-2" });
  });

  it("follows the pages of the list of models", async () => {
    const { provider, upstream } = await subjects.open({ setting: { models: "discover" } });
    upstream.answerNext(
      json(200, { data: [{ id: "a" }, { id: "b/1" }], has_more: true, first_id: "a", last_id: "b/1" }),
      json(200, { data: [{ id: "c" }], has_more: true, first_id: "c", last_id: "c" }),
      json(200, { data: [{ id: "d" }], has_more: false, first_id: "d", last_id: "d" }),
    );
    expect(await provider.listModels()).toEqual(["a", "b/1", "c", "d"]);
    expect(upstream.requests.map(({ url }) => url)).toEqual(["/v1/models", "/v1/models?after_id=b%2F1", "/v1/models?after_id=c"]);
    for (const { headers } of upstream.requests) {
      expect(headers).toMatchObject({
        "x-api-key": CREDENTIAL,
        "anthropic-version": "2023-06-01",
        "x-vendor-token": HEADER_SECRET,
      });
    }
  });

  it("has no list when a page of it is missing", async () => {
    const { provider, upstream } = await subjects.open({ setting: { models: "discover" } });
    upstream.answerNext(json(200, { data: [{ id: "a" }], has_more: true, last_id: "a" }), json(500, {}));
    expect(await failureOf(provider.listModels())).toBeInstanceOf(ports.ModelUnreachable);
  });

  it("does not follow a list without end for ever", async () => {
    const { provider, upstream } = await subjects.open({ setting: { models: "discover" } });
    upstream.answerAll(json(200, { data: [{ id: "a" }], has_more: true, last_id: "a" }));
    expect(await provider.listModels()).toEqual(["a"]);
    expect(upstream.requests.length).toBeLessThanOrEqual(50);
  });
});

describe("models/chat-http", () => {
  const subjects = createSubjects(overHttp(chatHttp));
  afterEach(() => subjects.close());

  it("asks at /chat/completions with its key as a bearer token, and with nothing else of its own", async () => {
    const { send, upstream } = await subjects.open();
    await send({ headers: { "x-caller": "1" } });
    const { url, headers } = await upstream.request();
    expect(url).toBe("/v1/chat/completions");
    expect(headers["authorization"]).toBe(`Bearer ${CREDENTIAL}`);
    expect(Object.keys(headers).sort()).toEqual([...TRANSPORT, "authorization", "x-caller", "x-vendor-token"].sort());
  });

  it("sends requests without a key if it has no key", async () => {
    const { send, upstream } = await subjects.open({ setting: { credential: undefined as unknown as Secret } });
    await send();
    expect((await upstream.request()).headers).not.toHaveProperty("authorization");
  });

  it("hides a credential in a custom header, with its scheme and without", async () => {
    const { provider } = await subjects.open({ setting: { headers: { Authorization: "Bearer other-secret-0815" } } });
    expect(provider.redact("other-secret-0815 and Bearer other-secret-0815")).not.toContain("other-secret-0815");
  });
});

describe("models/chat-http over fetch", () => {
  const calls: string[] = [];
  const noted: typeof fetch = (url, init) => {
    calls.push(`${init?.method} ${String(url)}`);
    return fetch(url, init);
  };
  const subjects = createSubjects(overHttp((setting) => chatHttp({ ...setting, fetch: noted })));
  afterEach(() => subjects.close());

  it("sends calls and the question for models with the given function, and asks for answers without an encoding", async () => {
    const { provider, send, upstream } = await subjects.open({ setting: { models: "discover" } });
    await provider.listModels();
    await send({ headers: { "accept-encoding": "gzip" } });
    expect(calls).toEqual([`GET ${upstream.baseUrl}/models`, `POST ${upstream.baseUrl}/chat/completions`]);
    expect(upstream.requests.map(({ headers }) => headers["accept-encoding"])).toEqual(["identity", "identity"]);
  });

  it("repeats the value of an invalid header nowhere, not even in the cause of its error", async () => {
    const { send, upstream } = await subjects.open({ setting: { credential: new Secret("two\nlines-of-a-key") } });
    const error = await failureOf(send());
    expect(error).toBeInstanceOf(ports.ModelUnreachable);
    expect(inspect(error)).not.toContain("lines-of-a-key");
    expect(upstream.requests).toHaveLength(0);
  });
});

describe.each([
  ["messages-http", messagesHttp, "/messages"],
  ["chat-http", chatHttp, "/chat/completions"],
  ["responses-http", responsesHttp, "/responses"],
] as const)("models/%s", (_name, adapter, path) => {
  const subjects = createSubjects(overHttp(adapter));
  afterEach(() => subjects.close());

  it.each(["", "/", "//"])("takes a base URL that ends with %j, and one with any path", async (end) => {
    const own = await subjects.open();
    const { send, upstream } = own;
    const { port: moved, close } = await openAdapter(
      adapter({ id: "moved", type: "t", baseUrl: `${new URL(upstream.baseUrl).origin}/a/b%20c/v9${end}`, models: ["m"] }),
      [manualClock({}), memoryTelemetry({})],
    );
    upstream.answerAll(json(200, {}));
    await send();
    await moved.send({ headers: {}, query: "", body: sampleRequest(moved) }, new AbortController().signal);
    await close();
    expect(upstream.requests.map(({ url }) => url)).toEqual([`/v1${path}`, `/a/b%20c/v9${path}`]);
  });

  it.each([
    "",
    "api.example/v1",
    "ftp://api.example/v1",
    "file:///v1",
    "https://",
    "https://user:hidden-word@api.example/v1",
    "https://api.example/v1?key=hidden-word",
    "https://api.example/v1#hidden-word",
  ])("refuses the base URL %j at the start, names the provider, and does not repeat it", async (baseUrl) => {
    const error = await failureOf(
      openAdapter(adapter({ id: "main", type: "t", baseUrl, models: ["m"] }), [manualClock({}), memoryTelemetry({})]),
    );
    expect(String(error)).toMatch(/"main".*baseUrl/);
    expect(String(error)).not.toContain("hidden-word");
  });

  it("tells a header that cannot be sent from an upstream that is down, without repeating it", async () => {
    const { send, upstream } = await subjects.open({ setting: { credential: new Secret("two\nlines-of-a-key") } });
    const error = await failureOf(send());
    expect(error).toBeInstanceOf(ports.ModelUnreachable);
    expect(String(error)).not.toContain("lines-of-a-key");
    expect(upstream.requests).toHaveLength(0);
  });
});
