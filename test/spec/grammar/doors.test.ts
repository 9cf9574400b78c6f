import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import {
  createApp,
  defineContract,
  defineErrors,
  definePlugin,
  type Fetch,
  jsonList,
  JsonPieces,
  reply,
  type Surface,
} from "@portico/core";
import { toNodeHandler } from "@portico/core/node";
import { toNodeHandler as fetchToNode } from "h3/node";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ODD_REQUESTS, type OddRequest } from "./doors-table.ts";

const errors = defineErrors({ locked: { status: 403, message: "Locked" }, tired: { status: 503 } });
const get = { method: "GET", summary: "" } as const;
const post = { method: "POST", summary: "" } as const;
const name = v.strictObject({ name: v.pipe(v.string(), v.maxLength(200)) });
const number = v.strictObject({ n: v.optional(v.number()) });
const echo = reply.json(v.unknown());
const text = reply.exchange(["text/plain"]);

const contract = defineContract(
  {
    surface: "agent",
    auth: "key",
    envelope: (error, head) => ({ error: error.code, message: error.message, details: error.details, at: head.path }),
  },
  {
    json: { ...get, path: "/json", success: echo },
    save: { ...post, path: "/json", body: number, bodyLimit: 200, success: reply.json(v.unknown(), 201) },
    optional: { ...post, path: "/optional", body: v.optional(number), success: echo },
    named: { ...get, path: "/json/:name", params: name, success: echo },
    query: { ...get, path: "/query", query: v.strictObject({ a: v.optional(v.string()) }), success: echo },
    pieces: { ...get, path: "/pieces", success: echo },
    long: { ...get, path: "/long", success: echo },
    empty: { ...get, path: "/empty", success: reply.empty() },
    drop: { ...get, method: "DELETE", path: "/empty", success: reply.empty() },
    text: { ...post, path: "/text", body: number, bodyAs: "text", bodyLimit: 200, success: echo },
    stream: { ...post, path: "/stream", accepts: ["text/plain"], bodyAs: "stream", bodyLimit: 200, success: echo },
    events: { ...get, path: "/events", success: reply.events({ tick: v.number() }) },
    brokenEvents: { ...get, path: "/broken-events", success: reply.events({ tick: v.number() }), errors },
    bytes: { ...get, path: "/bytes", success: reply.bytes() },
    bytesStream: { ...get, path: "/bytes-stream", success: reply.bytes() },
    redirect: { ...get, path: "/redirect", success: reply.bytes() },
    raw: { ...get, path: "/raw", success: text },
    rawPost: { ...post, path: "/raw", accepts: ["text/plain"], success: text },
    raw204: { ...get, path: "/raw-204", success: text },
    refused: { ...get, path: "/refused", success: echo, errors },
    crash: { ...get, path: "/crash", success: echo },
    badHeader: { ...get, path: "/bad-header", success: text },
    slash: { ...get, path: "/slash/", auth: "open", success: echo },
    tree: { ...get, path: "/tree/**", auth: "open", success: echo },
  },
);

const plugin = definePlugin({
  name: "odd",
  config: v.strictObject({}),
  needs: {},
  contract,
  guards: () => ({
    key(head) {
      const key = head.header("x-key");
      if (key === "lost") throw new RangeError("hunter2");
      if (key !== "open" && key !== "open, open") throw errors.locked();
      return key;
    },
  }),
  setup: () => ({
    json: ({ head, who }) => ({ path: head.path, search: head.search, who, agent: head.header("accept") ?? "" }),
    save: ({ body }) => body,
    optional: ({ body }) => ({ body: body ?? "absent" }),
    named: ({ params, head }) => ({ params, of: head.params, path: head.path, search: head.search }),
    query: ({ query }) => query,
    pieces: () =>
      jsonList(
        "items",
        (async function* () {
          yield [1, "é"];
        })(),
      ),
    long: () =>
      new JsonPieces(
        (async function* () {
          yield "[";
          yield "1";
          yield "]";
        })(),
      ),
    empty() {},
    drop() {},
    text: ({ body }) => ({ body: body ?? "no text" }),
    async stream({ body }) {
      let bytes = 0;
      for await (const chunk of body.stream) bytes += (chunk as Buffer).length;
      return { bytes, type: body.headers.contentType };
    },
    async *events({ say }) {
      yield say.tick(1);
      yield say.tick(2);
    },
    async *brokenEvents({ say }) {
      yield say.tick(1);
      throw errors.tired();
    },
    bytes: ({ request }) => new Response(`${request.method} é`, { status: 203, headers: { "x-own": "1", etag: '"e"' } }),
    bytesStream: () => new Response(Readable.toWeb(Readable.from([Buffer.from("one"), Buffer.from("two")])) as never),
    redirect: () => Response.redirect("https://elsewhere.example/", 302),
    raw: ({ exchange }) => void exchange.respond(200, { "content-type": "text/plain", "set-cookie": ["a=1", "b=2"] }).end("raw"),
    async rawPost({ exchange }) {
      await pipeline(exchange.body, exchange.respond(200, { "content-type": "text/plain" }));
    },
    raw204: ({ exchange }) => void exchange.respond(204, {}).end(),
    refused: ({ fail }) => {
      throw fail.tired();
    },
    crash: () => {
      throw new RangeError("hunter2");
    },
    badHeader: ({ exchange }) => void exchange.respond(200, { "x-bad": "a\nb" }).end(),
    slash: ({ head }) => ({ path: head.path }),
    tree: ({ head }) => ({ params: head.params, path: head.path }),
  }),
})({});

const telemetry = createMemoryTelemetry();
const app = await createApp({
  name: "doors",
  adapters: [memoryTelemetry({ telemetry })],
  plugins: [plugin],
  surfaces: { agent: { allowedOrigins: ["https://desk.example"] } },
});
afterAll(() => app.close());

const onNode = (fetch: Fetch) => fetchToNode({ fetch } as never) as RequestListener;
/** The ways to a surface. A plain Request knows nothing of Node, as on any other host. */
const doors = {
  node: (surface: Surface) => toNodeHandler(surface) as RequestListener,
  "fetch on Node": (surface: Surface) => onNode((request) => surface.fetch(request)),
  "fetch alone": (surface: Surface) =>
    onNode(async (request) => {
      const whole = await plain(request).catch(() => undefined);
      // A request whose body never comes whole does not get here.
      return whole ? surface.fetch(whole) : new Response(null, { status: 400 });
    }),
};
const open: Record<string, (asked: OddRequest) => Promise<Shown>> = {};
beforeAll(async () => {
  for (const [way, door] of Object.entries(doors)) {
    const server = createServer({ keepAliveTimeout: 0 }, door(app.surface("agent").forHosts([]))).listen(0, "127.0.0.1");
    await once(server, "listening");
    afterAll(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
    open[way] = async (asked) => show(await send((server.address() as AddressInfo).port, asked));
  }
});

describe.each(Object.entries(ODD_REQUESTS))("%s", (_group, requests) => {
  it("are answered alike behind every door", async () => {
    const different: string[] = [];
    for (const asked of requests) {
      const node = await open["node"]!(asked);
      for (const way of ["fetch on Node", "fetch alone"]) {
        // A Request cannot be made of these.
        if (way === "fetch alone" && asked.line.startsWith("TRACE ")) continue;
        const other = await open[way]!(asked);
        for (const part of PARTS) {
          if (String(node[part]) !== String(other[part]))
            different.push(`${asked.what} [${way}] ${part}: ${node[part]} | ${other[part]}`);
        }
      }
    }
    expect(different).toEqual([]);
  });
});

const PARTS = ["status", "headers", "framing", "body", "isCut"] as const;

interface Shown {
  readonly status: number;
  /** All but those of the framing and of the connection. */
  readonly headers: readonly string[];
  readonly framing: string;
  readonly body: string;
  readonly isCut: boolean;
}

/** Sends one request and reads what comes until the connection ends. */
function send(port: number, { line, headers, body, framing }: OddRequest): Promise<string> {
  const declared =
    body === undefined || framing === "as it is"
      ? []
      : [framing === "chunked" ? "Transfer-Encoding: chunked" : `Content-Length: ${Buffer.byteLength(body)}`];
  const chunk = body && `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n`;
  const sent = framing === "chunked" ? `${chunk}0\r\n\r\n` : (body ?? "");
  const closing = headers.some((header) => header.startsWith("Connection:")) ? [] : ["Connection: close"];
  return new Promise((resolve) => {
    let received = "";
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(`${[line, ...headers, ...declared, ...closing].join("\r\n")}\r\n\r\n${sent}`),
    );
    socket.setEncoding("latin1").on("data", (text: string) => {
      received += text;
      if (closing.length === 0 && isWhole(received)) socket.end();
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(received));
  });
}

function show(received: string): Shown {
  const interim = received.startsWith("HTTP/1.1 100 ") ? received.indexOf("\r\n\r\n") + 4 : 0;
  const end = received.indexOf("\r\n\r\n", interim);
  const [status = "", ...lines] = received.slice(interim, end).split("\r\n");
  const body = received.slice(end + 4);
  const fields = lines.map((line) => line.toLowerCase());
  const framing = fields.filter((line) => /^(content-length|transfer-encoding):/.test(line)).join();
  const chunks = framing.includes("chunked") ? unchunked(body) : { text: body, isCut: false };
  return {
    status: Number(status.split(" ")[1]),
    headers: lines
      .filter((line) => !/^(content-length|transfer-encoding|date|connection|keep-alive):/i.test(line))
      .map((line) => line.replace(/^[^:]+/, (field) => field.toLowerCase()).replace(/req_[\w-]+/, "req_"))
      .sort(),
    framing,
    body: chunks.text,
    isCut: chunks.isCut,
  };
}

function unchunked(body: string): { text: string; isCut: boolean } {
  let text = "";
  for (let at = 0; at < body.length;) {
    const line = body.indexOf("\r\n", at);
    const size = Number.parseInt(body.slice(at, line), 16);
    if (size === 0) return { text, isCut: false };
    text += body.slice(line + 2, line + 2 + size);
    at = line + 2 + size + 2;
  }
  return { text, isCut: body.length > 0 };
}

/** Whether an answer on a connection that stays open has come whole. */
function isWhole(received: string): boolean {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return false;
  if (/^HTTP\/1\.1 (204|304)/.test(received)) return true;
  const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, end))?.[1];
  return length === undefined ? received.endsWith("0\r\n\r\n") : received.length >= end + 4 + Number(length);
}

/** The same request without anything of Node's. */
async function plain(request: Request): Promise<Request> {
  const body = request.method === "GET" || request.method === "HEAD" ? undefined : await request.arrayBuffer();
  return new Request(request.url, {
    method: request.method,
    headers: [...request.headers],
    body: body ?? null,
    signal: request.signal,
  });
}
