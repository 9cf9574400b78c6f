import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, defineContract, defineErrors, definePlugin, type ports, reply } from "@portico/core";
import { HTTPError, onResponse } from "h3";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { type HostKind, hostKinds, openHost } from "../../harness/hosts.ts";

const errors = defineErrors({ closed: { status: 503, message: "Closed today" } });
const contract = defineContract(
  { surface: "desk", auth: "open", envelope: (error) => ({ error: error.code }) },
  {
    hello: {
      method: "GET",
      path: "/hello/:name",
      summary: "",
      params: v.object({ name: v.string() }),
      success: reply.json(v.unknown()),
    },
    raw: { method: "POST", path: "/raw", summary: "", success: reply.exchange(["text/plain"]) },
    ticks: { method: "GET", path: "/ticks", summary: "", success: reply.events({ tick: v.number() }) },
    file: { method: "GET", path: "/file", summary: "", success: reply.bytes() },
    drop: { method: "DELETE", path: "/drop", summary: "", success: reply.empty() },
  },
);
const desk = definePlugin({
  name: "desk",
  config: v.strictObject({}),
  needs: {},
  contract,
  setup: () => ({
    hello: ({ params }) => ({ hello: params.name }),
    raw: ({ exchange }) => void exchange.body.pipe(exchange.respond(200, { "content-type": "text/plain", "x-own": "route" })),
    async *ticks({ say }) {
      yield say.tick(1);
    },
    file: () => new Response("file", { headers: { "x-own": "route" } }),
    drop() {},
  }),
})({});

const CALLS: readonly (readonly [method: string, path: string, status: number])[] = [
  ["GET", "/hello/ada", 200],
  ["POST", "/raw", 200],
  ["GET", "/ticks", 200],
  ["GET", "/file", 200],
  ["DELETE", "/drop", 204],
  ["PUT", "/hello/ada", 405],
  ["GET", "/nowhere", 404],
];

describe.each(hostKinds)("the h3 app of a surface, on a %s host", (kind) => {
  it.each(CALLS)("runs middleware before it answers %s %s", async (method, path, status) => {
    await using service = await open(kind);
    const seen: string[] = [];
    service.h3.use((event) => void seen.push(`${event.req.method} ${event.url.pathname}`));
    const answer = await service.call(path, { method });
    await answer.text();
    expect([answer.status, seen]).toEqual([status, [`${method} ${path}`]]);
  });

  it.each(CALLS)("puts headers of middleware on the answer of %s %s", async (method, path, status) => {
    await using service = await open(kind);
    service.h3.use((event) => {
      const headers = status >= 400 ? event.res.errHeaders : event.res.headers;
      headers.set("x-own", "middleware");
      headers.append("set-cookie", "a=1");
      headers.append("set-cookie", "b=2");
    });
    const answer = await service.call(path, { method });
    await answer.text();
    expect([answer.status, answer.headers.get("x-own"), answer.headers.getSetCookie()]).toEqual([
      status,
      "middleware",
      ["a=1", "b=2"],
    ]);
    expect(answer.headers.get("x-portico-request-id")).toMatch(/^req_/);
  });

  it("lets middleware answer in place of a route, and look at the status of an answer", async () => {
    await using service = await open(kind);
    const statuses: number[] = [];
    service.h3.use(onResponse((response) => void statuses.push(response.status)));
    service.h3.use("/hello/**", (event) => (event.req.headers.has("x-stop") ? { stopped: true } : undefined));
    expect(await (await service.call("/hello/ada", { headers: { "x-stop": "1" } })).json()).toEqual({ stopped: true });
    expect(await (await service.call("/hello/ada")).json()).toEqual({ hello: "ada" });
    expect((await service.call("/drop", { method: "DELETE" })).status).toBe(204);
    expect(statuses).toEqual([200, 200, 204]);
  });

  it("waits for middleware that takes its time, and hands the body on untouched", async () => {
    await using service = await open(kind);
    service.h3.use(async (_event, next) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return next();
    });
    const text = "moved ".repeat(30_000);
    expect(await (await service.call("/raw", { method: "POST", body: text })).text()).toBe(text);
  });

  it("answers routes of the host beside those of its contracts", async () => {
    await using service = await open(kind);
    service.h3.get("/own/:what", (event) => ({ own: event.context.params!["what"] }));
    const answer = await service.call("/own/page");
    expect([answer.status, await answer.json()]).toEqual([200, { own: "page" }]);
    expect((await service.call("/own/page", { method: "HEAD" })).status).toBe(200);
    expect(await (await service.call("/nowhere")).json()).toEqual({ error: "not_found" });
  });

  it("answers what middleware and routes of the host throw: declared errors in the envelope, an HTTPError as h3 does", async () => {
    await using service = await open(kind);
    service.h3.get("/closed", () => {
      throw errors.closed();
    });
    service.h3.get("/crash", () => {
      throw new RangeError("hunter2");
    });
    service.h3.get("/teapot", async () => {
      throw new HTTPError({ status: 418, message: "Short and stout" });
    });
    const shown = async (path: string) => {
      const answer = await service.call(path);
      return [answer.status, await answer.json()];
    };
    expect(await shown("/closed")).toEqual([503, { error: "closed" }]);
    expect(service.telemetry.lines).toEqual([]);
    expect(await shown("/crash")).toEqual([500, { error: "internal_error" }]);
    expect(service.telemetry.lines).toMatchObject([{ level: "error", cause: { name: "RangeError" } }]);
    expect(await shown("/teapot")).toMatchObject([418, { message: "Short and stout" }]);
  });

  it("logs and measures answers of the host's middleware and routes like all other answers", async () => {
    await using service = await open(kind);
    service.h3.use("/hello/**", (event) => (event.req.headers.has("x-stop") ? { stopped: true } : undefined));
    service.h3.use(async (_event, next) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return next();
    });
    service.h3.post("/own/:what", async (event) => ({ got: await event.req.text() }));
    service.h3.get("/teapot", async () => {
      throw new HTTPError({ status: 418, message: "Short and stout" });
    });
    const ask = async (path: string, more?: Parameters<typeof service.call>[1]) => (await service.call(path, more)).text();
    await ask("/own/secret-name?token=hunter2", { method: "POST", body: "hunter2" });
    await ask("/teapot");
    await ask("/hello/ada", { headers: { "x-stop": "1" } });
    await ask("/hello/ada");
    await ask("/nowhere");
    const { requests } = service.telemetry;
    await expect.poll(() => requests).toHaveLength(5);
    const id = expect.stringMatching(/^req_/);
    const host = { id, area: "desk", route: "host", error: undefined };
    expect(requests).toEqual([
      { ...host, method: "POST", status: 200 },
      { ...host, method: "GET", status: 418 },
      { ...host, method: "GET", status: 200 },
      { id, area: "desk", route: "desk.hello", method: "GET", status: 200, error: undefined },
      { id, area: "desk", route: "unmatched", method: "GET", status: 404, error: "not_found" },
    ]);
    expect(service.begun.map(({ path }) => path)).toEqual(["/own/:what", "/teapot", "/hello/:name", "/hello/:name", ""]);
    expect(service.begun.slice(0, 2).every(({ beganMsAgo = 0 }) => beganMsAgo >= 19)).toBe(true);
  });

  it("is refused by the rules of hosts and origins before any middleware of the host", async () => {
    await using service = await open(kind, { allowedOrigins: [] });
    let isSeen = false;
    service.h3.use(() => void (isSeen = true));
    const answer = await service.call("/hello/ada", { headers: { origin: "https://evil.example" } });
    expect([answer.status, await answer.json(), isSeen]).toEqual([403, { error: "origin_not_allowed" }, false]);
  });
});

async function open(kind: HostKind, options?: { readonly allowedOrigins: readonly string[] }) {
  const telemetry = createMemoryTelemetry();
  const begun: ports.RequestBegin[] = [];
  const { begin } = telemetry;
  Object.assign(telemetry, { begin: (request: ports.RequestBegin) => (begun.push(request), begin(request)) });
  const app = await createApp({
    name: "desk",
    adapters: [memoryTelemetry({ telemetry })],
    plugins: [desk],
    ...(options && { surfaces: { desk: options } }),
  });
  const host = await openHost(kind, app);
  return {
    telemetry,
    begun,
    h3: app.surface("desk").h3,
    call: host.call,
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
