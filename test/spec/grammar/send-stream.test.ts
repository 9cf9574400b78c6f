import { once } from "node:events";
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, defineContract, defineErrors, definePlugin, ports, reply, sendStream } from "@portico/core";
import * as v from "valibot";
import { describe, expect, it, vi } from "vitest";
import { type HostKind, hostKinds, openHost } from "../../harness/hosts.ts";

const MINUTE = 60_000;
const BYTES = Buffer.alloc(3_000_000, "0123456789");
const errors = defineErrors({ gone: { status: 404 } });
const contract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code }) },
  { read: { method: "GET", path: "/read", summary: "", success: reply.exchange(["text/plain"]), errors } },
);

describe.each(hostKinds)("an answer from a stream on a %s host", (kind) => {
  it("has its status, its headers and every byte", async () => {
    await using service = await open(kind, () => Readable.from(pieces(BYTES), { objectMode: false }));
    const response = await service.call("/read");
    expect([response.status, response.headers.get("x-one"), response.headers.get("content-length")]).toEqual([
      206,
      "1",
      String(BYTES.length),
    ]);
    expect(BYTES.equals(Buffer.from(await response.arrayBuffer()))).toBe(true);
    await service.settled;
    expect(service.telemetry.lines).toEqual([]);
  });

  it("is its head alone for HEAD, and then its source is not even opened", async () => {
    await using service = await open(kind, () => Readable.from([BYTES]));
    const response = await service.call("/read", { method: "HEAD" });
    expect([response.status, response.headers.get("content-length"), await response.text()]).toEqual([
      206,
      String(BYTES.length),
      "",
    ]);
    expect(service.opened()).toBe(0);
  });

  it("is an ordinary error where its source cannot be opened", async () => {
    await using service = await open(kind, () => {
      throw errors.gone();
    });
    const response = await service.call("/read");
    expect([response.status, await response.json()]).toEqual([404, { error: "gone" }]);
  });

  it.each([
    ["breaks", (source: Readable) => source.destroy(new RangeError("disk")), "RangeError"],
    ["is closed without a word", (source: Readable) => source.destroy(), "Error"],
  ])("is cut where its source %s, and the log says so", async (_what, spoil, name) => {
    const source = new Readable({ read() {} });
    await using service = await open(kind, () => source);
    source.push("part");
    const response = await service.call("/read");
    const reader = response.body!.getReader();
    await reader.read();
    spoil(source);
    await expect(reader.read()).rejects.toThrow();
    await service.settled;
    await service.told();
    expect(service.telemetry.lines).toMatchObject([
      { level: "error", message: "readers.read broke after its head", cause: { name } },
    ]);
    expect(service.telemetry.requests).toMatchObject([{ status: 206, error: "answer_broken" }]);
  });

  it.each([
    ["had broken before", (source: Readable) => source.destroy(new RangeError("disk"))],
    ["was closed before", (source: Readable) => source.destroy()],
  ])("is an ordinary error where its source %s", async (_what, spoil) => {
    await using service = await open(kind, () => {
      const source = new Readable({ read() {} });
      spoil(source);
      return source;
    });
    const response = await service.call("/read");
    expect([response.status, await response.json()]).toEqual([500, { error: "internal_error" }]);
  });

  it("holds its source back while its reader is slow, and destroys it when the reader leaves", async () => {
    const source = endless();
    await using service = await open(kind, () => source);
    const response = await service.call("/read");
    const reader = response.body!.getReader();
    await reader.read();
    await stillness(source);
    const closed = once(source, "close");
    await reader.cancel();
    await closed;
    await service.settled;
    await service.told();
    expect(service.telemetry.lines).toEqual([]);
    expect(service.telemetry.requests).toMatchObject([{ status: 206, error: undefined }]);
  });

  it("is cut when its reader takes nothing for a minute, as if it had left; one that is slow is waited for", async () => {
    const source = endless();
    await using service = await open(kind, () => source, { "content-length": `${2 ** 40}` });
    const reader = (await service.call("/read")).body!.getReader();
    for (let minutes = 0; minutes < 5; minutes++) {
      // Whatever stands between reader and source is full, and then not any more.
      for (const before = source.pulled; source.pulled === before;) await reader.read();
      await stillness(source);
      await service.clock.advance(MINUTE - 1);
    }
    expect(source.destroyed).toBe(false);
    await vi.waitFor(
      async () => {
        await service.clock.advance(MINUTE);
        expect(source.destroyed).toBe(true);
      },
      { timeout: 30_000 },
    );
    await service.settled;
    await service.told();
    expect(service.telemetry.lines).toEqual([]);
    expect(service.telemetry.requests).toMatchObject([{ status: 206, error: undefined }]);
    await expect(readAll(reader)).rejects.toThrow();
  });

  it("is closed within a minute of its end, even if its reader takes no bytes", async () => {
    await using service = await open(kind, () => Readable.from([Buffer.from("little")]), { "content-length": "6" });
    const response = await service.call("/read");
    let isOver = false;
    void service.settled.then(() => (isOver = true));
    await vi.waitFor(
      async () => {
        await service.clock.advance(MINUTE);
        expect(isOver).toBe(true);
      },
      { timeout: 30_000 },
    );
    await response.body!.cancel().catch(() => {});
  });

  it("is waited for as long as its source takes", async () => {
    const source = new Readable({ read() {} });
    await using service = await open(kind, () => source, { "content-length": `${2 ** 40}` });
    source.push(Buffer.alloc(200_000));
    const reader = (await service.call("/read")).body!.getReader();
    for (let read = 0; read < 200_000;) read += (await reader.read()).value!.length;
    await service.clock.advance(10 * MINUTE);
    source.push("more");
    expect(Buffer.from((await reader.read()).value!).toString()).toBe("more");
  });

  it("is not begun if its caller disconnected while the source was opened", async () => {
    const source = new Readable({ read() {} });
    const asked = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    await using service = await open(kind, async (signal) => {
      asked.resolve();
      await once(signal, "abort");
      await gate.promise;
      return source;
    });
    const leaving = new AbortController();
    const call = service.call("/read", { signal: leaving.signal }).catch(() => undefined);
    await asked.promise;
    leaving.abort();
    gate.resolve();
    await call;
    await service.settled;
    expect(source.destroyed).toBe(true);
    await service.told();
    expect(service.telemetry.requests).toMatchObject([{ status: 499 }]);
    expect(service.telemetry.lines).toEqual([]);
  });

  it("destroys its source if its head is invalid", async () => {
    const source = new Readable({ read() {} });
    await using service = await open(kind, () => source, { "x-bad": "a\nb" });
    expect((await service.call("/read")).status).toBe(500);
    expect(source.destroyed).toBe(true);
  });
});

interface Endless extends Readable {
  readonly pulled: number;
}

/** Gives as much as is asked for, and counts how often that is. */
function endless(): Endless {
  let pulled = 0;
  const source = new Readable({
    read() {
      pulled++;
      this.push(Buffer.alloc(65_536));
    },
  });
  return Object.defineProperty(source, "pulled", { get: () => pulled }) as Endless;
}

/** Resolves when everything is full that stands between it and its reader. */
async function stillness(source: Endless): Promise<void> {
  for (let before = -1; before !== source.pulled;) {
    before = source.pulled;
    for (let turn = 0; turn < 50; turn++) await nextTurn();
  }
}

async function readAll(reader: ReadableStreamDefaultReader): Promise<void> {
  while (!(await reader.read()).done);
}

function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += 65_536) yield bytes.subarray(start, start + 65_536);
}

async function open(
  kind: HostKind,
  source: (signal: AbortSignal) => Readable | Promise<Readable>,
  more: Readonly<Record<string, string>> = {},
) {
  const telemetry = createMemoryTelemetry();
  const clock = createManualClock();
  const settled = Promise.withResolvers<void>();
  let opened = 0;
  const readers = definePlugin({
    name: "readers",
    config: v.strictObject({}),
    needs: { clock: ports.clock },
    contract,
    setup: ({ clock }) => ({
      async read(input) {
        const headers = { "content-type": "text/plain", "content-length": String(BYTES.length), "x-one": "1", ...more };
        try {
          await sendStream(
            { ...input, clock },
            {
              status: 206,
              headers,
              open() {
                opened++;
                return source(input.signal);
              },
            },
          );
        } finally {
          settled.resolve();
        }
      },
    }),
  });
  const app = await createApp({
    name: "readers",
    adapters: [memoryTelemetry({ telemetry }), manualClock({ clock })],
    plugins: [readers({})],
  });
  const host = await openHost(kind, app);
  return {
    telemetry,
    clock,
    call: host.call,
    settled: settled.promise,
    opened: () => opened,
    /** Resolves when the request was told to the telemetry. */
    async told() {
      while (telemetry.requests.length === 0) await nextTurn();
    },
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
