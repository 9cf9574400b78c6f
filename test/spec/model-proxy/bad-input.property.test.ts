import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CALLERS, COMBINATIONS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import type { Call, Reply } from "../../harness/http-call.ts";
import { propertyRuns } from "../../harness/property-runs.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";

/** Bounds each property in time as well as in runs; what is left out is left out, and never a failure. */
const BOUND = { numRuns: propertyRuns(150), interruptAfterTimeLimit: 1_000, markInterruptAsFailure: false };

const spellings = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("\ud800", "\udfff\ud800", "__proto__", "constructor", "toString", "\u0000", "service_x", "a\r\nb: c"),
);
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(null, true, false, 0, -0, 1e308, 1e-308, 2 ** 53, ""),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    spellings,
    fc.array(tie("json"), { maxLength: 5 }),
    fc.dictionary(spellings, tie("json"), { maxKeys: 5 }),
  ),
}));

/** Names that a request of either protocol may have: junk at these reaches deeper than junk at others. */
const FIELDS = [
  "messages",
  "system",
  "tools",
  "tool_choice",
  "functions",
  "function_call",
  "stop",
  "stop_sequences",
  "max_tokens",
  "max_completion_tokens",
  "temperature",
  "top_p",
  "top_k",
  "thinking",
  "reasoning_effort",
  "output_config",
  "response_format",
  "metadata",
  "user",
  "n",
  "logprobs",
  "stream_options",
  "parallel_tool_calls",
  "stream",
];
const BLOCKS = [
  "text",
  "image",
  "image_url",
  "document",
  "file",
  "tool_use",
  "tool_result",
  "thinking",
  "redacted_thinking",
  "refusal",
  "input_audio",
];
const part = fc.record(
  { type: fc.constantFrom(...BLOCKS), text: json, source: json, image_url: json, id: json, input: json, content: json },
  { requiredKeys: ["type"] },
);
const turn = fc.record(
  {
    role: fc.constantFrom("user", "assistant", "system", "developer", "tool", "function"),
    content: fc.oneof(json, fc.array(part, { maxLength: 4 })),
    tool_calls: fc.oneof(json, fc.array(fc.record({ id: json, type: json, function: json }), { maxLength: 3 })),
    tool_call_id: json,
    name: json,
  },
  { requiredKeys: ["role", "content"] },
);
const nearlyGood = fc.record({
  field: fc.constantFrom(...FIELDS),
  junk: json,
  messages: fc.option(fc.array(turn, { maxLength: 4 })),
});

describe("bad input is a clear error or an answer, and the process stays up (4.1)", () => {
  describe.each(COMBINATIONS)("$caller caller, $upstream upstream", ({ caller, upstream: protocol }) => {
    const { path, request, textOf } = CALLERS[caller];
    let upstream: FakeUpstream;
    let proxy: ProxyApp;
    let token: string;

    beforeAll(async () => {
      upstream = await startFakeUpstream();
      proxy = await startProxy({ providers: [{ protocol, upstream }] });
      token = await proxy.token();
    });
    afterAll(async () => {
      await proxy.close();
      await upstream.close();
    });

    const send = (body: NonNullable<Call["body"]>, headers: Call["headers"] = {}) =>
      proxy.call({ path, headers: { "content-type": "application/json", "x-api-key": token, ...headers }, body });
    const stillWorks = async () => {
      const reply = await send(JSON.stringify(request("still there")));
      expect(textOf(await reply.json())).toBe("echo: still there");
      upstream.reset();
    };
    /** An answer, or an error of the caller's making with a sentence: never a 500, never silence. */
    const expectClear = async (reply: Reply, isStream = false) => {
      const text = await reply.text();
      expect([200, 400], text).toContain(reply.status);
      if (reply.status === 400)
        expect(JSON.parse(text)).toMatchObject({ error: { message: expect.stringMatching(/./), type: "invalid_request_error" } });
      else if (isStream) CALLERS[caller].assertStream(text);
    };

    it("any JSON whatsoever", async () => {
      await fc.assert(
        fc.asyncProperty(json, async (body) => expectClear(await send(JSON.stringify(body) ?? ""))),
        BOUND,
      );
      await stillWorks();
    });

    it("any bytes whatsoever", async () => {
      const bytes = fc.uint8Array({ maxLength: 200 });
      await fc.assert(
        fc.asyncProperty(bytes, async (body) => expectClear(await send(body))),
        BOUND,
      );
      await stillWorks();
    });

    it("a good request with junk in one field, whole and streamed", async () => {
      const property = fc.asyncProperty(nearlyGood, fc.boolean(), async ({ field, junk, messages }, stream) => {
        const body: Record<string, unknown> = { ...request("hello", { stream }), ...(messages && { messages }), [field]: junk };
        await expectClear(await send(JSON.stringify(body)), body.stream === true);
      });
      await fc.assert(property, BOUND);
      await stillWorks();
    });

    it("a good request with one byte changed, or cut anywhere", async () => {
      const good = Buffer.from(JSON.stringify(request("grüße 😀", { tools: [], metadata: {} })));
      const spot = fc.record({ at: fc.nat(good.length - 1), byte: fc.nat(255), cut: fc.boolean() });
      const property = fc.asyncProperty(spot, async ({ at, byte, cut }) => {
        const body = cut ? good.subarray(0, at) : Buffer.from(good);
        if (!cut) body[at] = byte;
        await expectClear(await send(body));
      });
      await fc.assert(property, BOUND);
      await stillWorks();
    });

    it("any headers whatsoever", async () => {
      const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/).filter((each) => !REFUSED_BY_HTTP.has(each));
      const value = fc.oneof(
        fc.stringMatching(/^[\x21-\x7e\x80-\xff][\x20-\x7e\x80-\xff]{0,60}$/),
        fc.constantFrom("gzip", "identity", "0", "*/*", "service_x"),
      );
      const headers = fc.dictionary(fc.oneof(name, fc.constantFrom(...WELL_KNOWN)), value, { maxKeys: 6 });
      const property = fc.asyncProperty(headers, async (each) => {
        const reply = await send(JSON.stringify(request()), each);
        expect([200, 400, 401, 415], JSON.stringify(each)).toContain(reply.status);
        await reply.text();
      });
      await fc.assert(property, BOUND);
      await stillWorks();
    });

    it.each([
      ["100,000 open arrays", `{"model":"echo-large","x":${"[".repeat(100_000)}`, 400],
      ["100,000 nested arrays", `{"model":"echo-large","x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, 400],
      ["100,000 nested objects", `{"model":"echo-large","x":${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}}`, 400],
      ["a key of 4 MB", `{"${"k".repeat(4_000_000)}":1,"model":"echo-large"}`, undefined],
      ["a model of 4 MB", `{"model":"${"m".repeat(4_000_000)}"}`, 400],
      ["a number of 1 MB", `{"model":"echo-large","n":${"9".repeat(1_000_000)}}`, undefined],
      ["4 MB of white space", `{"model":"echo-large"${" ".repeat(4_000_000)}}`, undefined],
      ["200,000 duplicate keys", `{"model":"echo-large"${',"a":1'.repeat(200_000)}}`, undefined],
    ])("%s", async (_name, body, status) => {
      const reply = await send(body);
      if (status !== undefined) expect(reply.status).toBe(status);
      await expectClear(reply);
      await stillWorks();
    });

    it.each([
      ["plain JSON", "gzip", () => Buffer.from("{}")],
      ["a gzip cut short", "gzip", () => gzipSync(JSON.stringify(request())).subarray(0, 40)],
      [
        "a gzip with garbage after it",
        "gzip",
        () => Buffer.concat([gzipSync(JSON.stringify(request())), Buffer.from("garbage")]),
      ],
      ["a gzip within a gzip", "gzip", () => gzipSync(gzipSync(JSON.stringify(request())))],
      ["a gzip", "br", () => gzipSync(JSON.stringify(request()))],
      ["nothing", "gzip", () => Buffer.alloc(0)],
    ])("%s that says it is %s is 400", async (_name, encoding, body) => {
      await expectClear(await send(body(), { "content-encoding": encoding }));
      await stillWorks();
    });

    it("an unknown encoding is 415", async () => {
      expect((await send(JSON.stringify(request()), { "content-encoding": "unheard-of" })).status).toBe(415);
    });

    it("a small body that unfolds to more than 256 MiB is 413", async () => {
      expect((await send((bomb ??= gzipBomb()), { "content-encoding": "gzip" })).status).toBe(413);
      await stillWorks();
    });
  });
});

let bomb: Buffer | undefined;

/** The parts of a gzip may be compressed apart: this one's are the same bytes, 32 times. */
function gzipBomb(): Buffer {
  const block = gzipSync(Buffer.alloc(8 * 1024 * 1024, "a"));
  const blocks = Array.from({ length: 32 }, () => block);
  return Buffer.concat([gzipSync('{"model":"echo-large","x":"'), ...blocks, gzipSync('"}')]);
}

/** Not the proxy's affair: HTTP itself refuses or reads these, or they are what a call needs. */
const REFUSED_BY_HTTP = new Set([
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "expect",
  "upgrade",
  "trailer",
  "te",
  "keep-alive",
]);
const WELL_KNOWN = [
  "x-api-key",
  "authorization",
  "content-type",
  "content-encoding",
  "accept-encoding",
  "anthropic-beta",
  "x-service-provider-id",
  "cookie",
];
