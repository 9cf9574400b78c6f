import { createEndedRequests } from "@portico/adapters/telemetry/ended-requests";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { memoryBus } from "@portico/adapters/bus/memory";
import { createLoopback, loopbackRealtime } from "@portico/adapters/realtime/loopback";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import {
  type Adapter,
  type App,
  createApp,
  defineAdapter,
  defineContract,
  defineErrors,
  definePlugin,
  ports,
  type Scope,
  reply,
} from "@portico/core";
import * as v from "valibot";
import { describe, expect, it, onTestFinished, vi } from "vitest";

/** Vitest fails a run in which an error ends up outside of any call. */
const KINDS = {
  throws: (): never => {
    throw new Error("of the callback");
  },
  rejects: (): never => Promise.reject(new Error("of the callback")) as never,
  "gives a wrong type": (): never => 7 as never,
};

describe.each(Object.entries(KINDS))("a callback that %s ends only its own call:", (kind, fail) => {
  const isLogged = kind !== "gives a wrong type";

  it.each<[what: string, hand: (given: Given) => unknown]>([
    ["a timer", ({ clock }) => void clock.after(0, fail)],
    [
      "a listener of the bus",
      ({ bus }) => {
        bus.subscribe("news", { received: fail, missed: fail });
        bus.publish("news", 1);
      },
    ],
  ])("%s", async (_what, hand) => {
    const { telemetry, app } = await open(hand);
    if (isLogged) await expect.poll(() => telemetry.lines.filter(({ level }) => level === "error")).toHaveLength(1);
    await expectServing(app);
  });

  it("handlers of realtime connections", async () => {
    const loopback = createLoopback();
    const { telemetry, app } = await open(
      ({ realtime }) =>
        realtime.serve({
          ...{ surface: "api", path: "/live/" },
          admit: async () => "ada",
          ...{ resume: fail, joined: fail, receive: fail, gone: fail },
        }),
      [loopbackRealtime({ loopback })],
    );
    const client = await loopback.connect({});
    client.emit("hello", {});
    client.leave();
    if (isLogged) await expect.poll(() => telemetry.lines.filter(({ level }) => level === "error").length).toBeGreaterThan(2);
    await expectServing(app);
  });

  it("hooks of WebSockets", async () => {
    const hooks = { open: fail, message: fail, close: fail, error: fail };
    const { telemetry, app } = await open(({ webSocketPaths }) =>
      webSocketPaths.serve({ surface: "api", path: "/shared/", hooks }),
    );
    const answer = await app.fetch(new Request("http://localhost/shared/", { headers: { upgrade: "websocket" } }));
    const { crossws } = answer as { crossws?: Readonly<Record<string, () => void>> };
    for (const name of Object.keys(hooks)) crossws![name]!();
    if (isLogged) await expect.poll(() => telemetry.lines.filter(({ level }) => level === "error")).toHaveLength(4);
    await expectServing(app);
  });

  it("the envelope of an error", async () => {
    const { app } = await open(() => {}, [], fail);
    const answer = await app.fetch(new Request("http://localhost/broken"));
    expect(answer.status).toBe(500);
    await expectServing(app);
  });

  it("everything of telemetry", async () => {
    const printed = vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => printed.mockRestore());
    const telemetry = defineAdapter({
      name: "telemetry/own",
      port: ports.telemetry,
      needs: {},
      open: (): ports.Telemetry => ({
        log: { debug: fail, info: fail, warn: fail, error: fail },
        begin: kind === "throws" ? fail : () => ({ note: fail, run: (work) => work(), end: fail }),
        work: fail,
        traceparent: fail,
        modelCall: fail,
        gauge: () => () => {},
      }),
    });
    await using app = await createApp({
      name: "own",
      adapters: [telemetry(), memoryBus({}), loopbackRealtime(undefined)],
      plugins: [broken(() => {})],
    });
    expect((await app.fetch(new Request("http://localhost/broken"))).status).toBe(500);
    await expectServing(app);
    if (isLogged) expect(printed).toHaveBeenCalled();
  });

  it("the destination of a log, a gauge and a listener for ended requests", async () => {
    const printed = vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => printed.mockRestore());
    const [prometheus, endedRequests] = [createPrometheusMetrics(), createEndedRequests()];
    const heard = vi.fn();
    endedRequests.listen(fail);
    endedRequests.listen(heard);
    const written = vi.fn(fail);
    const telemetry = openTelemetry({ destination: { write: written, flushSync: fail }, prometheus, endedRequests });
    await using app = await createApp({
      name: "own",
      adapters: [telemetry, memoryBus({}), loopbackRealtime(undefined)],
      plugins: [
        broken((given) => {
          given.telemetry.gauge({ name: "portico_broken", help: "Broken.", read: fail });
          given.telemetry.gauge({ name: "portico_mixed", help: "Mixed.", read: () => [fail as never, { labels: {}, value: 7 }] });
        }),
      ],
    });
    await expectServing(app);
    await expect.poll(() => written).toHaveBeenCalled();
    expect(heard).toHaveBeenCalledTimes(1);
    expect(await prometheus.text()).toContain("portico_mixed 7");
  });
});

interface Given {
  readonly clock: ports.Clock;
  readonly bus: ports.Bus;
  readonly realtime: ports.Realtime;
  readonly webSocketPaths: ports.WebSocketPaths;
  readonly telemetry: ports.Telemetry;
}

const errors = defineErrors({ broken: { status: 500 } });

function broken(hand: (given: Given, scope: Scope) => unknown, envelope?: () => never) {
  return definePlugin({
    name: "own",
    config: v.strictObject({}),
    needs: {
      ...{ clock: ports.clock, bus: ports.bus, realtime: ports.realtime, telemetry: ports.telemetry },
      webSocketPaths: ports.webSocketPaths,
    },
    contract: defineContract(
      { surface: "api", auth: "open", envelope: envelope ?? ((error: { readonly code: string }) => ({ error: error.code })) },
      {
        works: { method: "GET", path: "/works", summary: "Works", success: reply.json(v.string()) },
        broken: { method: "GET", path: "/broken", summary: "Fails", success: reply.json(v.string()), errors },
      },
    ),
    setup(given, _config, scope) {
      hand(given as unknown as Given, scope);
      return {
        works: () => "yes",
        broken({ fail }) {
          throw fail.broken(undefined, undefined, new Error("of the handler"));
        },
      };
    },
  })({});
}

async function open(hand: (given: Given) => unknown, more: readonly Adapter[] = [], envelope?: () => never) {
  const telemetry = createMemoryTelemetry();
  const app = await createApp({
    name: "own",
    adapters: [memoryTelemetry({ telemetry }), memoryBus({}), ...(more.length > 0 ? more : [loopbackRealtime(undefined)])],
    plugins: [broken(hand, envelope)],
  });
  onTestFinished(() => app.close());
  return { app, telemetry };
}

async function expectServing(app: App): Promise<void> {
  // Errors outside of calls come in later turns of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  const answer = await app.fetch(new Request("http://localhost/works"));
  expect([answer.status, await answer.json()]).toEqual([200, "yes"]);
}
