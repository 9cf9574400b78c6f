import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, defineContract, defineErrors, definePlugin, reply } from "@portico/core";
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
    expect(response.headers.get("x-portico-request-id")).toMatch(/^req_/);
    expect(await response.text()).toBe(
      'event: tick\ndata: {"n":1}\n\nevent: tick\ndata: {"n":2,"text":"a\\nb"}\n\nevent: odd:end\ndata: null\n\n',
    );
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
  const app = await createApp({ name: "events", adapters: [memoryTelemetry({ telemetry })], plugins: [clockwork({})] });
  const host = await openHost(kind, app);
  return {
    telemetry,
    source,
    call: host.call,
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
