import { fork } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { Readable } from "node:stream";
import { setImmediate, setTimeout } from "node:timers/promises";
import { inspect } from "node:util";
import { type S3BlobsOptions, type S3Keys, s3Blobs } from "@portico/cluster/blobs/s3";
import { createStoreAddress } from "@portico/cluster/blobs/s3/store-address";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { createLive, findStoreTooNew, ports, Secret } from "@portico/core";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { createGate } from "../harness/gate.ts";
import type { S3Bucket } from "../harness/s3-bucket.ts";
import { type S3Mishap, startS3Store } from "../harness/s3-store.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

const MIB = 1024 * 1024;
const PART = 5 * MIB;
const CHUNK = 64 * 1024;
const PLENTY = { maxBytes: 1024 * MIB };
const clock = createManualClock();
const store = await startS3Store({ now: clock.now, pageSize: 3, sessionToken: "hidden-token" });
afterAll(() => store.close());

describe("blobs/s3", () => {
  let bucket: S3Bucket;
  let options: S3BlobsOptions;
  let opened: OpenAdapter<ports.Blobs>;
  let blobs: ports.Blobs;
  const open = (other: Partial<S3BlobsOptions> = {}): Promise<OpenAdapter<ports.Blobs>> =>
    openAdapter(s3Blobs({ ...options, ...other }), [manualClock({ clock })]);
  beforeEach(async () => {
    store.mishap = () => undefined;
    const made = store.makeBucket();
    bucket = made.bucket;
    options = { ...made.options, partBytes: PART };
    opened = await open();
    blobs = opened.port;
    store.requests.length = 0;
  });
  afterEach(() => opened.close());

  const put = (key: string, bytes: Uint8Array, more: Partial<ports.PutBlobOptions> = {}) =>
    blobs.put(key, Readable.from(pieces(bytes)), { ...PLENTY, ...more });
  const read = async (key: string, range: ports.OpenBlobOptions = {}): Promise<Buffer> =>
    buffer((await blobs.open(key, range))!.stream);
  const asked = (): string[] => store.requests.map(({ operation }) => operation);
  /** The first requests of this operation fail. */
  const harm = (operation: string, mishap: S3Mishap, times = 1): void => {
    let left = times;
    store.mishap = (request) => (request.operation === operation && left-- > 0 ? mishap : undefined);
  };

  it("signs later requests with other keys, while the app is open, also the next part of an upload; invalid ones are refused", async () => {
    const place = await startS3Store({ now: clock.now });
    try {
      const made = place.makeBucket().options;
      const rotation = createLive<S3Keys | undefined>(undefined);
      const other = await openAdapter(s3Blobs({ ...made, partBytes: PART, rotation }), [manualClock({ clock })]);
      const [accessKeyId, secretAccessKey] = ["AKIANEXT", "next/word"].map((text) => new Secret(text)) as [Secret, Secret];
      async function* source(): AsyncGenerator<Uint8Array> {
        yield Buffer.alloc(2 * PART);
        await expect.poll(() => place.requests.some(({ operation }) => operation === "UploadPart")).toBe(true);
        await expect.poll(() => place.requests.every(({ isOver }) => isOver)).toBe(true);
        Object.assign(place.key, { accessKeyId: "AKIANEXT", secretAccessKey: "next/word" });
        await rotation.replace({ accessKeyId, secretAccessKey });
        yield Buffer.alloc(PART);
      }
      await other.port.put("a", source(), PLENTY);
      expect((await other.port.stat("a"))?.size).toBe(3 * PART);
      await expect(rotation.replace({ accessKeyId, secretAccessKey: new Secret("a b") })).rejects.toThrow(TypeError);
      await rotation.replace(undefined);
      expect((await other.port.stat("a"))?.size).toBe(3 * PART);
      await other.close();
    } finally {
      await place.close();
    }
  });

  describe("put", () => {
    it("sends what fits into a part in one request, and more in parts", async () => {
      await put("a", Buffer.alloc(PART));
      expect(asked()).toEqual(["PutObject"]);
      store.requests.length = 0;
      const bytes = randomBytes(2 * PART + 1);
      await put("b", bytes);
      expect(asked()).toEqual(["CreateMultipartUpload", ...Array(3).fill("UploadPart"), "CompleteMultipartUpload"]);
      expect((await read("b")).equals(bytes)).toBe(true);
      expect(bucket.uploads.size).toBe(0);
      expect([...bucket.objects.keys()]).toEqual(["blobs/a", "blobs/b"]);
    });

    it("asks its source for no more than two parts beyond what is stored", async () => {
      store.mishap = async () => {
        for (let turn = 0; turn < 100; turn++) await setImmediate();
        return undefined;
      };
      let most = 0;
      let asked = 0;
      async function* source(): AsyncGenerator<Uint8Array> {
        for (; asked < 30; asked++) {
          const stored = [...bucket.uploads.values()].reduce((sum, { parts }) => sum + parts.size * PART, 0);
          most = Math.max(most, (asked + 1) * MIB - stored);
          yield Buffer.alloc(MIB);
        }
      }
      await blobs.put("a", source(), PLENTY);
      expect(most).toBeLessThanOrEqual(2 * PART + MIB);
    });

    describe("of many blobs at once", () => {
      const HELD = 4 * PART;
      /** More uploads than have room for a part each. */
      const MANY = process.env["PORTICO_LONG"] ? 20 : 8;
      beforeEach(async () => {
        await opened.close();
        opened = await open({ heldBytes: HELD });
        blobs = opened.port;
      });

      /** Gives this many bytes, counts the requests, and continues, breaks or ends on command. */
      const counted = (bytes: number, then: Promise<void> = Promise.resolve()) => {
        const source = { asked: 0, bytes: generate() };
        return source;
        async function* generate(): AsyncGenerator<Uint8Array> {
          for (let left = bytes; left > 0; left -= CHUNK) {
            source.asked += Math.min(left, CHUNK);
            yield Buffer.alloc(Math.min(left, CHUNK), left / CHUNK);
          }
          await then;
        }
      };
      /** Resolves when no more bytes are requested. */
      const stillness = async (sources: readonly { readonly asked: number }[]): Promise<number> => {
        const asked = () => sources.reduce((sum, source) => sum + source.asked, 0);
        for (let before = -1; before !== asked();) {
          before = asked();
          for (let turn = 0; turn < 200; turn++) await setImmediate();
        }
        return asked();
      };

      it("holds no more than `heldBytes` for all of them, and asks for the rest when the store has taken some", async () => {
        const gate = createGate();
        store.mishap = async ({ operation }) => {
          if (operation === "UploadPart") await gate.opened;
          return undefined;
        };
        const sources = Array.from({ length: MANY }, () => counted(2 * PART + 1));
        const putting = sources.map(({ bytes }, at) => blobs.put(`many/${at}`, bytes, PLENTY));
        const asked = await stillness(sources);
        // Each has asked for one chunk more, and waits with it in its hands.
        expect(asked).toBeLessThanOrEqual(HELD + MANY * CHUNK);
        expect(asked).toBeGreaterThan(HELD - PART);
        gate.open();
        const stored = await Promise.all(putting);
        expect(stored.map(({ size }) => size)).toEqual(Array(MANY).fill(2 * PART + 1));
        for (const [at, { sha256 }] of stored.entries()) {
          expect(
            createHash("sha256")
              .update(await read(`many/${at}`))
              .digest("hex"),
          ).toBe(sha256);
        }
      });

      it("continues with one upload at a time if all have begun a part and none has room to fill it", async () => {
        const begun = Promise.withResolvers<void>();
        let waiting = 0;
        async function* together(): AsyncGenerator<Uint8Array> {
          // As many bytes as there is room for, before an upload continues.
          yield Buffer.alloc((HELD - PART) / MANY);
          if (++waiting === MANY) begun.resolve();
          await begun.promise;
          yield Buffer.alloc(PART);
        }
        const stored = await Promise.all(Array.from({ length: MANY }, (_, at) => blobs.put(`many/${at}`, together(), PLENTY)));
        expect(stored.map(({ size }) => size)).toEqual(Array(MANY).fill(PART + (HELD - PART) / MANY));
      });

      it.each(["its source breaks", "it is aborted", "the store refuses it"])("has the room back of one when %s", async (how) => {
        const broken = Promise.withResolvers<void>();
        const leaving = new AbortController();
        const [first, ...others] = Array.from({ length: HELD / PART }, () => counted(PART - CHUNK, broken.promise));
        broken.promise.catch(() => {});
        const failing = blobs.put("broken", first!.bytes, { ...PLENTY, signal: leaving.signal }).catch((error: Error) => error);
        const stalled = others.map(({ bytes }, at) => blobs.put(`stalled/${at}`, bytes, PLENTY).catch((error: Error) => error));
        await stillness([first!, ...others]);
        let isStored = false;
        const small = blobs.put("small", Readable.from([Buffer.alloc(CHUNK + 1)]), PLENTY).then(() => (isStored = true));
        await stillness([]);
        expect(isStored).toBe(false);

        if (how === "it is aborted") leaving.abort(new Error("on purpose"));
        else if (how === "its source breaks") broken.reject(new Error("on purpose"));
        else {
          store.mishap = ({ key }) => (key.endsWith("broken") ? { status: 403, code: "AccessDenied" } : undefined);
          broken.resolve();
        }
        expect(await failing).toBeInstanceOf(Error);
        await small;
        expect((await read("small")).byteLength).toBe(CHUNK + 1);
        broken.resolve();
        await Promise.all(stalled);
      });

      it("removes callers that have left from the queue, and reserves no room for them", async () => {
        const fill = async (name: string) => {
          const over = createGate();
          const sources = Array.from({ length: HELD / PART }, () => counted(PART - CHUNK, over.opened));
          const stored = Promise.all(sources.map(({ bytes }, at) => blobs.put(`${name}/${at}`, bytes, PLENTY)));
          return { asked: await stillness(sources), end: () => (over.open(), stored) };
        };
        const before = await fill("before");
        const leaving = new AbortController();
        const left = Array.from({ length: (HELD - PART) / CHUNK }, (_, at) => {
          const waiting = blobs.put(`left/${at}`, Readable.from([Buffer.alloc(1)]), { ...PLENTY, signal: leaving.signal });
          return expect(waiting).rejects.toThrow("on purpose");
        });
        await stillness([]);
        leaving.abort(new Error("on purpose"));
        await Promise.all(left);
        await before.end();
        const after = await fill("after");
        expect(after.asked).toBeGreaterThan(HELD - PART);
        await after.end();
      });
    });

    it.each<[operation: string, mishap: S3Mishap, bytes: number]>([
      ["PutObject", "reset", 1000],
      ["PutObject", "lose", 1000],
      ["PutObject", { status: 503, code: "SlowDown" }, 1000],
      ["PutObject", { status: 409, code: "ConditionalRequestConflict" }, 1000],
      ["PutObject", { status: 429, code: "TooManyRequests" }, 1000],
      ["PutObject", { status: 400, code: "RequestTimeout" }, 1000],
      ["CreateMultipartUpload", { status: 500, code: "InternalError" }, PART + 1],
      ["UploadPart", "reset", PART + 1],
      ["UploadPart", "lose", PART + 1],
      ["UploadPart", { status: 503, code: "SlowDown" }, PART + 1],
      ["CompleteMultipartUpload", "reset", PART + 1],
      ["CompleteMultipartUpload", "lose", PART + 1],
      ["CompleteMultipartUpload", "cut", PART + 1],
      ["CompleteMultipartUpload", { status: 500, code: "InternalError" }, PART + 1],
      ["CompleteMultipartUpload", { status: 200, code: "InternalError" }, PART + 1],
    ])("outlives a passing fault of %s: %j", async (operation, mishap, size) => {
      for (const ifAbsent of [false, true]) {
        harm(operation, mishap, 2);
        const bytes = randomBytes(size);
        const key = `a-${ifAbsent}`;
        expect((await settle(put(key, bytes, { ifAbsent }))).size).toBe(size);
        expect((await read(key)).equals(bytes)).toBe(true);
        expect(bucket.uploads.size).toBe(0);
      }
      expect(asked().filter((each) => each === operation).length).toBeGreaterThan(3);
    });

    it.each([1000, PART + 1])("throws BlobExists where another of %d bytes was quicker, and leaves nothing", async (size) => {
      const placing = size > PART ? "CompleteMultipartUpload" : "PutObject";
      store.mishap = ({ operation }) => {
        if (operation === placing) bucket.put("blobs/a", [Buffer.from("theirs")], {});
        return undefined;
      };
      await expect(put("a", Buffer.alloc(size), { ifAbsent: true })).rejects.toThrow(ports.BlobExists);
      expect((await read("a")).toString()).toBe("theirs");
      expect(bucket.uploads.size).toBe(0);
    });

    it.each(["PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"])(
      "gives up after five attempts of %s, with nothing of the credentials in the error and nothing left behind",
      async (operation) => {
        harm(operation, { status: 503, code: "SlowDown" }, Infinity);
        const failure = await settle(put("a", Buffer.alloc(operation === "PutObject" ? 1 : PART + 1)).catch((error) => error));
        expect(failure).toBeInstanceOf(ports.BlobsUnavailable);
        expect(failure.cause).toMatchObject({ name: "StoreError", status: 503, code: "SlowDown" });
        expectNoSecret(failure);
        // Of two parts that are on their way at once, one may give up before the other has.
        const attempts = Object.values(Object.groupBy(store.requests, (request) => `${[request.operation, request.query]}`));
        expect(Math.max(...attempts.map((each) => each!.length))).toBe(5);
        expect(bucket.objects.size + bucket.uploads.size).toBe(0);
      },
    );

    it.each(["1", "2", "3"])("stores nothing where part %s of three is refused", async (number) => {
      store.mishap = ({ query }) => (query.get("partNumber") === number ? { status: 403, code: "AccessDenied" } : undefined);
      await expect(put("a", Buffer.alloc(2 * PART + 1))).rejects.toMatchObject({ cause: { code: "AccessDenied" } });
      expect(asked().at(-1)).toBe("AbortMultipartUpload");
      expect(bucket.objects.size + bucket.uploads.size).toBe(0);
    });

    it("fails at once where a complete upload is refused, also with a status of success", async () => {
      harm("CompleteMultipartUpload", { status: 200, code: "AccessDenied" });
      await expect(put("a", Buffer.alloc(PART + 1))).rejects.toMatchObject({ cause: { status: 200, code: "AccessDenied" } });
      expect(asked().slice(-2)).toEqual(["CompleteMultipartUpload", "AbortMultipartUpload"]);
      expect(bucket.objects.size + bucket.uploads.size).toBe(0);
    });

    it("pauses longer from attempt to attempt, and closing ends a pause", async () => {
      const pauses: number[] = [];
      const paused = createGate();
      const watched = {
        ...clock,
        async sleep(ms: number, signal?: AbortSignal) {
          pauses.push(ms);
          if (pauses.length === 4) paused.open();
          return pauses.length === 4 ? clock.sleep(ms, signal) : undefined;
        },
      };
      const other = await openAdapter(s3Blobs(options), [manualClock({ clock: watched })]);
      harm("PutObject", { status: 503, code: "SlowDown" }, Infinity);
      const putting = other.port.put("a", Readable.from([Buffer.alloc(1)]), PLENTY).catch((error: unknown) => error);
      await paused.opened;
      await other.close();
      expect(await putting).toBeInstanceOf(ports.BlobsUnavailable);
      expect(asked().filter((each) => each === "PutObject")).toHaveLength(4);
      for (const [at, most] of [200, 400, 800, 1600].entries()) {
        expect(pauses[at]).toBeLessThanOrEqual(most);
        expect(pauses[at]).toBeGreaterThanOrEqual(most / 2);
      }
    });

    describe("in parts, aborts its upload", () => {
      const begin = async (more: Partial<ports.PutBlobOptions> = {}) => {
        const source = new Readable({ read() {} });
        const putting = blobs.put("a", source, { ...PLENTY, ...more });
        putting.catch(() => {});
        const failing = expect(putting).rejects;
        source.push(Buffer.alloc(PART + 1));
        while (![...bucket.uploads.values()].some(({ parts }) => parts.size === 1)) await setImmediate();
        return { source, failing };
      };
      const expectNothing = (): void => {
        expect(asked().at(-1)).toBe("AbortMultipartUpload");
        expect(bucket.objects.size + bucket.uploads.size).toBe(0);
      };

      it("when its source breaks", async () => {
        const { source, failing } = await begin();
        source.destroy(new Error("line cut"));
        await failing.toThrow("line cut");
        expectNothing();
      });

      it("when its source breaks while a part is on its way", async () => {
        const [reached, never] = [createGate(), createGate()];
        store.mishap = async ({ operation }) => {
          if (operation !== "UploadPart") return undefined;
          reached.open();
          return void (await never.opened);
        };
        const source = new Readable({ read() {} });
        const failing = expect(blobs.put("a", source, PLENTY)).rejects.toThrow("line cut");
        source.push(Buffer.alloc(PART + 1));
        await reached.opened;
        source.destroy(new Error("line cut"));
        await failing;
        expectNothing();
        never.open();
      });

      it("when its signal aborts", async () => {
        const stop = new AbortController();
        const { failing } = await begin({ signal: stop.signal });
        stop.abort(new Error("left"));
        await failing.toThrow("left");
        expectNothing();
      });

      it("when it is too large", async () => {
        const { source, failing } = await begin({ maxBytes: PART + 1 });
        source.push(Buffer.alloc(1));
        await failing.toThrow(ports.BlobTooLarge);
        expectNothing();
      });

      it("when the app closes", async () => {
        const { failing } = await begin();
        await opened.close();
        await failing.toThrow(ports.BlobsUnavailable);
        expectNothing();
      });

      it.each(["CreateMultipartUpload", "UploadPart"])("when its signal aborts amid %s", async (operation) => {
        const [reached, held] = [createGate(), createGate()];
        store.mishap = async (request) => {
          if (request.operation !== operation) return undefined;
          reached.open();
          return void (await held.opened);
        };
        const stop = new AbortController();
        const failing = expect(put("a", Buffer.alloc(2 * PART + 1), { signal: stop.signal })).rejects.toThrow("left");
        await reached.opened;
        stop.abort(new Error("left"));
        held.open();
        await failing;
        expectNothing();
      });

      it("and does not wait for ever where the store has fallen silent", async () => {
        const stop = new AbortController();
        const { failing } = await begin({ signal: stop.signal });
        const held = createGate();
        store.mishap = async () => void (await held.opened);
        stop.abort(new Error("left"));
        await settle(failing.toThrow("left"), () => false);
        held.open();
      });
    });
  });

  describe("open", () => {
    it.each([{}, { start: 1, end: 99_998 }])(
      "fails rather than end early where the line is cut, of the range %j",
      async (range) => {
        await put("a", Buffer.alloc(100_000));
        harm("GetObject", "cut");
        const { stream } = (await blobs.open("a", range))!;
        await expect(buffer(stream)).rejects.toThrow(ports.BlobsUnavailable);
        expect((await read("a", range)).byteLength).toBe("start" in range ? 99_998 : 100_000);
      },
    );

    it("asks again where nothing was answered yet", async () => {
      await put("a", Buffer.from("text"));
      harm("GetObject", "reset", 2);
      expect((await settle(read("a"))).toString()).toBe("text");
      harm("GetObject", { status: 500, code: "InternalError" }, 2);
      expect((await settle(read("a"))).toString()).toBe("text");
    });

    it("takes from the line what is read, and no more than it holds", async () => {
      const size = 64 * MIB;
      bucket.put(
        "blobs/a",
        Array.from({ length: 1024 }, () => Buffer.alloc(64 * 1024)),
        {},
      );
      const { stream } = (await blobs.open("a"))!;
      const answer = store.requests.at(-1)!;
      const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
      let taken = (await chunks.next()).value!.byteLength as number;
      for (let turn = 0; turn < 200; turn++) await blobs.stat("a");
      expect(answer.isOver).toBe(false);
      for (let next = await chunks.next(); !next.done; next = await chunks.next()) taken += next.value.byteLength;
      expect(taken).toBe(size);
    });

    it("requests only the range", async () => {
      await put("a", Buffer.from("0123456789"));
      await read("a", { start: 3, end: 5 });
      await read("a", { start: 7 });
      expect(store.requests.slice(-2).map(({ headers }) => headers.range)).toEqual(["bytes=3-5", "bytes=7-"]);
    });

    it.each(["whole", "short"] as const)(
      "fails where the store gives another range than it was asked for, or less (%s)",
      async (mishap) => {
        await put("a", Buffer.from("0123456789"));
        harm("GetObject", mishap);
        const opening = blobs.open("a", { start: 3, end: 5 });
        await expect(opening.then((found) => buffer(found!.stream))).rejects.toThrow(ports.BlobsUnavailable);
      },
    );

    it("takes no bucket that is gone for a blob that is absent", async () => {
      harm("GetObject", { status: 404, code: "NoSuchBucket" });
      await expect(blobs.open("a")).rejects.toMatchObject({ name: "BlobsUnavailable", cause: { code: "NoSuchBucket" } });
    });
  });

  describe("asks a silent store once, and fails after its idle timeout", () => {
    const calls: Record<string, () => Promise<unknown>> = {
      PutObject: () => put("b", Buffer.from("new")),
      GetObject: () => read("a"),
      HeadObject: () => blobs.stat("a"),
      ListObjectsV2: () => Array.fromAsync(blobs.keys("")),
    };
    it.each(Object.keys(calls))("%s", async (operation) => {
      await put("a", Buffer.from("old"));
      await opened.close();
      opened = await open({ silenceMs: 100 });
      blobs = opened.port;
      const silence = createGate();
      store.requests.length = 0;
      store.mishap = async () => void (await silence.opened);
      await expect(calls[operation]!()).rejects.toBeInstanceOf(ports.BlobsUnavailable);
      silence.open();
      expect(asked()).toEqual([operation]);
      store.mishap = () => undefined;
      expect((await read("a")).toString()).toBe("old");
    });
  });

  describe("remove", () => {
    it("reports a removal as successful, also if the answer was lost", async () => {
      await put("a", Buffer.from("x"));
      harm("DeleteObject", "lose");
      expect(await settle(blobs.remove("a"))).toBe(true);
      expect(bucket.objects.size).toBe(0);
    });

    it("reports the removal to one of two processes that remove a blob at the same time", async () => {
      const other = await open();
      await put("a", Buffer.from("x"));
      const both = createGate();
      store.mishap = async ({ operation }) => {
        if (operation !== "DeleteObject") return undefined;
        if (asked().filter((each) => each === "DeleteObject").length === 2) both.open();
        return void (await both.opened);
      };
      const ends = await Promise.all([blobs.remove("a"), other.port.remove("a")]);
      expect(ends.toSorted()).toEqual([false, true]);
      await other.close();
    });

    it("removes a blob that replaced the found one", async () => {
      await put("a", Buffer.from("x"));
      let isFirst = true;
      store.mishap = ({ operation }) => {
        if (operation === "DeleteObject" && isFirst) bucket.put("blobs/a", [Buffer.from("another")], {});
        isFirst &&= operation !== "DeleteObject";
        return undefined;
      };
      expect(await blobs.remove("a")).toBe(true);
      expect(bucket.objects.size).toBe(0);
    });
  });

  describe("keys", () => {
    it("are the valid keys below the prefix, page by page, beside objects of others", async () => {
      const mine = Array.from({ length: 8 }, (_, at) => `k/${at}`);
      for (const key of mine) await put(key, Buffer.from("x"));
      for (const name of ["other", "blobs/.x", "blobs/k/ +%&<\u0001", "blobs/k/á"]) bucket.put(name, [], {});
      expect((await Array.fromAsync(blobs.keys())).toSorted()).toEqual(mine);
      expect(asked().filter((each) => each === "ListObjectsV2").length).toBe(4);
    });

    it("outlive a passing fault in the middle, and each comes once", async () => {
      for (let at = 0; at < 8; at++) await put(`k/${at}`, Buffer.from("x"));
      let page = 0;
      store.mishap = ({ operation }) => (operation === "ListObjectsV2" && ++page % 2 === 0 ? "cut" : undefined);
      expect(await settle(Array.fromAsync(blobs.keys()))).toHaveLength(8);
    });
  });

  describe("opening", () => {
    it("refuses a bucket in which a newer version wrote", async () => {
      await put("format-3", Buffer.of());
      const object = bucket.objects.get("blobs/format-3")!;
      bucket.objects.set("blobs/.format-3", object);
      const error: unknown = await open().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ports.BlobsUnavailable);
      expect(findStoreTooNew(error)?.message).toContain("it has format 3");
      bucket.objects.delete("blobs/.format-3");
      await (await open()).close();
    });

    it("fails if the bucket does not exist, or the key is wrong", async () => {
      await expect(open({ bucket: "nowhere" })).rejects.toMatchObject({
        name: "BlobsUnavailable",
        cause: { code: "NoSuchBucket" },
      });
      const failure = await open({ secretAccessKey: new Secret("hidden-other-key") }).catch((error: unknown) => error);
      expect(failure).toMatchObject({ name: "BlobsUnavailable", cause: { status: 403, code: "SignatureDoesNotMatch" } });
      expectNoSecret(failure);
    });

    it.each<Partial<Record<keyof S3BlobsOptions, unknown>>>([
      { endpoint: "https://hidden-user:hidden-word@store.example" },
      { endpoint: "hidden-word" },
      { endpoint: "ftp://store.example" },
      { bucket: "a/b" },
      { bucket: ".." },
      { region: "a/b" },
      { prefix: "/" },
      { prefix: "../x" },
      { partBytes: PART - 1 },
      { heldBytes: 2 * PART - 1 },
      { silenceMs: 0 },
      { sweepAfterMs: 0 },
      { accessKeyId: new Secret("hidden\nword") },
      { secretAccessKey: new Secret("") },
      { sessionToken: new Secret("hidden\u00e1word") },
    ])("refuses %j with a TypeError that does not show it", async (wrong) => {
      const failure = await open(wrong as Partial<S3BlobsOptions>).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(TypeError);
      expectNoSecret(failure);
    });

    it("sweeps what killed processes have left below the prefix, once it is old enough", async () => {
      for (let at = 0; at < 4; at++) bucket.createUpload(`blobs/old ${at}`, {});
      bucket.createUpload("other", {});
      await clock.advance(60_000);
      bucket.createUpload("blobs/young", {});
      await (await open()).close();
      expect(bucket.uploads.size).toBe(6);
      await (await open({ sweepAfterMs: 60_000 })).close();
      expect(bucket.uploads.size).toBe(6);
      await (await open({ sweepAfterMs: 59_999 })).close();
      expect([...bucket.uploads.values()].map(({ key }) => key)).toEqual(["other", "blobs/young"]);
      const listings = store.requests.filter(({ operation }) => operation === "ListMultipartUploads");
      expect(new Set(listings.map(({ query }) => query.get("prefix")))).toEqual(new Set(["blobs/"]));
    });
  });

  it("names a bucket in the path, or in front of the host", () => {
    const at = { endpoint: "https://store.example:8443/s3/", bucket: "my.bucket", prefix: "p/" };
    expect(createStoreAddress(at).toUrl("a/b", {}).href).toBe("https://store.example:8443/s3/my.bucket/p/a/b");
    expect(createStoreAddress(at).toUrl(undefined, { x: "+" }).href).toBe("https://store.example:8443/s3/my.bucket?x=%2B");
    const host = createStoreAddress({ ...at, endpoint: "https://store.example", addressing: "host" });
    expect(host.toUrl("a", {}).href).toBe("https://my.bucket.store.example/p/a");
    expect(host.toUrl(undefined, {}).href).toBe("https://my.bucket.store.example/");
    expect(host.origin).toBe("https://my.bucket.store.example");
  });

  it("needs no more memory for a large blob than for a small one", async () => {
    // Larger than every limit below.
    const bytes = (process.env["PORTICO_LONG"] ? 256 : 160) * MIB;
    const plain = await startS3Store();
    const { endpoint, bucket: name, region } = plain.makeBucket().options;
    const { accessKeyId, secretAccessKey } = plain.key;
    const args = [endpoint, name, region!, accessKeyId, secretAccessKey, `${bytes}`];
    const child = fork(join(import.meta.dirname, "processes/put-s3-blob.ts"), args);
    const exit = once(child, "exit");
    const [said] = (await Promise.race([once(child, "message"), exit.then(() => ["ended"])])) as [Record<string, number>];
    await exit;
    await plain.close();
    expect([said.size, said.read]).toEqual([bytes, bytes]);
    // Two parts of 8 MiB, and what is on the line; what was read lies about until it is collected.
    expect(said.putting).toBeLessThan(40 * MIB);
    expect(said.reading).toBeLessThan(128 * MIB);
  });
});

/** Let time pass until it is settled, but none while the store is at work: what waits between attempts waits by the clock. */
async function settle<T>(work: Promise<T>, isAtWork = () => !store.requests.every(({ isOver }) => isOver)): Promise<T> {
  let isSettled = false;
  const over = (): boolean => (isSettled = true);
  work.then(over, over);
  while (!isSettled) {
    // Signing and the line are no matters of the clock: they get a hundred times as long as they need.
    await setTimeout(5);
    if (!isAtWork()) await clock.advance(100);
  }
  return work;
}

function expectNoSecret(error: unknown): void {
  const { accessKeyId } = store.key;
  const shown = inspect(error, { depth: 20, showHidden: true }) + `${(error as Error).stack}`;
  expect(shown).not.toContain("hidden");
  expect(shown).not.toContain(accessKeyId);
}

function* pieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += 65_536) yield bytes.subarray(at, at + 65_536);
}
