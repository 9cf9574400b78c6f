import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { Readable } from "node:stream";
import { type Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** The adapter under test, and what it needs. */
export interface BlobsUnderTest {
  readonly adapter: Adapter<typeof ports.blobs>;
  /** What the adapter needs beside. */
  readonly others?: readonly Adapter[];
}

/** Options of `blobsConformance`. */
export interface BlobsConformanceOptions {
  /** Whether a second adapter over the same place, opened with the same `BlobsUnderTest`, sees the first one's blobs. Default: false. */
  readonly shared?: boolean;
}

const MANY_BYTES = 5 * 1024 * 1024 + 7;
const PLENTY = { maxBytes: 64 * 1024 * 1024 };

/** The law of the blobs port, as vitest tests. `make` is called once per test, and gives a place that is empty. */
export function blobsConformance(
  name: string,
  make: () => BlobsUnderTest | Promise<BlobsUnderTest>,
  { shared = false }: BlobsConformanceOptions = {},
): void {
  describeSuite(`blobs port: ${name}`, () => {
    let made: BlobsUnderTest;
    let opened: OpenAdapter<ports.Blobs>;
    let blobs: ports.Blobs;
    const open = (): Promise<OpenAdapter<ports.Blobs>> => openAdapter(made.adapter, made.others);
    beforeEach(async () => {
      made = await make();
      opened = await open();
      blobs = opened.port;
    });
    afterEach(() => opened.close());

    const put = (key: string, text: string, options: Partial<ports.PutBlobOptions> = {}) =>
      blobs.put(key, Readable.from([Buffer.from(text)]), { ...PLENTY, ...options });
    const expectNothing = async (): Promise<void> => {
      expect(await keysOf(blobs)).toEqual([]);
      expect(await blobs.stat("a")).toBeUndefined();
      expect(await blobs.open("a")).toBeUndefined();
    };

    describe("put", () => {
      it.each([0, 1, 65_537, MANY_BYTES])("stores %d bytes, and tells their number and their hash", async (size) => {
        const bytes = randomBytes(size);
        expect(await blobs.put("a", Readable.from(pieces(bytes, 65_536)), PLENTY)).toEqual({ size, sha256: sha256(bytes) });
        expect((await blobs.stat("a"))?.size).toBe(size);
        const found = await blobs.open("a");
        expect(found?.size).toBe(size);
        expect((await buffer(found!.stream)).equals(bytes)).toBe(true);
      });

      it("takes any iterable of bytes, and chunks whose memory the source uses again", async () => {
        async function* source(): AsyncGenerator<Uint8Array> {
          const chunk = new Uint8Array(1000);
          for (let at = 0; at < 50; at++) yield chunk.fill(at);
        }
        await blobs.put("a", source(), PLENTY);
        const expected = Buffer.concat(Array.from({ length: 50 }, (_, at) => Buffer.alloc(1000, at)));
        expect((await buffer((await blobs.open("a"))!.stream)).equals(expected)).toBe(true);
        const web = new Blob(["from the web"]).stream();
        await blobs.put("b", web, PLENTY);
        expect(await read(blobs, "b")).toBe("from the web");
      });

      it("asks for a chunk when the one before is stored, and no earlier", async () => {
        let asked = 0;
        const source: AsyncIterable<Uint8Array> = {
          [Symbol.asyncIterator]: () => ({
            async next() {
              expect(isAsking).toBe(false);
              isAsking = true;
              await setImmediate();
              isAsking = false;
              return asked++ < 20 ? { done: false, value: Buffer.alloc(1000) } : { done: true, value: undefined };
            },
          }),
        };
        let isAsking = false;
        expect((await blobs.put("a", source, PLENTY)).size).toBe(20_000);
        expect(asked).toBe(21);
      });

      it("tells when it was put", async () => {
        await put("a", "x");
        const first = (await blobs.stat("a"))!.modifiedAt;
        expect(Number.isSafeInteger(first)).toBe(true);
        await put("a", "y");
        expect((await blobs.stat("a"))!.modifiedAt).toBeGreaterThanOrEqual(first);
      });

      it("replaces the previous blob; a reader of that one continues with it", async () => {
        const old = randomBytes(MANY_BYTES);
        await blobs.put("a", Readable.from(pieces(old, 65_536)), PLENTY);
        const reading = (await blobs.open("a"))!;
        const iterator = reading.stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
        const chunks = [(await iterator.next()).value as Buffer];
        await put("a", "new");
        expect(await read(blobs, "a")).toBe("new");
        for (let next = await iterator.next(); !next.done; next = await iterator.next()) chunks.push(next.value);
        expect(Buffer.concat(chunks).equals(old)).toBe(true);
      });

      it("shows the old bytes until the new ones are whole", async () => {
        await put("a", "old");
        const source = new Readable({ read() {} });
        const putting = blobs.put("a", source, PLENTY);
        source.push("new, ");
        await setImmediate();
        expect(await read(blobs, "a")).toBe("old");
        source.push("and whole");
        source.push(null);
        await putting;
        expect(await read(blobs, "a")).toBe("new, and whole");
      });

      it("leaves one of several whole that are put at once", async () => {
        const values = Array.from({ length: 20 }, () => randomBytes(200_000));
        const stored = await Promise.all(values.map((bytes) => blobs.put("a", Readable.from(pieces(bytes, 10_000)), PLENTY)));
        expect(stored.map((each) => each.sha256)).toEqual(values.map(sha256));
        const left = await buffer((await blobs.open("a"))!.stream);
        expect(values.some((bytes) => bytes.equals(left))).toBe(true);
        expect(await keysOf(blobs)).toEqual(["a"]);
      });

      it("throws BlobExists with `ifAbsent` where there is one, and leaves that and the source's rest alone", async () => {
        await put("a", "old");
        const source = new Readable({ read() {} });
        source.push("new");
        await expect(blobs.put("a", source, { ...PLENTY, ifAbsent: true })).rejects.toThrow(ports.BlobExists);
        expect(source.destroyed).toBe(true);
        expect(await read(blobs, "a")).toBe("old");
        await put("b", "new", { ifAbsent: true });
        expect(await read(blobs, "b")).toBe("new");
      });

      it("lets one win of fifty that make one blob with `ifAbsent` at once", async () => {
        const writers = Array.from({ length: 50 }, (_, at) => put("folder/a", `writer ${at}`, { ifAbsent: true }));
        const ends = await Promise.allSettled(writers);
        const winners = ends.flatMap((end, at) => (end.status === "fulfilled" ? [at] : []));
        expect(winners).toHaveLength(1);
        for (const end of ends) if (end.status === "rejected") expect(end.reason).toBeInstanceOf(ports.BlobExists);
        expect(await read(blobs, "folder/a")).toBe(`writer ${winners[0]}`);
      });

      it("takes `maxBytes`, and refuses one more with BlobTooLarge, its source destroyed", async () => {
        const full = Readable.from(pieces(Buffer.alloc(1000), 300));
        expect((await blobs.put("full", full, { maxBytes: 1000 })).size).toBe(1000);
        const over = Readable.from(pieces(Buffer.alloc(1001), 300));
        await expect(blobs.put("a", over, { maxBytes: 1000 })).rejects.toThrow(ports.BlobTooLarge);
        expect(over.destroyed).toBe(true);
        expect(await keysOf(blobs)).toEqual(["full"]);
        expect((await put("none", "", { maxBytes: 0 })).size).toBe(0);
        await expect(put("a", "x", { maxBytes: 0 })).rejects.toThrow(ports.BlobTooLarge);
      });

      it("tells a source that is too large to return", async () => {
        let isOver = false;
        async function* endless(): AsyncGenerator<Uint8Array> {
          try {
            for (;;) yield Buffer.alloc(1000);
          } finally {
            isOver = true;
          }
        }
        await expect(blobs.put("a", endless(), { maxBytes: 100_000 })).rejects.toThrow(ports.BlobTooLarge);
        expect(isOver).toBe(true);
        await expectNothing();
      });

      it.each([-1, Number.NaN])("refuses %d as `maxBytes` with a RangeError", async (maxBytes) => {
        await expect(put("a", "x", { maxBytes })).rejects.toThrow(RangeError);
        await expectNothing();
      });

      it("stores nothing when it is aborted, also while its source is silent", async () => {
        const source = new Readable({ read() {} });
        const stop = new AbortController();
        const putting = blobs.put("a", source, { ...PLENTY, signal: stop.signal });
        source.push("something");
        await setImmediate();
        stop.abort(new Error("left"));
        await expect(putting).rejects.toThrow("left");
        expect(source.destroyed).toBe(true);
        await expectNothing();
      });

      it("does not begin when it was aborted before", async () => {
        const source = Readable.from([Buffer.from("x")]);
        const signal = AbortSignal.abort(new Error("left before"));
        await expect(blobs.put("a", source, { ...PLENTY, signal })).rejects.toThrow("left before");
        expect(source.destroyed).toBe(true);
        await expectNothing();
      });

      it("keeps what it holds when its signal aborts later", async () => {
        const stop = new AbortController();
        await put("a", "x", { signal: stop.signal });
        stop.abort();
        expect(await read(blobs, "a")).toBe("x");
      });

      it("stores nothing of a source that breaks, and rejects with its error", async () => {
        await put("a", "old");
        const source = new Readable({ read() {} });
        const putting = blobs.put("a", source, PLENTY);
        source.push("new");
        await setImmediate();
        source.destroy(new Error("line cut"));
        await expect(putting).rejects.toThrow("line cut");
        async function* broken(): AsyncGenerator<Uint8Array> {
          yield Buffer.from("new");
          throw new Error("broken");
        }
        await expect(blobs.put("a", broken(), PLENTY)).rejects.toThrow("broken");
        expect(await read(blobs, "a")).toBe("old");
        expect(await keysOf(blobs)).toEqual(["a"]);
      });

      it("rejects, and stores nothing, when a source ends early or was over before", async () => {
        const source = new Readable({ read() {} });
        const putting = blobs.put("a", source, PLENTY);
        source.push("half");
        await setImmediate();
        source.destroy();
        await expect(putting).rejects.toThrow("Premature close");
        await expect(blobs.put("a", source, PLENTY)).rejects.toThrow();
        await expectNothing();
      });

      it("hears the error of a source that breaks at once", async () => {
        const source = new Readable({ read() {} });
        source.destroy(new Error("at once"));
        await expect(blobs.put("a", source, PLENTY)).rejects.toThrow("at once");
        await expectNothing();
      });

      it("refuses a source that gives no bytes with a TypeError", async () => {
        const text = Readable.from(["text"]).setEncoding("utf8");
        await expect(blobs.put("a", text, PLENTY)).rejects.toThrow(TypeError);
        const objects = Readable.from([Buffer.from("x"), { no: "bytes" }]);
        await expect(blobs.put("a", objects, PLENTY)).rejects.toThrow(TypeError);
        expect(objects.destroyed).toBe(true);
        await expectNothing();
      });
    });

    describe("open", () => {
      it("gives nothing of a key that holds nothing", async () => {
        await put("folder/a", "x");
        for (const key of ["b", "folder", "folder/b", "folder/a/b"]) {
          expect(await blobs.stat(key)).toBeUndefined();
          expect(await blobs.open(key)).toBeUndefined();
          expect(await blobs.open(key, { start: 5 })).toBeUndefined();
        }
      });

      it.each<[ports.OpenBlobOptions, string]>([
        [{}, "0123456789"],
        [{ start: 0, end: 9 }, "0123456789"],
        [{ start: 0, end: 0 }, "0"],
        [{ start: 9, end: 9 }, "9"],
        [{ start: 3, end: 5 }, "345"],
        [{ start: 7 }, "789"],
        [{ end: 2 }, "012"],
      ])("reads the range %j", async (range, expected) => {
        await put("a", "0123456789");
        const found = (await blobs.open("a", range))!;
        expect(found.size).toBe(10);
        expect((await buffer(found.stream)).toString()).toBe(expected);
      });

      it.each<ports.OpenBlobOptions>([
        { start: -1 },
        { start: 10 },
        { start: 0, end: 10 },
        { start: 5, end: 4 },
        { start: 1.5 },
        { end: -1 },
        { start: Number.NaN },
        { end: Infinity },
      ])("refuses the range %j with a RangeError", async (range) => {
        await put("a", "0123456789");
        await expect(blobs.open("a", range)).rejects.toThrow(RangeError);
      });

      it("reads nothing of an empty blob, and has no range of it", async () => {
        await put("a", "");
        expect(await read(blobs, "a")).toBe("");
        for (const range of [{ start: 0 }, { end: 0 }]) await expect(blobs.open("a", range)).rejects.toThrow(RangeError);
      });

      it("reads ranges of a large blob, also where they cross what is read at once", async () => {
        const bytes = randomBytes(MANY_BYTES);
        await blobs.put("a", Readable.from(pieces(bytes, 65_536)), PLENTY);
        const ranges = [
          [1, MANY_BYTES - 2],
          [262_143, 262_144],
          [65_535, 524_288],
          [MANY_BYTES - 1, MANY_BYTES - 1],
        ] as const;
        for (const [start, end] of ranges) {
          const { stream } = (await blobs.open("a", { start, end }))!;
          expect((await buffer(stream)).equals(bytes.subarray(start, end + 1))).toBe(true);
        }
      });

      it("gives every reader bytes of its own", async () => {
        await put("a", "text");
        for await (const chunk of (await blobs.open("a"))!.stream) (chunk as Buffer).fill(0);
        expect(await read(blobs, "a")).toBe("text");
      });

      it("can be left early", async () => {
        await blobs.put("a", Readable.from(pieces(Buffer.alloc(MANY_BYTES), 65_536)), PLENTY);
        for await (const _ of (await blobs.open("a"))!.stream) break;
        const { stream } = (await blobs.open("a"))!;
        stream.destroy();
        await once(stream, "close");
        expect((await blobs.stat("a"))?.size).toBe(MANY_BYTES);
      });

      it("stops with the signal's reason", async () => {
        await blobs.put("a", Readable.from(pieces(Buffer.alloc(MANY_BYTES), 65_536)), PLENTY);
        const stop = new AbortController();
        const { stream } = (await blobs.open("a", { signal: stop.signal }))!;
        const reading = (async () => {
          for await (const _ of stream) stop.abort(new Error("enough"));
        })();
        await expect(reading).rejects.toThrow("enough");
        const signal = AbortSignal.abort(new Error("at once"));
        await expect(blobs.open("a", { signal })).rejects.toThrow("at once");
      });

      it("ends a stream without listeners when its signal aborts", async () => {
        await put("a", "text");
        const stop = new AbortController();
        const { stream } = (await blobs.open("a", { signal: stop.signal }))!;
        stop.abort();
        await expect(buffer(stream)).rejects.toThrow();
      });
    });

    describe("locate", () => {
      it("is missing, or names the file of a blob, and nothing for a missing blob", async ({ skip }) => {
        if (!blobs.locate) return skip("the blobs are no files");
        await put("folder/a", "0123456789");
        const located = await blobs.locate("folder/a");
        expect(located).toEqual({ size: 10, path: expect.any(String) });
        expect(ports.isBlobKey(located!.path)).toBe(true);
        for (const key of ["b", "folder", "folder/b", "folder/a/b"]) expect(await blobs.locate(key)).toBeUndefined();
        for (const key of ["", "../a", "a//b", "/a"]) await expect(blobs.locate(key)).rejects.toThrow(TypeError);
        await blobs.remove("folder/a");
        expect(await blobs.locate("folder/a")).toBeUndefined();
      });
    });

    describe("remove", () => {
      it("removes a blob, once", async () => {
        await put("a", "x");
        await put("folder/b", "y");
        expect(await blobs.remove("a")).toBe(true);
        expect(await blobs.stat("a")).toBeUndefined();
        expect(await blobs.open("a")).toBeUndefined();
        for (const key of ["a", "folder", "folder/c", "none/at/all"]) expect(await blobs.remove(key)).toBe(false);
        expect(await keysOf(blobs)).toEqual(["folder/b"]);
        await put("a", "again", { ifAbsent: true });
        expect(await read(blobs, "a")).toBe("again");
      });

      it("tells one of several that remove one blob at once that there was one", async () => {
        await put("a", "x");
        const ends = await Promise.all(Array.from({ length: 20 }, () => blobs.remove("a")));
        expect(ends.filter(Boolean)).toHaveLength(1);
      });

      it("does not disturb its readers", async () => {
        await put("a", "still there");
        const { stream } = (await blobs.open("a"))!;
        await blobs.remove("a");
        expect((await buffer(stream)).toString()).toBe("still there");
      });
    });

    describe("keys", () => {
      it("gives each key once, however many there are", async () => {
        const all = Array.from({ length: 600 }, (_, at) => (at % 2 ? `many/${at}` : `f${at % 7}/g/${at}`));
        for (let at = 0; at < all.length; at += 50) await Promise.all(all.slice(at, at + 50).map((key) => put(key, "")));
        expect(await keysOf(blobs)).toEqual(all.toSorted());
      });

      it.each([
        ["", ["a", "a-b", "a.b/c", "ab/c", "b/a/c", "b/a/d", "b/ab"]],
        ["a", ["a", "a-b", "a.b/c", "ab/c"]],
        ["ab", ["ab/c"]],
        ["a.b/", ["a.b/c"]],
        ["b/a", ["b/a/c", "b/a/d", "b/ab"]],
        ["b/a/", ["b/a/c", "b/a/d"]],
        ["b/a/d", ["b/a/d"]],
        ["a/", []],
        ["none/at/all", []],
      ])("gives those that begin with %j", async (prefix, expected) => {
        for (const key of ["a", "a-b", "a.b/c", "ab/c", "b/a/c", "b/a/d", "b/ab"]) await put(key, key);
        expect(await keysOf(blobs, prefix)).toEqual(expected);
      });

      it.each(["/", ".", "a//", "../", "a/.", "%", "x".repeat(513), "a\0"])("refuses the prefix %j", async (prefix) => {
        await expect(keysOf(blobs, prefix)).rejects.toThrow(TypeError);
      });

      it("gives every key that exists throughout, while others come and go", async () => {
        const kept = Array.from({ length: 100 }, (_, at) => `kept/${at}`);
        const gone = Array.from({ length: 100 }, (_, at) => `kept/gone-${at}`);
        await Promise.all([...kept, ...gone].map((key) => put(key, "")));
        const seen: string[] = [];
        for await (const key of blobs.keys()) {
          seen.push(key);
          const going = gone.pop();
          if (going) await Promise.all([blobs.remove(going), put(`kept/${seen.length % 100}`, "replaced")]);
        }
        expect(seen.filter((key) => kept.includes(key)).toSorted()).toEqual(kept.toSorted());
      });

      it("can be left early, and stops with the signal's reason", async () => {
        await put("a", "x");
        await put("b", "x");
        for await (const _ of blobs.keys()) break;
        const stop = new AbortController();
        const reading = (async () => {
          for await (const _ of blobs.keys("", stop.signal)) stop.abort(new Error("enough"));
        })();
        await expect(reading).rejects.toThrow("enough");
      });
    });

    describe("a key", () => {
      it.each(["a", "A", "0", "-", "_", "a.b", "a..b", "a.", "a/b/c", "-/_", "x".repeat(255), key512])(
        "may be %j",
        async (key) => {
          await put(key, key);
          expect(await read(blobs, key)).toBe(key);
          expect(await keysOf(blobs)).toEqual([key]);
          expect(await blobs.remove(key)).toBe(true);
        },
      );

      it.each([
        ...["", "/", "/a", "a/", "a//b", ".", "..", "../x", "a/..", "a/../b", "./a", ".tmp/x", "a/.b", ".a"],
        ...["a\0b", "a\\b", "a b", "a:b", "%2e%2e", "%2e%2e/x", "á", "a\n", "\n", "a?", "a*", "~"],
        ...["x".repeat(256), `${key512}x`],
        ...[undefined as unknown as string, ["a"] as unknown as string],
      ])("cannot be %j", async (key) => {
        const source = Readable.from([Buffer.from("x")]);
        await expect(blobs.put(key, source, PLENTY)).rejects.toThrow(TypeError);
        expect(source.destroyed).toBe(true);
        await expect(blobs.stat(key)).rejects.toThrow(TypeError);
        await expect(blobs.open(key)).rejects.toThrow(TypeError);
        await expect(blobs.remove(key)).rejects.toThrow(TypeError);
        expect(await keysOf(blobs)).toEqual([]);
      });

      it.each([false, true])(
        "that is another's folder is kept or refused with BlobsUnavailable, and the other stays (`ifAbsent`: %s)",
        async (ifAbsent) => {
          await put("a", "first");
          await put("b/c", "first");
          for (const key of ["a/b", "b"]) {
            const stored = await put(key, "second", { ifAbsent }).catch((error: unknown) => error);
            if (stored instanceof Error) expect(stored).toBeInstanceOf(ports.BlobsUnavailable);
            else expect(await read(blobs, key)).toBe("second");
          }
          expect(await read(blobs, "a")).toBe("first");
          expect(await read(blobs, "b/c")).toBe("first");
        },
      );
    });

    describe("closing", () => {
      it("makes everything unavailable", async () => {
        await put("a", "x");
        await put("b", "x");
        const keys = blobs.keys()[Symbol.asyncIterator]();
        await keys.next();
        await opened.close();
        const source = Readable.from([Buffer.from("x")]);
        await expect(blobs.put("a", source, PLENTY)).rejects.toThrow(ports.BlobsUnavailable);
        expect(source.destroyed).toBe(true);
        await expect(blobs.stat("a")).rejects.toThrow(ports.BlobsUnavailable);
        await expect(blobs.open("a")).rejects.toThrow(ports.BlobsUnavailable);
        await expect(blobs.remove("a")).rejects.toThrow(ports.BlobsUnavailable);
        await expect(keysOf(blobs)).rejects.toThrow(ports.BlobsUnavailable);
        await expect(keys.next()).rejects.toThrow(ports.BlobsUnavailable);
      });

      it("aborts what is put, also from a silent source", async () => {
        const silent = new Readable({ read() {} });
        const putting = blobs.put("a", silent, PLENTY);
        const ended = expect(putting).rejects.toThrow(ports.BlobsUnavailable);
        silent.push("something");
        await setImmediate();
        await opened.close();
        await ended;
        expect(silent.destroyed).toBe(true);
      });

      it("ends open streams, also those that are not read yet", async () => {
        await blobs.put("a", Readable.from(pieces(Buffer.alloc(MANY_BYTES), 65_536)), PLENTY);
        const unread = (await blobs.open("a"))!.stream;
        const { stream } = (await blobs.open("a"))!;
        const reading = buffer(stream);
        const ended = expect(reading).rejects.toThrow(ports.BlobsUnavailable);
        await opened.close();
        await ended;
        expect(unread.destroyed).toBe(true);
        await expect(buffer(unread)).rejects.toThrow();
      });
    });

    if (shared) {
      it("shares its blobs with another that is open at the same place, and with one that is opened later", async () => {
        const other = await open();
        await put("a", "x");
        expect(await read(other.port, "a")).toBe("x");
        const writers = [blobs, other.port].flatMap((each) =>
          Array.from({ length: 10 }, () => each.put("b", Readable.from([Buffer.from("y")]), { ...PLENTY, ifAbsent: true })),
        );
        const ends = await Promise.allSettled(writers);
        expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
        await other.close();
        await opened.close();
        const again = await open();
        expect(await keysOf(again.port)).toEqual(["a", "b"]);
        expect(await read(again.port, "b")).toBe("y");
        await again.close();
      });
    }
  });
}

/** 512 characters. */
const key512 = `${"x".repeat(255)}/${"y".repeat(254)}/z`;

function* pieces(bytes: Buffer, length: number): Generator<Buffer> {
  for (let at = 0; at < bytes.byteLength; at += length) yield bytes.subarray(at, at + length);
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

async function read(blobs: ports.Blobs, key: string): Promise<string> {
  return (await buffer((await blobs.open(key))!.stream)).toString();
}

async function keysOf(blobs: ports.Blobs, prefix?: string): Promise<string[]> {
  return (await Array.fromAsync(blobs.keys(prefix))).toSorted();
}
