import { once } from "node:events";
import { connect } from "node:net";
import { createManualClock } from "@portico/adapters/clock/manual";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, defineAdapter, defineContract, defineErrors, definePlugin, ports, reply } from "@portico/core";
import { createClient } from "@portico/core/client";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { type HostKind, hostKinds, openHost } from "../../harness/hosts.ts";

const contract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code, message: error.message }) },
  {
    ticks: {
      method: "GET",
      path: "/ticks/:how",
      summary: "",
      params: v.object({ how: v.string() }),
      success: reply.events({ tick: v.object({ n: v.number(), text: v.optional(v.string()) }), "odd:end": v.null() }),
      errors: defineErrors({ run_unknown: { status: 404 }, worn_out: { status: 503, message: "No more ticks" } }),
    },
  },
);

/** What the source of the events saw. */
interface Source {
  made: number;
  readonly returned: Promise<void>;
  readonly waiting: Promise<void>;
  readonly aborted: Promise<void>;
}

describe.each(hostKinds)("an event stream on a %s host", (kind) => {
  it("is sent as named events with JSON data, and ends when its source does", async () => {
    await using service = await open(kind);
    const response = await service.call("/ticks/three");
    expect([response.status, response.headers.get("content-type"), response.headers.get("cache-control")]).toEqual([
      200,
      "text/event-stream",
      "no-store",
    ]);
    expect(response.headers.get("x-accel-buffering")).toBe("no");
    expect(response.headers.get("x-portico-request-id")).toMatch(/^req_/);
    expect(await response.text()).toBe(
      'event: tick\ndata: {"n":1}\n\nevent: tick\ndata: {"n":2,"text":"a\\nb"}\n\nevent: odd:end\ndata: null\n\n',
    );
  });

  it("has the ids of its events, and the time after which readers connect again", async () => {
    await using service = await open(kind);
    expect(await (await service.call("/ticks/numbered")).text()).toBe(
      'retry: 3000\n\nid: run:1 é\nevent: tick\ndata: {"n":1}\n\n',
    );
    const { ticks } = createClient(contract, { baseURL: "http://ticks.local", fetch: service.app.fetch });
    const read = [];
    for await (const event of await ticks({ params: { how: "numbered" } })) read.push(event);
    expect(read).toEqual([{ event: "tick", data: { n: 1 }, id: "run:1 é" }]);
  });

  it("sends no event whose id contains a line break", async () => {
    await using service = await open(kind);
    const { text, isBroken } = await readToTheEnd(await service.call("/ticks/split"));
    expect(text).toBe('event: error\ndata: {"error":"internal_error","message":"Internal error"}\n\n');
    expect(isBroken).toBe(true);
  });

  it("has its head before its first event", async () => {
    await using service = await open(kind);
    const response = await service.call("/ticks/silent");
    expect(response.status).toBe(200);
    const reader = response.body!.getReader();
    void reader.read();
    await reader.cancel();
    await service.source.returned;
  });

  it("that fails before it begins is an ordinary error", async () => {
    await using service = await open(kind);
    const response = await service.call("/ticks/unknown");
    expect([response.status, await response.json()]).toEqual([404, { error: "run_unknown", message: "run_unknown" }]);
  });

  it("may be decided on with a promise", async () => {
    await using service = await open(kind);
    expect((await service.call("/ticks/asked-unknown")).status).toBe(404);
    expect(await (await service.call("/ticks/asked")).text()).toContain('data: {"n":1}');
  });

  it("whose source throws a declared error says so in the contract's envelope, and then breaks", async () => {
    await using service = await open(kind);
    const { text, isBroken } = await readToTheEnd(await service.call("/ticks/worn"));
    expect(text).toBe('event: tick\ndata: {"n":1}\n\nevent: error\ndata: {"error":"worn_out","message":"No more ticks"}\n\n');
    expect(isBroken).toBe(true);
    expect(service.telemetry.requests).toMatchObject([{ status: 200, error: "worn_out" }]);
  });

  it("whose source throws anything else hides it, and logs it with the request's id", async () => {
    await using service = await open(kind);
    const response = await service.call("/ticks/crash");
    const { text, isBroken } = await readToTheEnd(response);
    expect(text).toBe('event: error\ndata: {"error":"internal_error","message":"Internal error"}\n\n');
    expect(isBroken).toBe(true);
    expect(service.telemetry.lines).toMatchObject([
      { level: "error", fields: { request: response.headers.get("x-portico-request-id") }, cause: { name: "RangeError" } },
    ]);
  });

  it("holds its source back while the reader is slow", async () => {
    await using service = await open(kind);
    const response = await service.call("/ticks/endless");
    const reader = response.body!.getReader();
    await reader.read();
    await settled(service);
    // Far less than the source could make: what fits between here and there, and not one more.
    const made = service.source.made;
    expect(made).toBeLessThan(kind === "fetch" ? 3 : 2_000);
    await settled(service);
    expect(service.source.made).toBe(made);
    await reader.cancel();
    await service.source.returned;
  });

  it("returns its source when the reader leaves, and aborts the signal even where the source is waiting", async () => {
    await using service = await open(kind);
    const response = await service.call("/ticks/waiting");
    const reader = response.body!.getReader();
    await reader.read();
    void reader.read();
    await service.source.waiting;
    await reader.cancel();
    await service.source.aborted;
    await service.source.returned;
    expect(service.telemetry.requests).toMatchObject([{ status: 200, error: undefined }]);
    expect(service.telemetry.lines).toEqual([]);
  });

  it("ends its trace when it ends, not when its head is sent", async () => {
    await using service = await open(kind);
    const response = await service.call("/ticks/waiting");
    const reader = response.body!.getReader();
    await reader.read();
    expect(service.telemetry.requests).toEqual([]);
    await reader.cancel();
    await service.source.returned;
    expect(service.telemetry.requests).toHaveLength(1);
  });

  it("is not begun for HEAD", async () => {
    await using service = await open(kind);
    const response = await service.call("/ticks/endless", { method: "HEAD" });
    expect([response.status, response.headers.get("content-type"), await response.text()]).toEqual([
      200,
      "text/event-stream",
      "",
    ]);
    expect(service.source.made).toBe(0);
    expect(service.telemetry.requests).toHaveLength(1);
  });
});

describe.each(hostKinds)("a silent event stream on a %s host", (kind) => {
  const KEEP_ALIVE = ": keep-alive\n\n";

  it("is sent a comment after every 15 seconds of silence, also before its first event", async () => {
    await using service = await open(kind);
    const read = readerOf(await service.call("/ticks/silent"));
    for (let comments = 0; comments < 3; comments++) {
      const next = read.next();
      await service.silence(14_999);
      expect(read.isWaiting()).toBe(true);
      await service.silence(1);
      expect(await next).toBe(KEEP_ALIVE);
    }
    await read.leave();
  });

  it("counts its silence from the last event on, and loses no event to a comment", async () => {
    await using service = await open(kind);
    const read = readerOf(await service.call("/ticks/told"));
    const first = read.next();
    await service.silence(14_999);
    service.tell(1);
    expect(await first).toBe(tick(1));
    const second = read.next();
    await service.silence(14_999);
    expect(read.isWaiting()).toBe(true);
    await service.silence(1);
    expect(await second).toBe(KEEP_ALIVE);
    const third = read.next();
    await service.silence(15_000);
    expect(await third).toBe(KEEP_ALIVE);
    // A source that was asked again with each comment would give both at once, and there is room for one.
    service.tell(2);
    service.tell(3);
    await settled(service);
    expect(await read.untilText(tick(3))).toBe(tick(2) + tick(3));
    await read.leave();
  });

  it("has no timer when it has ended, has broken, or was left", async () => {
    await using service = await open(kind);
    await (await service.call("/ticks/three")).text();
    expect(service.timers()).toBe(0);
    await readToTheEnd(await service.call("/ticks/crash"));
    expect(service.timers()).toBe(0);
    const read = readerOf(await service.call("/ticks/silent"));
    void read.next();
    await expect.poll(() => service.timers()).toBe(1);
    await read.leave();
    await expect.poll(() => service.timers()).toBe(0);
  });

  it("is sent nothing while its reader does not read, and then one comment at most", async () => {
    await using service = await open(kind);
    const response = await service.call(kind === "fetch" ? "/ticks/told" : "/ticks/endless");
    await settled(service);
    // A reader that does not read is not waited for either.
    expect(service.timers()).toBe(0);
    await service.silence(600_000);
    const read = readerOf(response);
    if (kind === "node") {
      expect(await read.next()).toContain("event: tick");
      return read.leave();
    }
    const first = read.next();
    await service.silence(15_000);
    expect(await first).toBe(KEEP_ALIVE);
    await service.silence(600_000);
    expect(service.timers()).toBe(0);
    const next = read.next();
    service.tell(1);
    expect(await next).toBe(tick(1));
    await read.leave();
  });
});

describe.each(hostKinds)("a %s host that stops", (kind) => {
  it.each<[what: string, how: string, (service: Awaited<ReturnType<typeof open>>) => unknown]>([
    ["ends its event streams", "waiting", ({ surface }) => surface.endEventStreams()],
    ["ends its event streams as it closes its app", "waiting", ({ app }) => app.close()],
    ["ends those too whose sources do not listen", "deaf", ({ surface }) => surface.endEventStreams()],
  ])("%s: a normal end, and no error", async (_what, how, stop) => {
    await using service = await open(kind);
    const read = readerOf(await service.call(`/ticks/${how}`));
    expect(await read.next()).toBe(tick(1));
    const rest = read.next();
    await service.source.waiting;
    await stop(service);
    expect(await rest).toBeUndefined();
    if (how === "waiting") await service.source.aborted;
    expect(service.timers()).toBe(0);
    expect(service.telemetry.requests).toMatchObject([{ status: 200, error: undefined }]);
    expect(service.telemetry.lines).toEqual([]);
  });

  it("ends event streams that have no reader at the moment, and all later streams", async () => {
    await using service = await open(kind);
    const response = await service.call("/ticks/endless");
    const read = readerOf(response);
    await read.next();
    await settled(service);
    service.surface.endEventStreams();
    await service.source.returned;
    while ((await read.next()) !== undefined);
    expect(await (await service.call("/ticks/three")).text()).toBe("");
  });
});

it("a client sees the head of a silent stream before anything else (raw socket)", async () => {
  await using service = await open("node");
  const { hostname, port } = new URL(service.origin!);
  const socket = connect(Number(port), hostname);
  socket.setEncoding("utf8").write(`GET /ticks/silent HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
  const [head] = (await once(socket, "data")) as [string];
  expect(head).toMatch(/^HTTP\/1\.1 200 [^]*content-type: text\/event-stream\r\n[^]*\r\n\r\n$/i);
  socket.destroy();
});

const tick = (n: number) => `event: tick\ndata: {"n":${n}}\n\n`;

/** Reads the texts of an answer as they come; undefined is the end. */
function readerOf(response: Response) {
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let waiting = 0;
  const next = async (): Promise<string | undefined> => {
    waiting++;
    const { value } = await reader.read();
    waiting--;
    return value && decoder.decode(value, { stream: true });
  };
  return {
    next,
    isWaiting: () => waiting > 0,
    leave: () => reader.cancel(),
    /** What comes until this text is among it. */
    async untilText(wanted: string): Promise<string> {
      let text = "";
      while (!text.includes(wanted)) text += (await next()) ?? "";
      return text;
    },
  };
}

/** Waits until the source has made nothing more for some turns of the event loop. */
async function settled(service: { readonly source: Source }): Promise<void> {
  for (let quiet = 0, made = -1; quiet < 50; quiet++) {
    await new Promise((resolve) => setImmediate(resolve));
    if (service.source.made !== made) quiet = 0;
    made = service.source.made;
  }
}

async function readToTheEnd(response: Response): Promise<{ text: string; isBroken: boolean }> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of response.body!) text += decoder.decode(chunk, { stream: true });
    return { text, isBroken: false };
  } catch {
    return { text, isBroken: true };
  }
}

async function open(kind: HostKind) {
  const telemetry = createMemoryTelemetry();
  const returned = Promise.withResolvers<void>();
  const waiting = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  const clock = createManualClock();
  let timers = 0;
  const counted: ports.Clock = {
    ...clock,
    after(ms, run) {
      timers++;
      let isCounted = true;
      const over = () => {
        if (isCounted) timers--;
        isCounted = false;
      };
      const timer = clock.after(ms, () => {
        over();
        run();
      });
      return {
        ...timer,
        cancel() {
          over();
          timer.cancel();
        },
      };
    },
  };
  const countedClock = defineAdapter({ name: "counted", port: ports.clock, needs: {}, open: () => counted });
  const told: number[] = [];
  let wake = () => {};
  const source: Source = { made: 0, returned: returned.promise, waiting: waiting.promise, aborted: aborted.promise };
  const clockwork = definePlugin({
    name: "clockwork",
    config: v.strictObject({}),
    needs: {},
    contract,
    setup: () => ({
      ticks({ params, say, fail, signal }) {
        const until = (wanted: AbortSignal) =>
          new Promise<void>((resolve) => wanted.addEventListener("abort", () => resolve(), { once: true }));
        async function* run() {
          try {
            switch (params.how) {
              case "three":
                yield say.tick({ n: 1 });
                yield say.tick({ n: 2, text: "a\nb" });
                yield say["odd:end"](null);
                return;
              case "numbered":
                yield { retryMs: 3000 };
                yield { ...say.tick({ n: 1 }), id: "run:1 é" };
                return;
              case "split":
                yield { ...say.tick({ n: 1 }), id: "1\ndata: forged" };
                return;
              case "silent":
                return await until(signal);
              case "worn":
                yield say.tick({ n: 1 });
                throw fail.worn_out();
              case "crash":
                throw new RangeError("hunter2");
              case "waiting":
                yield say.tick({ n: 1 });
                waiting.resolve();
                await until(signal);
                return aborted.resolve();
              case "deaf":
                yield say.tick({ n: 1 });
                waiting.resolve();
                return await new Promise<never>(() => {});
              case "told":
                for (;;) {
                  while (told.length > 0) yield say.tick({ n: told.shift()! });
                  await new Promise<void>((resolve) => {
                    wake = resolve;
                    if (signal.aborted) resolve();
                    signal.addEventListener("abort", () => resolve(), { once: true });
                  });
                  if (signal.aborted) return;
                }
              case "asked":
                yield say.tick({ n: 1 });
                return;
              default:
                for (;;) yield say.tick({ n: ++source.made, text: "x".repeat(10_000) });
            }
          } finally {
            returned.resolve();
          }
        }
        if (params.how === "unknown") throw fail.run_unknown();
        if (params.how === "asked-unknown") return Promise.reject(fail.run_unknown());
        return params.how === "asked" ? Promise.resolve(run()) : run();
      },
    }),
  });
  const app = await createApp({
    name: "events",
    adapters: [memoryTelemetry({ telemetry }), countedClock()],
    plugins: [clockwork({})],
  });
  const host = await openHost(kind, app);
  return {
    telemetry,
    source,
    app,
    surface: app.surface("agent"),
    origin: host.origin,
    call: host.call,
    timers: () => timers,
    /** Let time pass. On a Node host what it sets going takes some turns more. */
    silence: (ms: number) => clock.advance(ms),
    tell(n: number) {
      told.push(n);
      wake();
    },
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
