import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, defineContract, definePlugin, JsonPieces, reply } from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { createGate } from "../../harness/gate.ts";
import { type HostKind, openHost } from "../../harness/hosts.ts";
import { httpCall } from "../../harness/http-call.ts";

const contract = defineContract(
  { surface: "open", auth: "open", envelope: (error) => ({ error: error.code }) },
  { list: { method: "GET", path: "/list", summary: "Numbers", success: reply.json(v.array(v.number())) } },
);

describe("a JSON answer in pieces, on a fetch host", () => {
  it("reads like any other", async () => {
    await using service = await open("fetch", async function* () {
      yield "[1";
      yield ",2]";
    });
    const answer = await service.call("/list");
    expect(answer.headers.get("content-type")).toContain("application/json");
    expect(await answer.json()).toEqual([1, 2]);
    expect(service.telemetry.requests).toMatchObject([{ status: 200 }]);
  });

  it("asks its source for no more than the reader takes, and tells it when the reader leaves", async () => {
    let made = 0;
    let isLeft = false;
    await using service = await open("fetch", async function* () {
      try {
        for (;;) yield `${made++}`;
      } finally {
        isLeft = true;
      }
    });
    const reader = (await service.call("/list")).body!.getReader();
    await reader.read();
    await reader.cancel();
    expect(made).toBeLessThan(5);
    expect(isLeft).toBe(true);
  });

  it("breaks with its source, which is logged without its message", async () => {
    await using service = await open("fetch", async function* () {
      yield "[1";
      yield ",2";
      throw new RangeError("secret hunter2");
    });
    const answer = await service.call("/list");
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
    expect(service.telemetry.requests).toMatchObject([{ status: 200, error: "answer_broken" }]);
    expect(service.telemetry.lines).toMatchObject([{ level: "error", cause: { name: "RangeError" } }]);
    expect(JSON.stringify(service.telemetry.lines)).not.toContain("hunter2");
  });

  it.each([0, 1])("is refused like any other when its source breaks after %i pieces, before the head", async (count) => {
    await using service = await open("fetch", async function* () {
      for (let made = 0; made < count; made++) yield "[";
      throw new RangeError("secret hunter2");
    });
    const answer = await service.call("/list");
    expect([answer.status, await answer.json()]).toEqual([500, { error: "internal_error" }]);
  });

  it("tells its end once, also when the reader leaves while a piece is made", async () => {
    const gate = createGate();
    const ended = createGate();
    await using service = await open("fetch", async function* () {
      try {
        yield "[1";
        yield ",2";
        await gate.opened;
        yield "]";
      } finally {
        ended.open();
      }
    });
    const reader = (await service.call("/list")).body!.getReader();
    await reader.read();
    await reader.read();
    void reader.read().catch(() => {});
    const cancelled = reader.cancel();
    gate.open();
    await cancelled;
    await ended.opened;
    expect(service.telemetry.requests).toMatchObject([{ status: 200, error: undefined }]);
    expect(service.telemetry.lines).toEqual([]);
  });
});

describe("a JSON answer in pieces, on a Node host", () => {
  it.each([
    ["none is", [], undefined],
    ["one is", ['["é"]'], "6"],
    ["several are", ["[1", ",2", ",3", "]"], undefined],
  ])("reads like any other when %s made, and tells its length if that is known", async (_how, pieces, length) => {
    await using service = await open("node", async function* () {
      yield* pieces;
    });
    const answer = await service.get();
    expect([answer.status, answer.headers["content-type"]]).toEqual([200, "application/json; charset=utf-8"]);
    expect(answer.headers["x-portico-request-id"]).toMatch(/^req_/);
    if (length !== undefined) expect(answer.headers["content-length"]).toBe(length);
    expect(await answer.text()).toBe(pieces.join(""));
    await service.told();
    expect(service.telemetry.requests).toMatchObject([{ status: 200, error: undefined }]);
  });

  it("asks its source for no more while the reader takes nothing, and goes on when it does", async () => {
    const flood = createFlood();
    await using service = await open("node", flood.pieces);
    const answer = await service.get();
    await flood.stopped();
    expect(flood.made).toBeLessThan(flood.most);
    expect((await answer.bytes()).length).toBe(flood.most * flood.size);
    expect(flood.made).toBe(flood.most);
  });

  it("closes its source when a reader leaves that took nothing, and logs no error", async () => {
    const flood = createFlood();
    await using service = await open("node", flood.pieces);
    const answer = await service.get();
    await flood.stopped();
    answer.leave();
    await flood.ended;
    expect(flood.made).toBeLessThan(flood.most);
    await service.told();
    expect(service.telemetry.requests).toMatchObject([{ status: 200, error: undefined }]);
    expect(service.telemetry.lines).toEqual([]);
  });

  it("tells its source when the reader leaves while a piece is made, and asks for no further one", async () => {
    const gate = createGate();
    const ended = createGate();
    let made = 0;
    await using service = await open("node", async function* () {
      try {
        for (; made < 100; made++) {
          if (made === 2) await gate.opened;
          yield `${made}`;
        }
      } finally {
        ended.open();
      }
    });
    const answer = await service.get();
    await answer.read();
    answer.leave();
    await service.told();
    gate.open();
    await ended.opened;
    expect(made).toBe(2);
    expect(service.telemetry.lines).toEqual([]);
  });

  it("tells its source when the reader left before anything was made", async () => {
    const gate = createGate();
    const begun = createGate();
    const ended = createGate();
    let isWhole = false;
    await using service = await open("node", async function* () {
      try {
        begun.open();
        await gate.opened;
        for (let made = 0; made < 100; made++) yield "1";
        isWhole = true;
      } finally {
        ended.open();
      }
    });
    const leaving = new AbortController();
    const call = service.get("GET", leaving.signal);
    await begun.opened;
    leaving.abort();
    await expect(call).rejects.toThrow("abort");
    await service.told();
    gate.open();
    await ended.opened;
    expect(isWhole).toBe(false);
    expect(service.telemetry.requests).toMatchObject([{ status: 499 }]);
    expect(service.telemetry.lines).toEqual([]);
  });

  it("is cut when its source breaks after the head, which is logged without its message", async () => {
    const gate = createGate();
    await using service = await open("node", async function* () {
      yield "[1";
      yield ",2";
      await gate.opened;
      throw new RangeError("secret hunter2");
    });
    const answer = await service.get();
    expect(answer.status).toBe(200);
    expect(String(await answer.read())).toContain("[1");
    gate.open();
    await expect(answer.bytes()).rejects.toThrow();
    await service.told();
    expect(service.telemetry.requests).toMatchObject([{ status: 200, error: "answer_broken" }]);
    expect(service.telemetry.lines).toMatchObject([
      { level: "error", message: "pieces.list broke after its head", cause: { name: "RangeError" } },
    ]);
    expect(JSON.stringify(service.telemetry.lines)).not.toContain("hunter2");
  });

  it("logs no error if its source breaks after the reader left", async () => {
    const gate = createGate();
    await using service = await open("node", async function* () {
      yield "[1";
      yield ",2";
      await gate.opened;
      throw new RangeError("nobody reads on");
    });
    const answer = await service.get();
    answer.leave();
    await service.told();
    gate.open();
    await new Promise((resolve) => setImmediate(resolve));
    expect(service.telemetry.lines).toEqual([]);
  });

  it.each([0, 1])("is refused like any other when its source breaks after %i pieces, before the head", async (count) => {
    await using service = await open("node", async function* () {
      for (let made = 0; made < count; made++) yield "[";
      throw new RangeError("secret hunter2");
    });
    const answer = await service.get();
    expect([answer.status, await answer.json()]).toEqual([500, { error: "internal_error" }]);
  });

  it("is left by HEAD, which takes no piece", async () => {
    const ended = createGate();
    await using service = await open("node", async function* () {
      try {
        for (;;) yield "1";
      } finally {
        ended.open();
      }
    });
    const answer = await service.get("HEAD");
    expect([answer.status, answer.headers["content-type"], await answer.text()]).toEqual([
      200,
      "application/json; charset=utf-8",
      "",
    ]);
    await ended.opened;
  });
});

/** More than a connection buffers, piece by piece, with an end: without backpressure, the source reaches it. */
function createFlood() {
  const ended = createGate();
  const flood = {
    size: 1024 * 1024,
    most: 64,
    made: 0,
    ended: ended.opened,
    async *pieces() {
      try {
        while (flood.made < flood.most) {
          flood.made++;
          yield "1".repeat(flood.size);
        }
      } finally {
        ended.open();
      }
    },
    /** Resolves when no more is asked for. */
    async stopped() {
      for (let before = -1; before !== flood.made;) {
        before = flood.made;
        for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
  return flood;
}

async function open(kind: HostKind, pieces: () => AsyncIterable<string>) {
  const telemetry = createMemoryTelemetry();
  const plugin = definePlugin({
    name: "pieces",
    config: v.strictObject({}),
    needs: {},
    contract,
    setup: () => ({ list: () => new JsonPieces(pieces()) }),
  });
  const app = await createApp({ name: "pieces", adapters: [memoryTelemetry({ telemetry })], plugins: [plugin({})] });
  const host = await openHost(kind, app);
  return {
    telemetry,
    call: host.call,
    get: (method = "GET", signal?: AbortSignal) => httpCall(host.origin!, { method, path: "/list", ...(signal && { signal }) }),
    /** Resolves when the request was told to the telemetry. */
    async told() {
      while (telemetry.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    },
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
