import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, expectError, PROTOCOLS, type Protocol, SAME } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";

/** By the caller's protocol: what open points 2 calls droppable, since it only tunes and no answer changes its meaning. */
const DROPPED: Readonly<Record<Protocol, readonly (readonly [field: string, more: object])[]>> = {
  messages: [
    ["top_k", { top_k: 5 }],
    ["service_tier", { service_tier: "auto" }],
    ["cache_control", { system: [{ type: "text", text: "be brief", cache_control: { type: "ephemeral" } }] }],
    ["vendor_extension", { vendor_extension: { a: 1 } }],
  ],
  "chat-completions": [
    ["seed", { seed: 7 }],
    ["store", { store: true }],
    ["service_tier", { service_tier: "auto" }],
    ["prompt_cache_key", { prompt_cache_key: "k" }],
    ["prediction", { prediction: { type: "content", content: "x" } }],
    ["vendor_extension", { vendor_extension: { a: 1 } }],
  ],
};

/** What would change the answer's meaning if it were dropped; the error must name it. */
const REFUSED: Readonly<Record<Protocol, readonly (readonly [names: string, more: object])[]>> = {
  messages: [
    ["mcp_servers", { mcp_servers: [{ type: "url", url: "https://mcp.example", name: "files" }] }],
    ["container", { container: "container_1" }],
    ["web_search", { tools: [{ type: "web_search_20250305", name: "web_search" }] }],
    ["code_execution", { tools: [{ type: "code_execution_20250522", name: "code_execution" }] }],
    ["bash", { tools: [{ type: "bash_20250124", name: "bash" }] }],
    ["messages.0", { messages: [{ role: "user", content: [{ type: "container_upload", file_id: "file_1" }] }] }],
  ],
  "chat-completions": [
    ["n", { n: 2 }],
    ["logprobs", { logprobs: true }],
    ["top_logprobs", { top_logprobs: 3 }],
    ["logit_bias", { logit_bias: { "50256": -100 } }],
    ["modalities", { modalities: ["text", "audio"], audio: { voice: "alloy", format: "mp3" } }],
    ["web_search_options", { web_search_options: {} }],
    ["response_format", { response_format: { type: "grammar" } }],
    ["temperature", { temperature: 1.5 }],
    [
      "messages.0",
      { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: { data: "AA==", format: "wav" } }] }] },
    ],
  ],
};

describe.each(["node", "fetch"] as const)("what has no counterpart (open points 2) on a %s host", (host) => {
  describe.each(PROTOCOLS)("%s caller, converted", (caller) => {
    const protocol: Protocol = caller === "messages" ? "chat-completions" : "messages";
    const { path, request, textOf, assertStream } = CALLERS[caller];
    let upstream: FakeUpstream;
    let proxy: ProxyApp;

    beforeAll(async () => {
      upstream = await startFakeUpstream();
      proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
    });
    beforeEach(() => upstream.reset());
    afterAll(async () => {
      await proxy.close();
      await upstream.close();
    });

    it("nothing dropped: no x-portico-dropped", async () => {
      expect((await proxy.post(path, request())).headers["x-portico-dropped"]).toBeUndefined();
    });

    it.each(DROPPED[caller])("%s is dropped and named, whole and streamed", async (field, more) => {
      const reply = await proxy.post(path, request("hello", more));
      expect(reply.status).toBe(200);
      expect(reply.headers["x-portico-dropped"]?.split(", ")).toContain(field);
      expect(textOf(await reply.json())).toBe("echo: hello");
      expect(await (await upstream.request()).text()).not.toContain(`"${field}"`);
      const streamed = await proxy.post(path, request("hello", { ...more, stream: true }));
      expect(streamed.headers["x-portico-dropped"]?.split(", ")).toContain(field);
      assertStream(await streamed.text());
    });

    it("several drops are all named, each once", async () => {
      const all = Object.assign({}, ...DROPPED[caller].map(([, more]) => more)) as object;
      const dropped = (await proxy.post(path, request("hello", all))).headers["x-portico-dropped"]?.split(", ") ?? [];
      expect(dropped.sort()).toEqual(DROPPED[caller].map(([field]) => field).sort());
    });

    it("null is as good as absent, and is not named", async () => {
      const nulls = Object.fromEntries(
        [...DROPPED[caller], ...REFUSED[caller]].map(([, more]) => [Object.keys(more)[0] ?? "", null]),
      );
      const { messages: _messages, system: _system, ...optional } = nulls;
      const reply = await proxy.post(path, request("hello", optional));
      expect([reply.status, reply.headers["x-portico-dropped"]]).toEqual([200, undefined]);
    });

    it.each(REFUSED[caller])("%s is refused with 400 that names it, and nothing goes upstream", async (names, more) => {
      for (const stream of [false, true]) {
        const error = await expectError(await proxy.post(path, request("hello", { ...more, stream })), 400, caller);
        expect(error.type).toBe("invalid_request_error");
        expect(error.message).toContain(names);
      }
      expect(upstream.requests).toHaveLength(0);
    });

    it.each([
      ["messages", { messages: "hello" }],
      ["messages", { messages: undefined }],
      ["messages.0", { messages: [5] }],
      ["messages.0.role", { messages: [{ role: "king", content: "x" }] }],
      ["messages.0.content", { messages: [{ role: "user", content: 5 }] }],
      ["tools", { tools: {} }],
      ["tools.0", { tools: [null] }],
      ["temperature", { temperature: "hot" }],
    ])("a %s of the wrong shape is refused with 400 that names it", async (names, more) => {
      const error = await expectError(await proxy.post(path, request("hello", more)), 400, caller);
      expect(error.message).toContain(names);
      expect(upstream.requests).toHaveLength(0);
    });

    it("a dropped field's name cannot forge a header", async () => {
      const names = ["a\r\nx-forged: 1", "b, top_secret", "c\u0000", "ключ", "x".repeat(10_000), "__proto__"];
      const body = `{${names.map((name) => `${JSON.stringify(name)}:1`).join(",")},${JSON.stringify(request()).slice(1)}`;
      const reply = await proxy.post(path, body);
      expect(reply.status).toBe(200);
      expect(reply.headers["x-forged"]).toBeUndefined();
      expect(reply.headers["x-portico-dropped"]?.length).toBeLessThan(8_192);
      expect(reply.headers["x-portico-dropped"]).toMatch(/^[\x20-\x7e]*$/);
    });
  });

  describe.each(SAME)("$caller passed through", ({ caller, upstream: protocol }) => {
    it("nothing is dropped or refused: it is the upstream's to judge", async () => {
      await using upstream = await startFakeUpstream();
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      for (const [, more] of [...DROPPED[caller], ...REFUSED[caller]]) {
        const reply = await proxy.post(CALLERS[caller].path, CALLERS[caller].request("hello", more));
        expect([reply.status, reply.headers["x-portico-dropped"]]).toEqual([200, undefined]);
      }
    });
  });
});
