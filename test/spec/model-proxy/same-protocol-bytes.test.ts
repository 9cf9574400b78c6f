import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, SAME } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { compress, events, splitAt, stream, whole } from "../../harness/upstream-answers.ts";

const HOSTS = ["node", "fetch"] as const;

/** Valid requests that a JSON library would not write back unchanged. MODEL is replaced by a model of the provider. */
const REQUEST_BODIES: readonly (readonly [string, string])[] = [
  ["white space everywhere", ' \r\n\t{ "model" :\t"MODEL" ,\n\n "messages" : [ ] } \n '],
  [
    "numbers in every spelling",
    '{"model":"MODEL","a":1.0,"b":1e2,"c":12345678901234567890123,"d":-0,"e":1E+2,"f":0.1000,"g":1.7976931348623159e308}',
  ],
  ["duplicate keys", '{"x":1,"model":"MODEL","x":2,"messages":[{"role":"user","role":"user","content":"a","content":"b"}]}'],
  ["unknown fields", '{"model":"MODEL","vendor_extension":{"deep":[{"er":null}]},"messages":[]}'],
  ["escapes", '{"model":"MODEL","x":"\\u0041\\/\\ud83d\\ude00\\ud800 \\b\\f\\n\\r\\t\\"\\\\"}'],
  ["characters beyond ASCII", '{"model":"MODEL","ключ":"日本語 😀 \u2028\u2029\u007f"}'],
  ["a model spelled with escapes", '{"mod\\u0065l":"\\u004dODEL","messages":[]}'],
  ["a nested model before the real one", '{"nested":{"model":"nobody"},"text":"\\"model\\":\\"nobody\\"","model":"MODEL"}'],
  ["names of the prototype", '{"__proto__":{"model":"nobody"},"constructor":{"prototype":{}},"model":"MODEL"}'],
  ["the model last", '{"messages":[{"role":"user","content":"hello"}],"model":"MODEL"}'],
  ["keys in no order", '{"stream":false,"zeta":1,"alpha":2,"model":"MODEL","Model":"nobody"}'],
  ["a null stream", '{"model":"MODEL","stream":null}'],
];

describe.each(HOSTS)("same protocol, bytes unchanged (open points 2) on a %s host", (host) => {
  describe.each(SAME)("$caller", ({ caller, upstream: protocol }) => {
    const { path, request } = CALLERS[caller];
    let upstream: FakeUpstream;
    let proxy: ProxyApp;

    beforeAll(async () => {
      upstream = await startFakeUpstream();
      proxy = await startProxy({ host, providers: [{ protocol, upstream, models: ["echo-large", "MODEL", "\u004dODEL"] }] });
    });
    beforeEach(() => {
      upstream.reset();
      upstream.answerAll(whole(200, '{"ok":true}', { "content-type": "application/json" }));
    });
    afterAll(async () => {
      await proxy.close();
      await upstream.close();
    });

    it.each(REQUEST_BODIES)("the request's bytes go out as they came: %s", async (_name, body) => {
      const reply = await proxy.post(path, body);
      expect(reply.status).toBe(200);
      expect(await (await upstream.request()).text()).toBe(body);
    });

    it("a body that comes in pieces, cut anywhere, goes out as the same bytes", async () => {
      const body = Buffer.from(JSON.stringify({ ...request("日本語 😀".repeat(20)), tail: "x" }));
      for (const size of [1, 7, 64]) {
        upstream.reset();
        const reply = await proxy.call({
          path,
          headers: { "x-api-key": await proxy.token(), "content-type": "application/json" },
          body: pieces(body, size),
        });
        expect(reply.status).toBe(200);
        expect((await (await upstream.request()).bytes()).equals(body), `pieces of ${size}`).toBe(true);
      }
    });

    it("a body of a known length goes out with that length", async () => {
      const body = JSON.stringify(request());
      await proxy.post(path, body);
      const { headers } = await upstream.request();
      expect(headers["content-length"]).toBe(String(Buffer.byteLength(body)));
      expect(headers["transfer-encoding"]).toBeUndefined();
    });

    it("a compressed body goes out as it came, with its content-encoding", async () => {
      const body = gzipSync(JSON.stringify(request()));
      const reply = await proxy.call({
        path,
        headers: { "x-api-key": await proxy.token(), "content-type": "application/json", "content-encoding": "gzip" },
        body,
      });
      expect(reply.status).toBe(200);
      const sent = await upstream.request();
      expect(sent.headers["content-encoding"]).toBe("gzip");
      expect((await sent.bytes()).equals(body)).toBe(true);
    });

    it.each([
      ["JSON in an odd spelling", '\n{ "a" : 1.0, "a":1e2,"big":12345678901234567890 }\n', "application/json"],
      ["JSON with characters beyond ASCII", '{"x":"日本語 \\ud83d\\ude00"}', "application/json; charset=utf-8"],
      ["something that is no JSON", "hello", "text/plain"],
      ["bytes of any kind", Buffer.from([0, 255, 10, 13, 128]), "application/octet-stream"],
      ["nothing at all", "", "application/json"],
    ])("the answer comes back byte for byte: %s", async (_name, body, type) => {
      upstream.answerAll(whole(200, body, { "content-type": type }));
      const reply = await proxy.post(path, request());
      expect(reply.headers["content-type"]).toBe(type);
      expect((await reply.bytes()).equals(Buffer.from(body as string))).toBe(true);
    });

    it("an answer keeps its status of success", async () => {
      for (const status of [200, 201, 202]) {
        upstream.answerAll(whole(status, "{}", { "content-type": "application/json" }));
        expect((await proxy.post(path, request())).status).toBe(status);
      }
    });

    it("a stream comes back byte for byte: comments, odd spacing, CRLF, unknown events and fields", async () => {
      const text = [
        ": a comment\n\n",
        'event:   odd_one\ndata:{"type":"odd_one","x":1.0}\n\n',
        "retry: 5\nid: 7\r\ndata: first line\r\ndata: second line\r\n\r\n",
        "data\n\n",
        "\n\n\n",
        'data: {"ключ":"😀"}\n\n',
        "data: [DONE]\n\n: the end\n",
      ].join("");
      const bytes = Buffer.from(text);
      upstream.answerAll(events(splitAt(bytes, 5, 6, 40, 41, 99, bytes.length - 1)));
      const reply = await proxy.post(path, request("hello", { stream: true }));
      expect(reply.headers["content-type"]).toBe("text/event-stream");
      expect(await reply.text()).toBe(text);
    });

    it.each(["gzip", "br", "deflate"] as const)(
      "an answer compressed with %s comes back as those bytes, with its content-encoding",
      async (encoding) => {
        const body = compress(encoding, JSON.stringify({ text: "hello ".repeat(500) }));
        upstream.answerAll(whole(200, body, { "content-type": "application/json", "content-encoding": encoding }));
        const reply = await proxy.post(path, request(), { "accept-encoding": encoding });
        expect(reply.headers["content-encoding"]).toBe(encoding);
        expect((await reply.bytes()).equals(body)).toBe(true);
        expect((await upstream.request()).headers["accept-encoding"]).toBe(encoding);
      },
    );

    it("a compressed stream comes back as those bytes", async () => {
      const body = compress("gzip", 'data: {"x":1}\n\n'.repeat(100));
      upstream.answerAll(
        stream(splitAt(body, 10, 11, 30), { headers: { "content-type": "text/event-stream", "content-encoding": "gzip" } }),
      );
      const reply = await proxy.post(path, request("hello", { stream: true }), { "accept-encoding": "gzip" });
      expect(reply.headers["content-encoding"]).toBe("gzip");
      expect((await reply.bytes()).equals(body)).toBe(true);
    });

    it("the echo model's whole answer and stream are untouched and grammatical", async () => {
      upstream.reset();
      const answer = await proxy.post(path, request("say it back"));
      expect(CALLERS[caller].textOf(await answer.json())).toBe("echo: say it back");
      const streamed = await proxy.post(path, request("say it back", { stream: true }));
      CALLERS[caller].assertStream(await streamed.text());
    });
  });
});

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
