import { type IncomingMessage, request } from "node:http";
import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { webSocketRealtime } from "@portico/adapters/realtime/websocket";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, defineContract, defineErrors, definePlugin, reply } from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { hostKinds, type HostKind, openHost } from "../../harness/hosts.ts";
import { serveNamed } from "../../harness/named-service.ts";
import { openRealtimeHost } from "../../harness/realtime-host.ts";

const contract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code }) },
  {
    json: { method: "GET", path: "/json", summary: "", success: reply.json(v.object({ ok: v.boolean() })) },
    bytes: { method: "GET", path: "/bytes", summary: "", success: reply.bytes() },
    events: { method: "GET", path: "/events", summary: "", success: reply.events({ done: v.object({}) }) },
    fails: {
      method: "GET",
      path: "/fails",
      summary: "",
      success: reply.json(v.object({})),
      errors: defineErrors({ tired: { status: 503 } }),
    },
    passes: {
      method: "GET",
      path: "/passes",
      summary: "",
      query: v.strictObject({ id: v.optional(v.string()) }),
      success: reply.exchange(["text/plain"]),
    },
  },
);

const PATHS = ["/json", "/bytes", "/events", "/fails", "/passes", "/nowhere", "/host-route"];

describe.each(hostKinds)("request ids on a %s host", (kind) => {
  it.each(["4d7a1c2e-9a8f-4f0e-8a57-0e2f6b8f1b3c", "5f0c9b1f7c2a4d0e8a570e2f6b8f1b3c", "a", `a${".".repeat(127)}`])(
    "an accepted x-request-id is answered and logged, whatever the answer is: %s",
    async (id) => {
      await using service = await open(kind);
      for (const path of PATHS) {
        const answer = await service.call(path, { headers: { "x-request-id": id } });
        await answer.text();
        expect([path, answer.headers.get("x-request-id")]).toEqual([path, id]);
      }
      await expect.poll(() => service.telemetry.requests.length).toBe(PATHS.length);
      expect(service.telemetry.requests.map(({ callerRequestId }) => callerRequestId)).toEqual(PATHS.map(() => id));
    },
  );

  it.each(["", " ", "-a", "a b", "a\tb", "a,b", "ä", "a;b=c", `a${"b".repeat(128)}`])(
    "any other is replaced by the service's own id: %o",
    async (id) => {
      await using service = await open(kind);
      for (const path of PATHS) {
        const answer = await service.call(path, { headers: { "x-request-id": id } });
        await answer.text();
        const given = answer.headers.get("x-request-id");
        expect([path, given]).toEqual([path, expect.stringMatching(/^req_[0-9A-Za-z]+$/)]);
        if (path !== "/host-route") expect(answer.headers.get("x-portico-request-id")).toBe(given);
      }
      await expect.poll(() => service.telemetry.requests.length).toBe(PATHS.length);
      expect(service.telemetry.requests.map(({ callerRequestId }) => callerRequestId)).toEqual(PATHS.map(() => undefined));
    },
  );

  it("the service's own id stays its own, so that a caller's id cannot hide a request in the log", async () => {
    await using service = await open(kind);
    const answers = [];
    for (let count = 0; count < 2; count++) answers.push(await service.call("/json", { headers: { "x-request-id": "same" } }));
    const own = answers.map(({ headers }) => headers.get("x-portico-request-id"));
    expect(new Set(own).size).toBe(2);
    await expect.poll(() => service.telemetry.requests.map(({ id }) => id)).toEqual(own);
  });

  it("a handler that passes on an answer may pass on the id of the other service", async () => {
    await using service = await open(kind);
    const answer = await service.call("/passes?id=of-the-other", { headers: { "x-request-id": "of-the-caller" } });
    expect(answer.headers.get("x-request-id")).toBe("of-the-other");
    await answer.text();
    await expect.poll(() => service.telemetry.requests).toMatchObject([{ callerRequestId: "of-the-caller" }]);
  });
});

describe("request ids of upgrades", () => {
  it.each([
    ["socket.io", () => socketIoRealtime(undefined), "/live/?EIO=4&transport=websocket"],
    ["websocket", () => webSocketRealtime(undefined), "/live/"],
  ])("%s answers an accepted id, also where it refuses", async (_name, adapter, path) => {
    await using host = await openRealtimeHost(adapter());
    serveNamed(host.realtime);
    for (const [origin, status] of [
      [host.origin, 101],
      ["http://evil.example", 403],
    ] as const) {
      expect(await upgrade(host.origin + path, origin, "from-a-proxy")).toEqual([status, "from-a-proxy"]);
      expect(await upgrade(host.origin + path, origin, "not accepted")).toEqual([status, undefined]);
    }
  });
});

/** Status and `x-request-id` of the answer to an upgrade. */
function upgrade(url: string, origin: string, id: string): Promise<unknown[]> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown[]>();
  const headers = {
    origin,
    "x-request-id": id,
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  };
  const asked = request(url, { headers });
  const tell = (answer: IncomingMessage) => {
    resolve([answer.statusCode, answer.headers["x-request-id"]]);
    answer.socket.destroy();
  };
  asked.on("upgrade", tell).on("response", tell).on("error", reject).end();
  return promise;
}

async function open(kind: HostKind) {
  const telemetry = createMemoryTelemetry();
  const plugin = definePlugin({
    name: "passing",
    config: v.strictObject({}),
    contract,
    needs: {},
    guards: () => ({ open: async () => undefined }),
    setup: () => ({
      json: async () => ({ ok: true }),
      bytes: async () => new Response("bytes"),
      async *events({ say }) {
        yield say.done({});
      },
      async fails({ fail }) {
        throw fail.tired();
      },
      async passes({ exchange, query }) {
        exchange.respond(200, { "content-type": "text/plain", ...(query.id && { "x-request-id": query.id }) }).end("x");
      },
    }),
  });
  const app = await createApp({ name: "test", adapters: [memoryTelemetry({ telemetry })], plugins: [plugin({})] });
  app.surface("agent").h3.get("/host-route", () => "of the host");
  const host = await openHost(kind, app);
  return {
    telemetry,
    call: host.call,
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
