import { type App, createApp, defineContract, definePlugin, ports, reply } from "@portico/core";
import { H3 } from "h3";
import * as v from "valibot";
import { describe, expect, it } from "vitest";

const hooks = { open() {} };
const shared = { surface: "agent", path: "/shared/", hooks };
const upgrade = { headers: { upgrade: "websocket" } };

describe("a WebSocket path", () => {
  it("hands its hooks to the host on the answer to a request for a WebSocket, before a route of the same path", async () => {
    await using app = await open();
    app.paths.serve(shared);
    expect(await hooksOf(app, "/shared/?a=1")).toEqual({ open: expect.any(Function) });
  });

  it("hands them through a host that has mounted the surface", async () => {
    await using app = await open();
    app.paths.serve(shared);
    const host = new H3().mount("/agent", { fetch: app.surface("agent").fetch });
    const answer = await host.fetch(new Request("http://test/agent/shared/", upgrade));
    expect((answer as { crossws?: object }).crossws).toEqual({ open: expect.any(Function) });
  });

  it("answers other requests with an explanation of the path", async () => {
    await using app = await open();
    app.paths.serve(shared);
    const answer = await app.surface("agent").fetch(new Request("http://test/shared/"));
    expect([answer.status, await answer.json()]).toEqual([
      426,
      { error: "upgrade_required", message: "This path is for WebSockets" },
    ]);
  });

  it.each(["/shared", "/shared/more", "/%73hared/", "/Shared/"])(
    "matches only its exact spelling: %s is a different path",
    async (other) => {
      await using app = await open();
      app.paths.serve(shared);
      expect(await hooksOf(app, other)).toBeUndefined();
    },
  );

  it("is served until it is released, and by others after that", async () => {
    await using app = await open();
    const release = app.paths.serve(shared);
    release();
    expect(await (await app.surface("agent").fetch(new Request("http://test/shared/"))).text()).toBe('"route"');
    app.paths.serve({ ...shared });
    release();
    expect(await hooksOf(app, "/shared/")).toEqual({ open: expect.any(Function) });
  });

  it("is served once: a second time stops with a sentence", async () => {
    await using app = await open();
    app.paths.serve(shared);
    expect(() => app.paths.serve(shared)).toThrow('Path /shared/ of surface "agent" is served twice');
    app.paths.serve({ ...shared, surface: "workflow" });
  });

  it("is not opened for another host where the surface is bound to hosts", async () => {
    await using app = await open();
    app.paths.serve(shared);
    const bound = app.surface("agent").forHosts(["desk.example"]);
    const answer = await bound.fetch(new Request("http://evil.example/shared/", upgrade));
    expect([answer.status, "crossws" in answer]).toEqual([421, false]);
  });

  it("makes a surface of its own where no plugin has routes", async () => {
    const alone = definePlugin({
      name: "alone",
      config: v.strictObject({}),
      needs: { paths: ports.webSocketPaths },
      contract: {},
      setup(given, _config, scope) {
        scope.onClose(given.paths.serve({ ...shared, surface: "side" }));
        return {};
      },
    });
    await using app = await createApp({ name: "alone", plugins: [alone({})] });
    expect(app.surfaces).toEqual(["side"]);
  });
});

async function hooksOf(app: App, path: string): Promise<object | undefined> {
  const answer = await app.surface("agent").fetch(new Request(`http://test${path}`, upgrade));
  return (answer as { crossws?: object }).crossws;
}

async function open(): Promise<App & { readonly paths: ports.WebSocketPaths }> {
  const opened: { paths?: ports.WebSocketPaths } = {};
  const plugin = definePlugin({
    name: "paths",
    config: v.strictObject({}),
    needs: { paths: ports.webSocketPaths },
    contract: defineContract(
      { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code }) },
      { shared: { method: "GET", path: "/shared/", summary: "", success: reply.json(v.string()) } },
    ),
    setup(given) {
      opened.paths = given.paths;
      return { shared: () => "route" };
    },
  });
  const app = await createApp({ name: "paths", plugins: [plugin({})] });
  return { ...app, paths: opened.paths! };
}
