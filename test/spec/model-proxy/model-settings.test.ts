import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { json } from "../../harness/upstream-answers.ts";

const MODEL = {
  id: "large",
  upstream: "vendor/large-2026",
  aliases: ["best"],
  parameters: { defaults: { temperature: 0.3 }, fixed: { seed: 7, user: null } },
  headers: { "X-Team": "house", "x-api-token": "a-secret-of-the-model" },
};

describe("the settings of a model", () => {
  let upstream: FakeUpstream;
  let proxy: ProxyApp;
  beforeAll(async () => {
    upstream = await startFakeUpstream();
    proxy = await startProxy({ providers: [{ protocol: "chat-completions", upstream, id: "chat", models: ["small", MODEL] }] });
  });
  beforeEach(() => upstream.reset());
  afterAll(async () => {
    await proxy.close();
    await upstream.close();
  });
  const ask = (path: string, body: object) => proxy.post(path, body);
  const sent = async () => JSON.parse(await (await upstream.request()).text());

  it("an alias is a model name of the provider (4.1)", async () => {
    const { data } = JSON.parse(
      await (await proxy.call({ path: "/v1/models", headers: { authorization: `Bearer ${await proxy.token()}` } })).text(),
    );
    expect(data.map(({ id }: { id: string }) => id)).toEqual(["small", "large", "best"]);
  });

  it.each(["large", "best"])("a call of %s has the upstream's name, and the caller's in the answer", async (model) => {
    const reply = await ask("/v1/messages", CALLERS.messages.request("hello", { model }));
    expect(JSON.parse(await reply.text())).toMatchObject({ model });
    expect(await sent()).toMatchObject({ model: "vendor/large-2026" });
  });

  it.each([
    ["/v1/messages", CALLERS.messages],
    ["/v1/chat/completions", CALLERS["chat-completions"]],
  ] as const)(
    "parameters are set for callers at %s: defaults where they say nothing, fixed ones always",
    async (path, caller) => {
      await ask(path, caller.request("hello", { model: "large", user: "me", seed: 1 }));
      const first = await sent();
      expect(first).toMatchObject({ temperature: 0.3, seed: 7 });
      expect(first).not.toHaveProperty("user");
      upstream.reset();
      await ask(path, caller.request("hello", { model: "large", temperature: 0.9 }));
      expect(await sent()).toMatchObject({ temperature: 0.9 });
    },
  );

  it("headers of a model are added to its calls alone", async () => {
    await ask("/v1/chat/completions", CALLERS["chat-completions"].request("hello", { model: "large" }));
    expect((await upstream.request()).headers).toMatchObject({ "x-team": "house", "x-api-token": "a-secret-of-the-model" });
    upstream.reset();
    await ask("/v1/chat/completions", CALLERS["chat-completions"].request("hello", { model: "small" }));
    expect((await upstream.request()).headers).not.toHaveProperty("x-team");
  });

  it("a secret header of a model stands in no error of the upstream", async () => {
    upstream.answerNext(json(500, { error: { message: "Bad token a-secret-of-the-model", type: "server_error" } }));
    const reply = await ask("/v1/chat/completions", CALLERS["chat-completions"].request("hello", { model: "large" }));
    expect(await reply.text()).toContain("Bad token ***");
  });

  it("a body of the same protocol for a model without parameters passes byte for byte", async () => {
    const body = `{ "model": "small",\n "messages": [{"role":"user","content":"h\\u0069"}], "seed": 12345678901234567890 }`;
    await proxy.post("/v1/chat/completions", body);
    expect(await (await upstream.request()).text()).toBe(body);
  });

  it("a number that JSON keeps exactly stays exact beside parameters", async () => {
    await proxy.post(
      "/v1/chat/completions",
      `{"model":"large","messages":[{"role":"user","content":"hi"}],"metadata":{"n":12345678901234567890}}`,
    );
    expect(await (await upstream.request()).text()).toContain("12345678901234567890");
  });
});
