import { createServer, type IncomingMessage, type Server } from "node:http";
import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type App, createApp, defineContract, definePlugin, ports, reply } from "@portico/core";
import { attach, refuseUpgrade, toNodeHandler } from "@portico/core/node";
import express from "express";
import { H3 } from "h3";
import { toNodeHandler as h3ToNode } from "h3/node";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { listen } from "../../harness/hosts.ts";
import { rawCall, statusOf } from "../../harness/raw-call.ts";

describe("a Node path", () => {
  it("is answered on Node's own request, with its query, before a route of the same path", async () => {
    await using app = await open();
    app.paths.serve(path("/shared/"));
    await using host = await listen(toNodeHandler(app.surface("agent")));
    expect(await text(host.call("/shared/?a=%2F"))).toBe("served GET /shared/?a=%2F");
    expect(await text(host.call("/shared/", { method: "POST", body: "x" }))).toBe("served POST /shared/");
  });

  it.each(["/shared", "/shared/more", "/%73hared/", "/Shared/"])(
    "matches only its exact spelling: %s is a different path",
    async (other) => {
      await using app = await open();
      app.paths.serve(path("/shared/"));
      await using host = await listen(toNodeHandler(app.surface("agent")));
      expect(await text(host.call(other))).not.toContain("served");
    },
  );

  it("is served until it is released, and by others after that", async () => {
    await using app = await open();
    await using host = await listen(toNodeHandler(app.surface("agent")));
    const release = app.paths.serve(path("/shared/"));
    release();
    expect(await text(host.call("/shared/"))).toBe('"route"');
    app.paths.serve(path("/shared/"));
    release();
    expect(await text(host.call("/shared/"))).toBe("served GET /shared/");
  });

  it("is served once: a second time stops with a sentence, and other surfaces do not mind", async () => {
    await using app = await open();
    app.paths.serve(path("/shared/"));
    expect(() => app.paths.serve(path("/shared/"))).toThrow('Path /shared/ of surface "agent" is served twice');
    app.paths.serve({ ...path("/shared/"), surface: "workflow" });
  });

  it("is not served on fetch hosts, which have no Node request", async () => {
    await using app = await open();
    app.paths.serve(path("/shared/"));
    expect(await text(app.surface("agent").fetch(new Request("http://test/shared/")))).toBe('"route"');
  });

  it("is held open, and routes are not", async () => {
    await using app = await open();
    app.paths.serve(path("/shared/"));
    const surface = app.surface("agent");
    expect(["/shared/", "/shared/?x", "/shared", "/other"].map((url) => surface.isHeldOpen({ url }))).toEqual([
      ...[true, true, false, false],
    ]);
  });

  it("makes a surface of its own where no plugin has routes", async () => {
    const alone = definePlugin({
      name: "alone",
      config: v.strictObject({}),
      needs: { paths: ports.nodePaths },
      contract: {},
      setup(given, _config, scope) {
        scope.onClose(given.paths.serve({ ...path("/alone/"), surface: "side" }));
        return {};
      },
    });
    await using app = await createApp({ name: "alone", plugins: [alone({})] });
    expect(app.surfaces).toEqual(["side"]);
    await using host = await listen(toNodeHandler(app.surface("side")));
    expect(await text(host.call("/alone/"))).toBe("served GET /alone/");
    expect((await host.call("/nowhere")).status).toBe(404);
  });

  it("of one app is not seen by another in the same process", async () => {
    await using first = await open();
    await using second = await open();
    first.paths.serve(path("/shared/"));
    expect(second.surface("agent").isHeldOpen({ url: "/shared/" })).toBe(false);
    second.paths.serve(path("/shared/"));
  });

  it("whose handler throws ends only that connection and logs the error", async () => {
    await using app = await open();
    const fail = () => {
      throw new RangeError("hunter2");
    };
    app.paths.serve({ ...path("/broken/"), request: fail, upgrade: fail });
    await using host = await attached(app);
    await expect(host.get("/broken/")).resolves.toBe("");
    expect(statusOf(await host.upgrade("/broken/"))).toBe(500);
    expect(await host.get("/shared/")).toContain('"route"');
    expect(app.telemetry.lines).toMatchObject([
      { level: "error", fields: { path: "/broken/" }, cause: { name: "RangeError" } },
      { level: "error", fields: { path: "/broken/" }, cause: { name: "RangeError" } },
    ]);
  });
});

describe("a surface that no host attached", () => {
  it("says so once in its log: for a web request, and for an upgrade", async () => {
    await using first = await open();
    first.paths.serve(path("/live/"));
    for (let times = 0; times < 2; times++) await first.surface("agent").fetch(new Request("http://test/live/"));
    await using second = await open();
    second.paths.serve(path("/live/"));
    await using host = await listen(toNodeHandler(second.surface("agent")));
    await host.call("/live/");
    expect(second.telemetry.lines).toEqual([]);
    await rawCall(host.origin, "GET /live/ HTTP/1.1\r\nHost: test\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n");
    const line = { level: "warn", message: expect.stringContaining("is not attached"), fields: { path: "/live/" } };
    expect([first.telemetry.lines, second.telemetry.lines]).toMatchObject([[line], [line]]);
  });
});

describe("attached to a server, a surface", () => {
  it("takes upgrades of its paths, and shares the server with others under paths of their own", async () => {
    await using app = await open();
    app.paths.serve(path("/live/"));
    app.paths.serve({ ...path("/live/", "other"), surface: "workflow" });
    await using host = await attached(app, { agent: "/agent", workflow: "/workflow" });
    expect(await host.upgrade("/agent/live/?n=1")).toContain("hello of served /live/?n=1");
    expect(await host.upgrade("/workflow/live/")).toContain("hello of other /live/");
    expect(await host.upgrade("/live/")).toContain("served GET /live/");
    expect(statusOf(await host.upgrade("/agentlive/"))).toBe(404);
    expect(host.server.listenerCount("upgrade")).toBe(1);
  });

  it("takes requests of its paths from a host whose handlers get web requests, and leaves the host all others", async () => {
    await using app = await open();
    app.paths.serve(path("/live/"));
    const host = new H3().get("/own", () => "own").mount("/agent", { fetch: app.surface("agent").fetch });
    await using served = await attached(app, { agent: "/agent" }, createServer(h3ToNode(host)));
    expect(await served.get("/agent/live/?n=1")).toContain("served GET /live/?n=1");
    expect(await served.get("/agent/shared/")).toContain('"route"');
    expect(await served.get("/live/")).not.toContain("served");
    expect(await served.get("/own")).toContain("own");
  });

  it("knows which requests are held", async () => {
    await using app = await open();
    const held = Promise.withResolvers<() => void>();
    app.paths.serve({ ...path("/live/"), request: (_request, response) => held.resolve(() => response.end("at last")) });
    await using host = await attached(app);
    const answer = host.get("/live/");
    const end = await held.promise;
    const [response] = host.attachment.open;
    const closed = once(response!, "close");
    end();
    expect(await answer).toContain("at last");
    await closed;
    expect(host.attachment.open.size).toBe(0);
  });

  it("cuts what is open when its attachment is closed, and takes nothing more", async () => {
    await using app = await open();
    const came = { request: Promise.withResolvers<void>(), upgrade: Promise.withResolvers<void>() };
    app.paths.serve({ ...path("/live/"), request: () => came.request.resolve(), upgrade: () => came.upgrade.resolve() });
    await using host = await attached(app);
    const answers = [host.get("/live/"), host.upgrade("/live/")];
    await Promise.all([came.request.promise, came.upgrade.promise]);
    expect(host.attachment.open.size).toBe(2);
    host.attachment.close();
    expect(await Promise.all(answers)).toEqual(["", ""]);
    expect(host.server.listenerCount("upgrade")).toBe(0);
  });

  it("ends its event streams when its attachment is closed, so that the server's close can finish", async () => {
    await using app = await open();
    await using host = await attached(app);
    const closed = once(host.server, "close");
    const { body } = await fetch(`${host.origin}/ticks`, { headers: { connection: "close" } });
    const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toBe("event: tick\ndata: 1\n\n");
    host.server.close();
    host.attachment.close();
    expect((await reader.read()).done).toBe(true);
    await closed;
  });

  it("knows which upgraded connections are open", async () => {
    await using app = await open();
    const taken = Promise.withResolvers<{ readonly end: () => void }>();
    app.paths.serve({
      ...path("/live/"),
      upgrade: (_request, socket) => taken.resolve({ end: () => refuseUpgrade(socket, 403, {}) }),
    });
    await using host = await attached(app);
    const answer = host.upgrade("/live/");
    const { end } = await taken.promise;
    expect(host.attachment.open.size).toBe(1);
    const [socket] = host.attachment.open;
    const closed = once(socket!, "close");
    end();
    expect(statusOf(await answer)).toBe(403);
    await closed;
    expect(host.attachment.open.size).toBe(0);
  });

  it("outlives a client that resets its upgraded connection", async () => {
    await using app = await open();
    const taken = Promise.withResolvers<Duplex>();
    app.paths.serve({ ...path("/live/"), upgrade: (_request, socket) => taken.resolve(socket.resume()) });
    await using host = await attached(app);
    const client = connect(Number(new URL(host.origin).port), "127.0.0.1");
    client.write("GET /live/ HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    const socket = await taken.promise;
    const failed = new Promise((resolve) => socket.once("close", resolve));
    client.resetAndDestroy();
    await failed;
    expect(socket.errored).toMatchObject({ code: "ECONNRESET" });
    expect(await host.upgrade("/shared/")).toContain('"route"');
  });

  it.each([
    ["h2c on a path of its own", "/live/", "h2c"],
    ["h2c on a route", "/shared/", "h2c"],
    ["a WebSocket on a route", "/shared/", "websocket"],
    ["a WebSocket nowhere", "/nowhere", "websocket"],
  ])("answers who asks for %s as an ordinary request", async (_what, where, protocol) => {
    await using app = await open();
    app.paths.serve(path("/live/"));
    await using host = await attached(app);
    const answer = await host.upgrade(where, protocol);
    expect(statusOf(answer)).toBe(where === "/nowhere" ? 404 : 200);
    expect(answer).toContain(where === "/live/" ? "served GET /live/" : where === "/shared/" ? '"route"' : "not_found");
  });

  it("refuses what is not served here where Node cannot ask first", async () => {
    await using app = await open();
    app.paths.serve(path("/live/"));
    const server = createServer(toNodeHandler(app.surface("agent")));
    Object.assign(server, { shouldUpgradeCallback: undefined });
    await using host = await attached(app, { agent: "" }, server);
    Object.assign(server, { shouldUpgradeCallback: () => true });
    expect(await host.upgrade("/live/")).toContain("hello of served /live/");
    expect(statusOf(await host.upgrade("/live/", "h2c"))).toBe(404);
    expect(statusOf(await host.upgrade("/nowhere"))).toBe(404);
  });

  it("leaves all other upgrades to the host's own listener", async () => {
    await using app = await open();
    app.paths.serve(path("/live/"));
    await using host = await attached(app);
    host.server.on("upgrade", (request, socket) => {
      if (request.url === "/own") socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\nhost's own");
    });
    expect(await host.upgrade("/own")).toContain("host's own");
    expect(await host.upgrade("/live/")).toContain("hello of served /live/");
  });

  it.each(["agent", "/agent", "/agent/", "//agent//"])("is served under %s as under /agent", async (under) => {
    await using app = await open();
    app.paths.serve(path("/live/"));
    await using host = await attached(app, { agent: under });
    expect(await host.upgrade("/agent/live/")).toContain("hello of served /live/");
  });

  it.each(["/:tenant", "/agent/*", "/agent?x", "/agent#x", "http://desk.example/agent", "/a b", "/a//b", "/[a-z]+"])(
    "is refused under %s, with a sentence",
    async (under) => {
      await using app = await open();
      expect(() => attach(createServer(), app.surface("agent"), { under })).toThrow("give one fixed path");
    },
  );

  it("is refused without a path in an object, and without Node's own server", async () => {
    await using app = await open();
    const surface = app.surface("agent");
    for (const wrong of ["/agent", null, { under: 7 }])
      expect(() => attach(createServer(), surface, wrong as never)).toThrow('{ under: "/agent" }');
    for (const wrong of [undefined, {}, express()])
      expect(() => attach(wrong as never, surface)).toThrow("needs the server of node:http that listens");
  });

  it("warns once if upgrades arrive at another path than it is attached under, and not of the host's own upgrades", async () => {
    await using app = await open();
    app.paths.serve(path("/live/"));
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on("warning", note);
    try {
      await using other = await attached(app, { agent: "/agent" });
      other.server.on("upgrade", (_request, socket) => void socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\nown"));
      await other.upgrade("/own/live/");
      await using host = await attached(app, { agent: "/agent" });
      await host.upgrade("/elsewhere/");
      await host.upgrade("/api/agent/live/?n=1");
      await host.upgrade("/api/agent/live/");
      await host.get("/agent/live/");
    } finally {
      process.off("warning", note);
    }
    expect(warnings).toMatchObject([{ name: "PorticoWarning", code: "PORTICO_ATTACHED_ELSEWHERE" }]);
    expect(warnings[0]!.message).toContain("An upgrade for /live/ arrived, but not at /agent/live/");
  });

  it("gives the server back as it was when it is detached, and takes nothing more", async () => {
    await using app = await open();
    app.paths.serve(path("/live/"));
    const server = createServer(toNodeHandler(app.surface("agent")));
    const { shouldUpgradeCallback } = server as { shouldUpgradeCallback?: unknown };
    const requestListeners = server.listeners("request");
    await using host = await attached(app, { agent: "" }, server);
    const second = attach(server, app.surface("workflow"));
    second.detach();
    expect(await host.upgrade("/live/")).toContain("hello of served /live/");
    host.attachment.detach();
    host.attachment.detach();
    expect(server.listenerCount("upgrade")).toBe(0);
    expect(server.listeners("request")).toEqual(requestListeners);
    expect((server as { shouldUpgradeCallback?: unknown }).shouldUpgradeCallback).toBe(shouldUpgradeCallback);
    expect(await host.upgrade("/live/")).toContain("served GET /live/");
    attach(server, app.surface("agent"));
    expect(await host.upgrade("/live/")).toContain("hello of served /live/");
  });
});

/** Returns the requested path, and greets upgraded connections with `name` and the path that it sees. */
function path(path: string, name = "served"): ports.NodePath {
  return {
    surface: "agent",
    path,
    request: (request, response) => void response.end(`${name} ${request.method} ${request.url}`),
    upgrade: (request: IncomingMessage, socket) =>
      void socket.end(`HTTP/1.1 101 Switching Protocols\r\n\r\nhello of ${name} ${request.url}`),
  };
}

async function text(answer: Response | Promise<Response>): Promise<string> {
  return (await answer).text();
}

async function open() {
  const telemetry = createMemoryTelemetry();
  const given: { paths?: ports.NodePaths } = {};
  const contract = defineContract(
    { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code }) },
    {
      route: { method: "GET", path: "/shared/", summary: "", success: reply.json(v.string()) },
      ticks: { method: "GET", path: "/ticks", summary: "", success: reply.events({ tick: v.number() }) },
      other: { surface: "workflow", method: "GET", path: "/shared/", summary: "", success: reply.json(v.string()) },
    },
  );
  const routes = definePlugin({
    name: "routes",
    config: v.strictObject({}),
    needs: { paths: ports.nodePaths },
    contract,
    setup({ paths }) {
      given.paths = paths;
      return {
        route: () => "route",
        other: () => "route",
        async *ticks({ say, signal }) {
          yield say.tick(1);
          await once(signal, "abort");
        },
      };
    },
  });
  const app: App = await createApp({ name: "paths", adapters: [memoryTelemetry({ telemetry })], plugins: [routes({})] });
  return {
    paths: given.paths!,
    telemetry,
    surface: (name: string) => app.surface(name),
    [Symbol.asyncDispose]: () => app.close(),
  };
}

/** The app's surfaces on one bare server, each attached under its path. */
async function attached(
  app: Awaited<ReturnType<typeof open>>,
  surfaces: Readonly<Record<string, string>> = { agent: "" },
  server: Server = createServer(toNodeHandler(app.surface("agent"))),
) {
  const [attachment] = Object.entries(surfaces).map(([name, under]) => attach(server, app.surface(name), { under }));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const head = (url: string, more: string) => `GET ${url} HTTP/1.1\r\nHost: test\r\n${more}\r\n`;
  return {
    server,
    origin,
    attachment: attachment!,
    get: (url: string) => rawCall(origin, head(url, "Connection: close\r\n")),
    upgrade: (url: string, protocol = "websocket") =>
      rawCall(origin, head(url, `Connection: Upgrade, close\r\nUpgrade: ${protocol}\r\n`)),
    async [Symbol.asyncDispose]() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
