// Long JSON answers are compressed if the caller accepts it: docs/architecture.md, "A request"; docs/security.md.
import { get, type IncomingHttpHeaders, request } from "node:http";
import { text } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, defineContract, definePlugin, JsonPieces, reply } from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { hostKinds, openHost } from "../../harness/hosts.ts";

const items = v.array(v.string());
const texts = { summary: "Texts", success: reply.json(items) };
const contract = defineContract(
  { surface: "open", auth: "open", envelope: (error) => ({ error: error.code, filler: "x".repeat(10_000) }) },
  {
    long: { method: "GET", path: "/long", ...texts },
    short: { method: "GET", path: "/short", ...texts },
    pieces: { method: "GET", path: "/pieces", ...texts },
    endless: { method: "GET", path: "/endless", ...texts },
    broken: { method: "GET", path: "/broken", ...texts },
    created: { method: "POST", path: "/long", ...texts },
    events: { method: "GET", path: "/events", summary: "Events", success: reply.events({ tick: v.string() }) },
    bytes: { method: "GET", path: "/bytes", summary: "Bytes", success: reply.bytes(200) },
  },
);
const long = Array.from({ length: 2000 }, (_, at) => `text ${at} ünïcode`);
const COUNT = 400;
const piece = JSON.stringify("piece ".repeat(10_000));

async function open(kind: (typeof hostKinds)[number]) {
  const telemetry = createMemoryTelemetry();
  const state = { isLeft: false };
  const plugin = definePlugin({
    name: "texts",
    needs: {},
    config: v.strictObject({}),
    contract,
    setup: () => ({
      long: () => long,
      created: () => long,
      short: () => long.slice(0, 3),
      pieces: () =>
        new JsonPieces(
          (async function* () {
            for (let at = 0; at < COUNT; at++) yield `${at === 0 ? "[" : ","}${piece}`;
            yield "]";
          })(),
        ),
      endless: () =>
        new JsonPieces(
          (async function* () {
            try {
              yield "[1";
              for (;;) yield `,${piece}`;
            } finally {
              state.isLeft = true;
            }
          })(),
        ),
      broken: () =>
        new JsonPieces(
          (async function* () {
            yield `[${piece}`;
            yield `,${piece}`;
            throw new RangeError("secret hunter2");
          })(),
        ),
      events: async function* () {
        yield { event: "tick", data: "x".repeat(10_000) } as const;
      },
      bytes: () => new Response(JSON.stringify(long), { headers: { "content-type": "application/json" } }),
    }),
  });
  const app = await createApp({
    name: "compressed",
    adapters: [memoryTelemetry({ telemetry })],
    plugins: [plugin({})],
    surfaces: { open: { allowedOrigins: ["https://desk.example"] } },
  });
  const host = await openHost(kind, app);
  return Object.assign(state, {
    ...{ telemetry, host },
    call: (path: string, accepted: string | undefined, init: RequestInit = {}) =>
      host.call(path, {
        ...init,
        headers: { ...(init.headers as object), ...(accepted !== undefined && { "accept-encoding": accepted }) },
      }),
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  });
}

/** The bytes as they are on the wire: `fetch` decodes them. */
async function raw(url: string, headers: Record<string, string> = {}, method = "GET") {
  return new Promise<{ status: number; headers: IncomingHttpHeaders; body: Buffer }>((resolve, reject) => {
    request(url, { method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response
        .on("data", (chunk: Buffer) => chunks.push(chunk))
        .on("end", () => resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }))
        .on("error", reject);
    })
      .on("error", reject)
      .end();
  });
}
const decoded = (coding: string | undefined, body: Buffer) =>
  (coding === "br" ? brotliDecompressSync(body) : coding === "gzip" ? gunzipSync(body) : body).toString();

describe("a long JSON answer, on the wire", () => {
  it.each([
    ["br", "br"],
    ["gzip", "gzip"],
    ["gzip, deflate, br", "gzip"],
    ["br, gzip", "br"],
    ["gzip;q=1, br;q=0.5", "gzip"],
    ["br;q=0, gzip", "gzip"],
    ["*", "br"],
    ["GZIP", "gzip"],
    [undefined, undefined],
    ["", undefined],
    ["identity", undefined],
    ["deflate, zstd", undefined],
    ["gzip;q=0", undefined],
    ["identity, gzip;q=0.5", undefined],
    [";;=,,q", undefined],
  ])("to a caller that accepts %j is sent as %j, with its length", async (accepted, coding) => {
    await using service = await open("node");
    const answer = await raw(`${service.host.origin}/long`, accepted === undefined ? {} : { "accept-encoding": accepted });
    expect([answer.headers["content-encoding"], answer.headers.vary]).toEqual([coding, "accept-encoding"]);
    expect(Number(answer.headers["content-length"])).toBe(answer.body.byteLength);
    expect(JSON.parse(decoded(coding, answer.body))).toEqual(long);
    expect(answer.body.byteLength < 40_000).toBe(coding !== undefined);
  });

  it("in pieces is compressed as a stream", async () => {
    await using service = await open("node");
    for (const coding of ["br", "gzip"]) {
      const answer = await raw(`${service.host.origin}/pieces`, { "accept-encoding": coding });
      expect(answer.headers).toMatchObject({
        "content-encoding": coding,
        vary: "accept-encoding",
        "transfer-encoding": "chunked",
      });
      expect(JSON.parse(decoded(coding, answer.body))).toHaveLength(COUNT);
      expect(answer.body.byteLength).toBeLessThan(COUNT * 1000);
    }
  });

  it("has the same head to HEAD, without a body", async () => {
    await using service = await open("node");
    for (const [path, coding] of [
      ["/long", "br"],
      ["/pieces", "br"],
      ["/short", undefined],
    ] as const) {
      const answer = await raw(service.host.origin + path, { "accept-encoding": "br" }, "HEAD");
      expect([answer.status, answer.headers["content-encoding"], answer.body.byteLength]).toEqual([200, coding, 0]);
      expect(answer.headers.vary).toBe(coding && "accept-encoding");
    }
    expect(Number((await raw(`${service.host.origin}/long`, {}, "HEAD")).headers["content-length"])).toBe(
      Buffer.byteLength(JSON.stringify(long)),
    );
  });

  it("breaks with its source: a reader never takes it for complete", async () => {
    await using service = await open("node");
    await expect(raw(`${service.host.origin}/broken`, { "accept-encoding": "gzip" })).rejects.toThrow();
    expect(service.telemetry.requests).toMatchObject([{ status: 200, error: "answer_broken" }]);
    expect(service.telemetry.lines).toMatchObject([{ level: "error", cause: { name: "RangeError" } }]);
    expect(JSON.stringify(service.telemetry.lines)).not.toContain("hunter2");
  });

  it("tells its source when the reader leaves", async () => {
    await using service = await open("node");
    const answer = get(`${service.host.origin}/endless`, { headers: { "accept-encoding": "gzip" } });
    answer.on("response", (response) => response.once("data", () => answer.destroy())).on("error", () => {});
    await expect.poll(() => service.isLeft).toBe(true);
    await expect.poll(() => service.telemetry.requests.length).toBe(1);
    expect(service.telemetry.lines).toEqual([]);
  });

  it("causes no error when the caller leaves while it is compressed", async () => {
    await using service = await open("node");
    for (let at = 0; at < 5; at++) {
      const answer = request(`${service.host.origin}/long`, { headers: { "accept-encoding": "br" } });
      answer.on("error", () => {}).end();
      answer.on("socket", (socket) => socket.once("connect", () => setImmediate(() => answer.destroy())));
    }
    expect((await raw(`${service.host.origin}/long`, { "accept-encoding": "br" })).status).toBe(200);
    expect(service.telemetry.lines).toEqual([]);
  });
});

describe.each(hostKinds)("on a %s host", (kind) => {
  it("fetch reads a compressed answer like any other", async () => {
    await using service = await open(kind);
    const answer = await service.call("/long", "gzip");
    expect(answer.headers.get("content-encoding")).toBe("gzip");
    // A fetch host has no transport that would decode it.
    const body = kind === "node" ? await answer.text() : gunzipSync(await answer.arrayBuffer()).toString();
    expect(JSON.parse(body)).toEqual(long);
    const pieces = await service.call("/pieces", "br");
    const all = kind === "node" ? await pieces.text() : brotliDecompressSync(await pieces.arrayBuffer()).toString();
    expect(JSON.parse(all)).toHaveLength(COUNT);
  });

  it("short answers, other calls than reads, errors, events and bytes are not compressed", async () => {
    await using service = await open(kind);
    for (const [path, init] of [
      ["/short", {}],
      ["/long", { method: "POST" }],
      ["/nowhere", {}],
      ["/events", {}],
      ["/bytes", {}],
    ] as const) {
      const answer = await service.call(path, "br, gzip", init);
      expect([path, answer.headers.get("content-encoding")]).toEqual([path, null]);
      await answer.text();
    }
  });

  it("an answer to an allowed page varies by its origin, too", async () => {
    await using service = await open(kind);
    const headers = { origin: "https://desk.example" };
    const answer = await service.call("/long", "gzip", { headers });
    expect(answer.headers.get("vary")).toBe("origin, accept-encoding");
    expect(answer.headers.get("access-control-allow-origin")).toBe("https://desk.example");
    await answer.arrayBuffer();
    const short = await service.call("/short", "gzip", { headers });
    expect([short.headers.get("vary"), await text(short.body as never)]).toEqual(["origin", JSON.stringify(long.slice(0, 3))]);
  });
});
