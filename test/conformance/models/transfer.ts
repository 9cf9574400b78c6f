import { createHash, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Answer } from "../../harness/upstream-exchange.ts";
import { createGate } from "../../harness/gate.ts";
import {
  after,
  afterInterim,
  compress,
  empty,
  events,
  huge,
  json,
  slowReader,
  stream,
  whole,
} from "../../harness/upstream-answers.ts";
import { RULES } from "./rules.ts";
import {
  CREDENTIAL,
  countedBody,
  fedBody,
  HEADER_SECRET,
  type OpenSubject,
  pieces,
  readBytes,
  sampleRequest,
  standstill,
} from "./subject.ts";

const MIB = 1024 * 1024;
const LARGE = 200 * MIB;
/** What the socket buffers of both ends may hold, generously, and far below LARGE. */
const ON_THE_WAY = 48 * MIB;
/** Every byte there is, in no order that a text could have. */
const ANY_BYTES = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, index) => 255 - index)), randomBytes(100_000)]);

const encoded: readonly [string, Buffer, string][] = [
  ["gzip", compress("gzip", "hello"), "gzip"],
  ["br", compress("br", "hello"), "br"],
];

/** Requests and answers arrive complete and unchanged, and only as fast as the receiver reads. */
export function describeTransfer(open: OpenSubject, { isDecoded }: { readonly isDecoded: boolean }): void {
  describe("request", () => {
    it("is a POST under the base URL with the caller's query, and the credential in a header alone", async () => {
      const { send, upstream } = await open();
      await send({ query: "?beta=true&x=%20y" });
      const { method, url, headers } = await upstream.request();
      expect(method).toBe("POST");
      expect(url).toMatch(/^\/v1\/[a-z/]+\?beta=true&x=%20y$/);
      expect(Object.values(headers).some((value) => String(value).includes(CREDENTIAL))).toBe(true);
      expect(url).not.toContain(CREDENTIAL);
    });

    it("carries the caller's headers as they are, and the provider's own over them", async () => {
      const { send, upstream } = await open();
      const own = {
        "content-type": "application/json; charset=utf-8",
        "user-agent": "Caller/1.0 (é)",
        "x-custom": ' a, b;c="d"',
      };
      await send({ headers: { ...own, "x-vendor-token": "the caller's" } });
      const { headers } = await upstream.request();
      for (const [header, value] of Object.entries(own)) expect(headers[header]).toBe(value.trim());
      expect(headers["x-vendor-token"]).toBe(HEADER_SECRET);
    });

    it.each<
      [
        string,
        (bytes: Buffer) => {
          body: Buffer | ReturnType<typeof fedBody>;
          length?: number;
        },
      ]
    >([
      ["bytes", (bytes) => ({ body: bytes })],
      ["a stream of known length", (bytes) => ({ body: streamOf(bytes), length: bytes.length })],
      ["a stream of unknown length", (bytes) => ({ body: streamOf(bytes) })],
    ])("arrives byte for byte: %s", async (_name, given) => {
      const { send, upstream } = await open();
      upstream.answerAll(async (exchange) => {
        await exchange.request.bytes();
        await json(200, {})(exchange);
      });
      const { length, ...rest } = given(ANY_BYTES);
      await send({
        ...rest,
        ...(length !== undefined && { length }),
        headers: { "content-encoding": "gzip" },
      });
      const request = await upstream.request();
      expect((await request.bytes()).equals(ANY_BYTES)).toBe(true);
      expect(request.headers["content-encoding"]).toBe("gzip");
      // A stream without a declared length may still have reached its end.
      const isDeclared = length !== undefined || rest.body instanceof Buffer;
      const told = [String(ANY_BYTES.length), ...(isDeclared ? [] : [undefined])];
      expect(told).toContain(request.headers["content-length"]);
    });

    it("goes out while it still comes in", async () => {
      const { send, upstream } = await open();
      upstream.answerNext(async (exchange) => json(200, await exchange.request.text())(exchange));
      const body = fedBody("first");
      const sending = send({ body });
      const request = await upstream.request();
      await request.arrived(5);
      body.push("second");
      await request.arrived(11);
      body.push(null);
      expect(await request.text()).toBe("firstsecond");
      await sending;
    });

    it("is held back by an upstream that does not read, and complete once it does", async () => {
      const { send, upstream } = await open({ keepBodies: false });
      const reads = createGate();
      upstream.answerNext(slowReader(reads.opened, async (exchange) => json(200, await exchange.request.sha256())(exchange)));
      const { body, taken } = countedBody(LARGE);
      const sending = send({ body, length: LARGE });
      await upstream.request();
      expect(await standstill(taken)).toBeLessThan(ON_THE_WAY);
      reads.open();
      const answer = await sending;
      expect((await readBytes(answer.body)).toString("utf8")).toBe(digestOfLetters(LARGE));
    });

    it("may be answered before it is whole", async () => {
      const { send, upstream } = await open();
      upstream.answerNext(json(413, { error: "too much" }));
      const answer = await send({ body: fedBody("{") });
      expect(answer.status, RULES.answered).toBe(413);
      expect(JSON.parse((await readBytes(answer.body)).toString("utf8"))).toEqual({ error: "too much" });
    });
  });

  describe("answer", () => {
    it.each([200, 201, 204, 301, 307, 304, 400, 401, 404, 429, 500, 503, 529])(
      "is an answer with the status %i",
      async (status) => {
        const { send, upstream } = await open();
        upstream.answerNext(empty(status, { location: "/v1/elsewhere", "retry-after": "7" }));
        const answer = await send();
        expect(answer.status, RULES.answered).toBe(status);
        expect(answer.headers["retry-after"]).toBe("7");
        expect(await readBytes(answer.body)).toHaveLength(0);
        expect(upstream.requests, RULES.requests(1)).toHaveLength(1);
      },
    );

    it.each<[string, Buffer, string | undefined]>([
      ["any bytes", ANY_BYTES, undefined],
      ["JSON in an odd spelling", Buffer.from('{ "n":1.0e+2,\r\n\t"n":0.10, "s":"\\u00e9é" }\n'), undefined],
      ...(isDecoded ? [] : encoded),
    ])("comes back byte for byte: %s", async (_name, bytes, encoding) => {
      const { send, upstream } = await open();
      const headers = {
        "content-type": "application/octet-stream",
        ...(encoding && { "content-encoding": encoding }),
      };
      upstream.answerNext(whole(200, bytes, headers), stream([bytes], { headers }));
      for (let repeat = 0; repeat < 2; repeat++) {
        const answer = await send();
        expect(answer.headers["content-encoding"]).toBe(encoding);
        expect(answer.headers["content-type"], RULES.headers).toBe("application/octet-stream");
        expect((await readBytes(answer.body)).equals(bytes)).toBe(true);
      }
    });

    it("has as `whole` the bytes of its body, if the adapter gives it", async () => {
      const { send, upstream } = await open();
      upstream.answerNext(json(200, { ok: true }), empty(204), json(429, { error: "later" }));
      for (const expected of ['{"ok":true}', "", '{"error":"later"}']) {
        const { whole: given, body } = await send();
        if (given !== undefined) expect(given.toString("utf8")).toBe(expected);
        expect((await readBytes(body)).toString("utf8")).toBe(expected);
      }
    });

    if (isDecoded) {
      it.each(encoded)("comes back decoded, and does not claim to be encoded: %s", async (_name, bytes, encoding) => {
        const { send, upstream } = await open();
        upstream.answerNext(whole(200, bytes, { "content-encoding": encoding }));
        const answer = await send();
        expect(answer.headers).not.toHaveProperty("content-encoding");
        expect(answer.headers).not.toHaveProperty("content-length");
        expect((await readBytes(answer.body)).toString("utf8")).toBe("hello");
      });
    }

    it("keeps a header that came several times", async () => {
      const { send, upstream } = await open();
      upstream.answerNext(json(200, {}, { "x-twice": ["a", "b"] }));
      expect([(await send()).headers["x-twice"]].flat().join(", ")).toBe("a, b");
    });

    it("resolves with the head before there is a body, and hands on each piece before the next is sent", async () => {
      const { send, upstream } = await open();
      const [first, second] = [createGate(), createGate()];
      upstream.answerNext(events([first.opened, "data: 1\n\n", second.opened, ": comment\r\n\r\ndata:2\n\n"]));
      const answer = await send();
      expect(answer.status, RULES.answered).toBe(200);
      const next = pieces(answer.body);
      first.open();
      expect(await next()).toBe("data: 1\n\n");
      second.open();
      expect(await next()).toBe(": comment\r\n\r\ndata:2\n\n");
      expect(await next()).toBe("");
    });

    it("skips interim answers", async () => {
      const { send, upstream } = await open();
      upstream.answerNext(afterInterim(json(200, { ok: true })));
      const answer = await send();
      expect(answer.status, RULES.answered).toBe(200);
      expect((await readBytes(answer.body)).toString("utf8")).toBe('{"ok":true}');
    });

    it("stops the upstream while the body is not read, and is complete in the end", async () => {
      const { send, upstream } = await open();
      const sent = sentBy(upstream.answerNext, huge(LARGE));
      const { body } = await send();
      expect(await standstill(sent)).toBeLessThan(ON_THE_WAY);
      expect(body.readableLength).toBeLessThan(MIB);
      expect((await readLength(body, sent)).bytes).toBe(LARGE);
    });

    it("of 200 MiB is never in memory at once", async () => {
      const { send, upstream } = await open();
      const sent = sentBy(upstream.answerNext, huge(LARGE));
      const read = await readLength((await send()).body, sent);
      expect(read.bytes).toBe(LARGE);
      expect(read.mostOnTheWay).toBeLessThan(ON_THE_WAY);
    });
  });

  describe("connections", () => {
    it("are used again, for answers of every kind", async () => {
      const { send, upstream } = await open();
      const answers = [json(200, {}), empty(204), json(429, {}), events(["data: 1\n\n"]), afterInterim(json(200, {}))];
      const sockets = new Set<unknown>();
      const noted =
        (answer: Answer): Answer =>
        (exchange) => {
          sockets.add(exchange.socket);
          return answer(exchange);
        };
      upstream.answerNext(...[...answers, ...answers, ...answers].map(noted));
      for (let call = 0; call < 15; call++) await readBytes((await send()).body);
      // A pool may open a second one while the first is just about to be free.
      expect(sockets.size).toBeLessThanOrEqual(2);
    });

    it("serve callers side by side, each with its own answer", async () => {
      const { provider, send, upstream } = await open();
      const all = createGate();
      upstream.answerAll(async (exchange) => {
        if (upstream.requests.length === 20) all.open();
        const text = await exchange.request.text();
        await after(all.opened, json(200, text))(exchange);
      });
      const requests = Array.from({ length: 20 }, (_, index) => sampleRequest(provider, { user: `caller ${index}` }));
      const answers = await Promise.all(requests.map(async (body) => readBytes((await send({ body })).body)));
      expect(answers.map(String)).toEqual(requests.map(String));
    });
  });

  describe("redact", () => {
    it("removes the credential, secret headers and the address at any position, and leaves the rest", async () => {
      const { provider, send, upstream } = await open();
      // There are words of an upstream's only after a call: a credential that is made for it is known by then.
      await readBytes((await send()).body);
      const { host, hostname } = new URL(upstream.baseUrl);
      const text = `Key ${CREDENTIAL}${CREDENTIAL} at http://${host}/v1 (${hostname}), ${HEADER_SECRET}: not valid`;
      const shown = provider.redact(text);
      for (const secret of [CREDENTIAL, HEADER_SECRET, host, hostname]) expect(shown).not.toContain(secret);
      expect(shown).toMatch(/^Key .* at http:\/\/.*: not valid$/);
    });
  });
}

function streamOf(bytes: Buffer): ReturnType<typeof fedBody> {
  const body = fedBody(bytes.subarray(0, 1), bytes.subarray(1, 60_000), bytes.subarray(60_000));
  body.push(null);
  return body;
}

/** Script the answer, and count what its upstream has written so far. */
function sentBy(answerNext: (answer: Answer) => void, answer: Answer): () => number {
  let sent = (): number => 0;
  answerNext((exchange) => {
    const before = exchange.socket.bytesWritten;
    sent = () => exchange.socket.bytesWritten - before;
    return answer(exchange);
  });
  return () => sent();
}

async function readLength(
  body: AsyncIterable<Buffer>,
  sent: () => number,
): Promise<{ readonly bytes: number; readonly mostOnTheWay: number }> {
  let [bytes, mostOnTheWay] = [0, 0];
  for await (const chunk of body) {
    bytes += chunk.length;
    mostOnTheWay = Math.max(mostOnTheWay, sent() - bytes);
  }
  return { bytes, mostOnTheWay };
}

/** The JSON text of the digest of that many letters `a`. */
function digestOfLetters(bytes: number): string {
  const hash = createHash("sha256");
  const chunk = Buffer.alloc(MIB, "a");
  for (let left = bytes; left > 0; left -= chunk.length) hash.update(chunk.subarray(0, Math.min(left, chunk.length)));
  return hash.digest("hex");
}
