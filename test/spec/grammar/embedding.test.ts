import { createServer } from "node:http";
import middie from "@fastify/middie";
import { getRequestListener } from "@hono/node-server";
import { createApp, defineContract, defineErrors, definePlugin, reply } from "@portico/core";
import { toNodeHandler } from "@portico/core/node";
import express from "express";
import fastify from "fastify";
import { H3 } from "h3";
import { toNodeHandler as h3ToNode } from "h3/node";
import { Hono } from "hono";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { listen } from "../../harness/hosts.ts";

const contract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code, message: error.message }) },
  {
    greet: {
      method: "GET",
      path: "/api/hello/:name",
      summary: "",
      params: v.strictObject({ name: v.string() }),
      success: reply.json(v.object({ text: v.string() })),
      errors: defineErrors({ guest_unknown: { status: 404, message: "No such guest" } }),
    },
    save: { method: "PUT", path: "/api/hello", summary: "", body: v.object({ n: v.number() }), success: reply.json(v.unknown()) },
    ticks: { method: "GET", path: "/api/ticks", summary: "", success: reply.events({ tick: v.number() }) },
    move: { method: "POST", path: "/api/move", summary: "", accepts: ["text/plain"], success: reply.exchange(["text/plain"]) },
  },
);

const hello = definePlugin({
  name: "hello",
  config: v.strictObject({}),
  needs: {},
  contract,
  setup: () => ({
    greet({ params, fail }) {
      if (params.name === "Bob") throw fail.guest_unknown();
      return { text: `Hello, ${params.name}!` };
    },
    save: ({ body }) => body,
    async *ticks({ say }) {
      yield say.tick(1);
    },
    move: ({ exchange }) => void exchange.body.pipe(exchange.respond(200, { "content-type": "text/plain" })),
  }),
});

type Ask = (path: string, init?: RequestInit) => Promise<Response>;
type Opened = AsyncDisposable & { readonly ask: Ask };

const hosts: Record<
  string,
  (fetch: (request: Request) => Response | Promise<Response>, node: ReturnType<typeof toNodeHandler>) => Promise<Opened>
> = {
  "h3, as a fetch host": async (fetch) => {
    const host = new H3().get("/own", () => "own").mount("/svc", { fetch: fetch as never });
    return inProcess((request) => host.fetch(request));
  },
  "h3 on Node": (fetch) => {
    const host = new H3().get("/own", () => "own").mount("/svc", { fetch: fetch as never });
    return onNode(h3ToNode(host) as never);
  },
  "Hono, as a fetch host": async (fetch) => {
    const host = new Hono().get("/own", (context) => context.text("own")).mount("/svc", fetch);
    return inProcess((request) => host.fetch(request));
  },
  "Hono on Node, which puts classes of its own in the place of the global Request and Response": (fetch) => {
    const host = new Hono().get("/own", (context) => context.text("own")).mount("/svc", fetch);
    return onNode(getRequestListener(host.fetch));
  },
  Fastify: async (_fetch, node) => {
    const host = fastify();
    host.get("/own", () => "own");
    await host.register(middie);
    host.use("/svc", node);
    await host.ready();
    return onNode(host.routing);
  },
  Express: (_fetch, node) => {
    const host = express()
      .get("/own", (_request, response) => void response.send("own"))
      .use("/svc", node);
    return onNode(host);
  },
  "bare node:http": (_fetch, node) => {
    const server = createServer((request, response) => {
      if (request.url === "/own") return response.end("own");
      request.url = request.url!.slice("/svc".length);
      return node(request, response);
    });
    return onNode((request, response) => void server.emit("request", request, response));
  },
};

describe.each(Object.entries(hosts))("embedded in %s", (_name, host) => {
  it("a surface answers beside the host's own routes, with its own errors", async () => {
    await using service = await open(host);
    expect(await (await service.ask("/own")).text()).toBe("own");
    expect(await shown(service.ask("/svc/api/hello/Ada"))).toEqual([200, { text: "Hello, Ada!" }]);
    expect(await shown(service.ask("/svc/api/hello/Bob"))).toEqual([404, { error: "guest_unknown", message: "No such guest" }]);
    expect(await shown(service.ask("/svc/api/nowhere"))).toEqual([404, { error: "not_found", message: "Not found" }]);
    expect(await shown(service.ask("/svc/api/hello/Ada", { method: "DELETE" }))).toEqual([
      405,
      { error: "method_not_allowed", message: "Method not allowed" },
    ]);
  });

  it("a surface reads bodies, sends events, and runs exchanges", async () => {
    await using service = await open(host);
    const json = { method: "PUT", body: '{"n":1}', headers: { "content-type": "application/json" } };
    expect(await shown(service.ask("/svc/api/hello", json))).toEqual([200, { n: 1 }]);
    expect(await (await service.ask("/svc/api/ticks")).text()).toBe("event: tick\ndata: 1\n\n");
    const text = "moved ".repeat(30_000);
    const moved = await service.ask("/svc/api/move", { method: "POST", body: text, headers: { "content-type": "text/plain" } });
    expect(await moved.text()).toBe(text);
  });
});

it("a body that the host has read already is a fault that is told, not a wait", async () => {
  await using app = await createApp({ name: "hello", plugins: [hello({})] });
  await using host = await listen(
    express()
      .use(express.json())
      .use(toNodeHandler(app.surface("agent")) as never) as never,
  );
  const silenced = console.error;
  const told: unknown[] = [];
  console.error = (...words: unknown[]) => void told.push(...words);
  try {
    const response = await host.call("/api/hello", {
      method: "PUT",
      body: '{"n":1}',
      headers: { "content-type": "application/json" },
    });
    expect(response.status).toBe(500);
  } finally {
    console.error = silenced;
  }
  expect(told).toMatchObject(["hello.save failed: internal_error", {}, { name: "BodyAlreadyRead" }]);
});

async function open(host: (typeof hosts)[string]): Promise<Opened> {
  const app = await createApp({ name: "hello", plugins: [hello({})] });
  const opened = await host(app.fetch, toNodeHandler(app.surface("agent")));
  return {
    ask: opened.ask,
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]();
      await app.close();
    },
  };
}

function inProcess(fetch: (request: Request) => Response | Promise<Response>): Opened {
  return { ask: async (path, init) => fetch(new Request(`http://test${path}`, init)), async [Symbol.asyncDispose]() {} };
}

async function onNode(listener: Parameters<typeof listen>[0]): Promise<Opened> {
  const host = await listen(listener);
  return { ask: host.call, [Symbol.asyncDispose]: () => host[Symbol.asyncDispose]() };
}

async function shown(answer: Promise<Response>): Promise<[number, unknown]> {
  const response = await answer;
  return [response.status, await response.json()];
}
