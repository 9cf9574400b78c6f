import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, COMBINATIONS, expectError, type Protocol } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import type { Answer } from "../../harness/upstream-exchange.ts";
import type { Reply } from "../../harness/http-call.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { compress, empty, events, html, json, whole } from "../../harness/upstream-answers.ts";

/** Each status with the type that both protocols publish for it, and the type that an upstream's own body carries. */
const STATUSES = [
  { status: 400, messages: "invalid_request_error", chat: "invalid_request_error" },
  { status: 401, messages: "authentication_error", chat: "authentication_error" },
  { status: 403, messages: "permission_error", chat: "permission_error" },
  { status: 404, messages: "not_found_error", chat: "not_found_error" },
  { status: 413, messages: "request_too_large", chat: "invalid_request_error" },
  { status: 429, messages: "rate_limit_error", chat: "rate_limit_error" },
  { status: 500, messages: "api_error", chat: "server_error" },
  { status: 529, messages: "overloaded_error", chat: "server_error" },
] as const;

const KEPT = {
  "retry-after": "7",
  "retry-after-ms": "7000",
  "anthropic-ratelimit-requests-remaining": "3",
  "x-ratelimit-remaining-tokens": "4",
  "request-id": "req_upstream",
  "x-request-id": "req_upstream",
  "x-should-retry": "false",
};

const bodies: Readonly<Record<string, (each: (typeof STATUSES)[number], upstream: Protocol) => Answer>> = {
  "JSON of its protocol": (each, upstream) => json(each.status, errorOf(upstream, each), KEPT),
  "JSON of the other protocol": (each, upstream) =>
    json(each.status, errorOf(upstream === "messages" ? "chat-completions" : "messages", each), KEPT),
  "JSON of neither protocol": ({ status }) => json(status, { detail: "words of the upstream" }, KEPT),
  "compressed JSON of its protocol": (each, upstream) =>
    whole(each.status, compress("gzip", JSON.stringify(errorOf(upstream, each))), {
      ...KEPT,
      "content-type": "application/json",
      "content-encoding": "gzip",
    }),
  "an HTML page": ({ status }) => html(status, KEPT),
  "plain text": ({ status }) => whole(status, "words of the upstream", { ...KEPT, "content-type": "text/plain" }),
  nothing: ({ status }) => empty(status, KEPT),
};

describe.each(["node", "fetch"] as const)("errors of the upstream (open points 2; 7.1) on a %s host", (host) => {
  describe.each(COMBINATIONS)("$caller caller, $upstream upstream", ({ caller, upstream: protocol }) => {
    const { path, request } = CALLERS[caller];
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

    describe.each(Object.keys(bodies))("with %s", (kind) => {
      it.each(STATUSES)("$status keeps its status and headers, in the caller's protocol with the right type", async (each) => {
        for (const isStream of [false, true]) {
          upstream.answerNext(bodies[kind]!(each, protocol));
          const reply = await proxy.post(path, request("hello", { stream: isStream }));
          expect(reply.headers).toMatchObject(KEPT);
          const error = await expectUpstreamError(reply, each.status, caller);
          expect(error.type).toBe(caller === "messages" ? each.messages : each.chat);
          if (kind.includes("JSON") || kind === "plain text") expect(error.message).toBe("words of the upstream");
          else expect(error.message).not.toMatch(/[<>]/);
        }
      });
    });

    it("a wait that only Google's error names becomes retry-after (googleapis/python-genai#1875)", async () => {
      upstream.answerNext(json(429, [{ error: { message: "Quota", details: [{ retryDelay: "26.4s" }] } }]));
      const reply = await proxy.post(path, request("hello"));
      await reply.text();
      expect([reply.status, reply.headers["retry-after"]]).toEqual([429, "27"]);
    });

    it("a relayed 401 is told from the proxy's own: in the caller's shape, with the upstream's words", async () => {
      upstream.answerNext(json(401, { error: { message: "words of the upstream", type: "authentication_error" } }));
      const relayed = await (await proxy.post(path, request())).json();
      const own = await (await proxy.post(path, request(), { authorization: "Bearer service_wrong" })).json();
      expect(relayed).toMatchObject({ error: { message: "words of the upstream" } });
      expect(own).toEqual({
        type: "error",
        error: { type: "authentication_error", message: expect.not.stringContaining("upstream") },
      });
      expect("type" in (relayed as object)).toBe(caller === "messages");
    });

    it.skipIf(caller !== protocol)(
      "an error of the caller's own protocol keeps the fields that its provider gave it",
      async () => {
        const body = { ...errorOf(protocol, STATUSES[0]), request_id: "req_1", vendor: { more: 1.5 } };
        upstream.answerNext(json(400, body));
        expect(await (await proxy.post(path, request())).json()).toEqual(body);
      },
    );

    it.each([
      [
        "a vendor's validation faults inside the message",
        { object: "error", message: { detail: [{ loc: ["body", "top_k"], msg: "Extra inputs are not permitted", input: 5 }] } },
        "top_k: Extra inputs are not permitted",
      ],
      [
        "a server framework's validation faults",
        { detail: [{ type: "missing", loc: ["body", "messages", 0, "content"], msg: "Field required", input: {} }] },
        "messages.0.content: Field required",
      ],
    ])("the sentence is told, whichever way: %s", async (_name, body, sentence) => {
      upstream.answerNext(json(422, body));
      const error = await expectUpstreamError(await proxy.post(path, request()), 422, caller);
      expect(error).toMatchObject({ type: "invalid_request_error", message: sentence });
    });

    it.skipIf(caller === protocol)("what the provider behind a gateway said is told, whole and in a stream", async () => {
      const error = {
        message: "Provider returned error",
        code: 400,
        metadata: { raw: JSON.stringify({ error: { message: "prompt is too long" } }), provider_name: "Behind" },
      };
      upstream.answerNext(json(400, { error }));
      expect(await expectUpstreamError(await proxy.post(path, request()), 400, caller)).toMatchObject({
        message: "Provider returned error: prompt is too long",
      });
      const event = JSON.stringify(protocol === "messages" ? { type: "error", error } : { error });
      upstream.answerNext(events([`${protocol === "messages" ? "event: error\n" : ""}data: ${event}\n\n`]));
      const text = await (await proxy.post(path, request("hello", { stream: true }))).text();
      CALLERS[caller].assertBrokenStream(text);
      expect(text).toContain("Provider returned error: prompt is too long");
    });

    it("a huge error is cut off, not swallowed whole", async () => {
      upstream.answerNext(json(500, { error: { message: "words ".repeat(1_000_000), type: "server_error" } }));
      const reply = await proxy.post(path, request());
      expect(reply.status).toBe(500);
      const text = await reply.text();
      expect(Buffer.byteLength(text)).toBeLessThan(2 * 1024 * 1024);
      expect(JSON.parse(text)).toMatchObject({ error: { message: expect.any(String) } });
    });

    it("an error inside a stream ends it in the caller's protocol, without a normal end", async () => {
      const error = errorOf(protocol, { status: 529, messages: "overloaded_error", chat: "server_error" });
      upstream.answerNext(events([`${protocol === "messages" ? "event: error\n" : ""}data: ${JSON.stringify(error)}\n\n`]));
      const reply = await proxy.post(path, request("hello", { stream: true }));
      const text = await reply.text();
      if (caller !== protocol) CALLERS[caller].assertBrokenStream(text);
      expect(text).toContain("words of the upstream");
    });

    it("an upstream's 3xx becomes 502", async () => {
      for (const status of [301, 302, 304, 307]) {
        upstream.answerNext(empty(status, { location: "http://elsewhere.invalid/" }));
        await expectError(await proxy.post(path, request()), 502, caller);
      }
    });
  });
});

function errorOf(
  protocol: Protocol,
  { messages, chat }: { readonly messages: string; readonly chat: string; readonly status: number },
): object {
  if (protocol === "messages") return { type: "error", error: { type: messages, message: "words of the upstream" } };
  return { error: { message: "words of the upstream", type: chat, param: null, code: null } };
}

/** The caller's protocol's shape; a provider of the same protocol may say more in it. */
async function expectUpstreamError(
  reply: Reply,
  status: number,
  protocol: Protocol,
): Promise<{ readonly type: string; readonly message: string }> {
  const body = (await reply.json()) as { type?: string; error: { type: string; message: string } };
  expect(reply.status).toBe(status);
  expect(reply.headers["content-type"]).toMatch(/^application\/json/);
  expect(reply.headers["content-encoding"]).toBeUndefined();
  expect(body.type).toBe(protocol === "messages" ? "error" : undefined);
  expect(body.error).toMatchObject({ type: expect.any(String), message: expect.stringMatching(/./) });
  return body.error;
}
