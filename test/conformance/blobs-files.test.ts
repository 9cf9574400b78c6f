import { type ChildProcess, execFileSync, fork, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { open as openFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { findStoreTooNew, ports } from "@portico/core";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-blob-files-"));
afterAll(() => rmSync(folder, { recursive: true }));

const PLENTY = { maxBytes: 1024 * 1024 * 1024 };
const putBlob = join(import.meta.dirname, "processes/put-blob.ts");
const descriptors = "/proc/self/fd";
let folders = 0;

describe("blobs/files", () => {
  let dir: string;
  let opened: OpenAdapter<ports.Blobs>;
  let blobs: ports.Blobs;
  beforeEach(async () => {
    dir = join(folder, `data-${++folders}`, "blobs");
    opened = await openAdapter(fileBlobs({ dir }));
    blobs = opened.port;
  });
  afterEach(() => opened.close());

  const put = (key: string, text: string, options: Partial<ports.PutBlobOptions> = {}) =>
    blobs.put(key, Readable.from([Buffer.from(text)]), { ...PLENTY, ...options });
  const keys = async (): Promise<string[]> => (await Array.fromAsync(blobs.keys())).toSorted();
  const modeOf = (path: string): number => statSync(path).mode & 0o777;
  /** Files that are not yet what they will be, of whomever. */
  const unfinished = (): string[] =>
    readdirSync(join(dir, ".tmp"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !["lock", ".format"].includes(entry.name))
      .map((entry) => join(entry.parentPath, entry.name));

  it("locates a blob at the file of its key's name, and follows no links", async () => {
    await put("media/a", "text");
    const { path, size } = (await blobs.locate!("media/a"))!;
    expect([readFileSync(join(dir, path), "utf8"), size]).toEqual(["text", 4]);
    symlinkSync(join(dir, "media"), join(dir, "linked"));
    symlinkSync(join(dir, "media/a"), join(dir, "media/b"));
    expect([await blobs.locate!("linked/a"), await blobs.locate!("media/b")]).toEqual([undefined, undefined]);
  });

  it("keeps each blob in a file of its key's name that only its owner can read", async () => {
    await put("media/images/a.png", "picture");
    expect(readFileSync(join(dir, "media/images/a.png"), "utf8")).toBe("picture");
    for (const entry of readdirSync(dirname(dir), { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      expect([path, modeOf(path)]).toEqual([path, entry.isDirectory() ? 0o700 : 0o600]);
    }
  });

  it.each(["replaced", "absent"])("gives a file its name when its bytes are on the disk, and not before (%s)", async (kind) => {
    const place = join(dir, "a/b");
    if (kind === "replaced") await put("a/b", "before");
    const handle = await openFile(join(folder, "any"), "w");
    const Handle = Object.getPrototypeOf(handle) as { sync(this: typeof handle): Promise<void> };
    await handle.close();
    const { sync } = Handle;
    const synced: string[] = [];
    Handle.sync = async function (this: typeof handle) {
      const isNamed = existsSync(place) && readFileSync(place, "utf8") === "bytes";
      synced.push(`${(await this.stat()).isFile() ? "bytes" : "folder"} ${isNamed ? "named" : "unnamed"}`);
      await sync.call(this);
    };
    try {
      await put("a/b", "bytes", { ifAbsent: kind === "absent" });
    } finally {
      Handle.sync = sync;
    }
    expect(synced.filter((what) => what.startsWith("bytes"))).toEqual(["bytes unnamed"]);
    expect(synced.at(-1)).toBe("folder named");
  });

  it("opens a new folder several times at the same time, as processes of several machines with equal IDs do", async () => {
    const fresh = join(folder, `data-${++folders}`);
    const openings = await Promise.all(Array.from({ length: 8 }, () => openAdapter(fileBlobs({ dir: fresh }))));
    for (const each of openings) await each.close();
    expect(readdirSync(fresh).toSorted()).toEqual([".format", ".tmp"]);
  });

  it("has a format, and refuses a folder of a newer one", async () => {
    const mark = join(dir, ".format");
    expect(readFileSync(mark, "utf8")).toBe("1\n");
    await put("a", "x");
    writeFileSync(mark, "2\n");
    const error: unknown = await openAdapter(fileBlobs({ dir })).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ports.BlobsUnavailable);
    expect(findStoreTooNew(error)?.message).toContain("it has format 2");
    expect([readFileSync(mark, "utf8"), await keys()]).toEqual(["2\n", ["a"]]);
    rmSync(mark);
    await (await openAdapter(fileBlobs({ dir }))).close();
    expect(readFileSync(mark, "utf8")).toBe("1\n");
  });

  it("leaves no unfinished file after any failure", async () => {
    await put("a", "x");
    await put("a", "y");
    await put("b", "x", { ifAbsent: true });
    expect(statSync(join(dir, "b")).nlink).toBe(1);
    const broken = Readable.from(
      (function* () {
        yield Buffer.from("x");
        throw new Error("broken");
      })(),
    );
    const stop = new AbortController();
    const silent = new Readable({ read() {} });
    const putting = blobs.put("a", silent, { ...PLENTY, signal: stop.signal });
    silent.push("x");
    const ends = Promise.allSettled([
      put("a", "too large", { maxBytes: 3 }),
      put("a", "exists", { ifAbsent: true }),
      ...Array.from({ length: 10 }, () => put("c", "once", { ifAbsent: true })),
      blobs.put("a", broken, PLENTY),
      put("a/below", "a file is in the way"),
      putting,
    ]);
    await setImmediate();
    stop.abort();
    expect((await ends).filter(({ status }) => status === "rejected")).toHaveLength(14);
    expect(unfinished()).toEqual([]);
  });

  it("reads files that another program put into the folder, and lists no names that are not keys", async () => {
    mkdirSync(join(dir, "media/.hidden"), { recursive: true });
    for (const name of ["media/old.png", "media/no key", "media/.hidden/x", ".x"]) writeFileSync(join(dir, name), "theirs");
    expect(await keys()).toEqual(["media/old.png"]);
    expect((await buffer((await blobs.open("media/old.png"))!.stream)).toString()).toBe("theirs");
    expect((await blobs.stat("media/old.png"))?.modifiedAt).toBe(Math.floor(statSync(join(dir, "media/old.png")).mtimeMs));
  });

  it("says that it is unavailable when the place cannot be written, and keeps the cause", async () => {
    const file = join(folder, `file-${++folders}`);
    writeFileSync(file, "");
    const opening = openAdapter(fileBlobs({ dir: join(file, "below") }));
    await expect(opening).rejects.toMatchObject({ name: "BlobsUnavailable", cause: { code: "ENOTDIR" } });
    await put("folder/a", "x");
    await expect(put("folder", "x")).rejects.toMatchObject({ name: "BlobsUnavailable", cause: { code: "EISDIR" } });
  });

  it("fails to read rather than end early where a file gets shorter", async () => {
    await blobs.put("a", Readable.from([Buffer.alloc(1024 * 1024)]), PLENTY);
    const { stream } = (await blobs.open("a"))!;
    truncateSync(join(dir, "a"), 300_000);
    await expect(buffer(stream)).rejects.toThrow(ports.BlobsUnavailable);
  });

  it("accepts a folder that is itself a link", async () => {
    await put("media/a", "x");
    const link = join(folder, `link-${++folders}`);
    symlinkSync(dir, link);
    const linked = await openAdapter(fileBlobs({ dir: link }));
    expect((await linked.port.stat("media/a"))?.size).toBe(1);
    expect(await Array.fromAsync(linked.port.keys("media/"))).toEqual(["media/a"]);
    await linked.close();
  });

  describe("where there is a link in the folder", () => {
    let outside: string;
    beforeEach(() => {
      outside = join(folder, `outside-${++folders}`);
      mkdirSync(join(outside, "sub"), { recursive: true });
      writeFileSync(join(outside, "secret"), "hidden-word");
      writeFileSync(join(outside, "sub/secret"), "hidden-word");
      symlinkSync(join(outside, "secret"), join(dir, "file"));
      symlinkSync(outside, join(dir, "folder"));
    });

    it("reads, lists and removes nothing through it", async () => {
      for (const key of ["file", "folder", "folder/secret", "folder/sub/secret", "file/x"]) {
        expect(await blobs.stat(key)).toBeUndefined();
        expect(await blobs.open(key)).toBeUndefined();
        expect(await blobs.remove(key)).toBe(false);
      }
      expect(await keys()).toEqual([]);
      expect(await Array.fromAsync(blobs.keys("folder/"))).toEqual([]);
      expect(await Array.fromAsync(blobs.keys("folder/sub/s"))).toEqual([]);
      expect(existsSync(join(outside, "sub/secret"))).toBe(true);
    });

    it("writes nothing through it, and in its own place only where that is the key's", async () => {
      for (const key of ["folder/secret", "folder/new", "folder/sub/new", "folder/made/new"])
        await expect(put(key, "x")).rejects.toThrow(ports.BlobsUnavailable);
      // Nothing is there to read, and nothing else may take its place: that is no blob that exists.
      await expect(put("file", "x", { ifAbsent: true })).rejects.toThrow(ports.BlobsUnavailable);
      expect(readdirSync(outside, { recursive: true }).toSorted()).toEqual(["secret", "sub", "sub/secret"]);
      expect(readFileSync(join(outside, "secret"), "utf8")).toBe("hidden-word");
      await put("file", "in the link's place");
      expect(readFileSync(join(outside, "secret"), "utf8")).toBe("hidden-word");
      expect((await buffer((await blobs.open("file"))!.stream)).toString()).toBe("in the link's place");
    });
  });

  it("does not wait for the writer of a pipe", async () => {
    execFileSync("mkfifo", [join(dir, "pipe")]);
    expect(await blobs.stat("pipe")).toBeUndefined();
    expect(await blobs.open("pipe")).toBeUndefined();
    expect(await keys()).toEqual([]);
  });

  it.runIf(existsSync(descriptors))("holds nothing open longer than it is read, and nothing at all once closed", async () => {
    const held = (): string[] =>
      readdirSync(descriptors)
        .map(targetOf)
        .filter((path) => path.startsWith(dir) && !path.endsWith("lock"));
    await blobs.put("a", Readable.from([Buffer.alloc(4 * 1024 * 1024)]), PLENTY);
    await put("folder/b", "x");
    await buffer((await blobs.open("a"))!.stream);
    for await (const _ of (await blobs.open("a"))!.stream) break;
    await expect(blobs.open("a", { start: 5 * 1024 * 1024 })).rejects.toThrow(RangeError);
    await put("a", "too large", { maxBytes: 1 }).catch(() => {});
    expect(await blobs.open("folder")).toBeUndefined();
    await put("gone", "x");
    const { stream: last } = (await blobs.open("gone"))!;
    await blobs.remove("gone");
    expect(held()).toHaveLength(1);
    await buffer(last);
    expect(held()).toEqual([]);

    const reading = blobs.keys("folder/")[Symbol.asyncIterator]();
    await reading.next();
    const { stream } = (await blobs.open("a"))!;
    await once(stream, "readable");
    const silent = new Readable({ read() {} });
    const putting = expect(blobs.put("c", silent, PLENTY)).rejects.toThrow(ports.BlobsUnavailable);
    silent.push("x");
    while (unfinished().length === 0) await setImmediate();
    expect(held()).toHaveLength(3);
    await opened.close();
    await putting;
    expect(readdirSync(descriptors).filter((number) => targetOf(number).startsWith(dir))).toEqual([]);
    expect(readdirSync(join(dir, ".tmp"))).toEqual(["lock"]);
  });

  describe("with other processes", () => {
    const children: ChildProcess[] = [];
    afterEach(() => {
      for (const child of children.splice(0)) child.kill("SIGKILL");
    });
    const follow = (child: ChildProcess) => {
      children.push(child);
      const said = Promise.withResolvers<Record<string, unknown>>();
      const writing = Promise.withResolvers<void>();
      child.on("message", (message: "writing" | Record<string, unknown>) =>
        message === "writing" ? writing.resolve() : said.resolve(message),
      );
      return { child, writing: writing.promise, said: said.promise, exit: once(child, "exit") };
    };
    const start = (bytes: number) => follow(fork(putBlob, [dir, `${bytes}`]));

    it("takes away what a killed one left, and nothing of one that lives", async () => {
      const killed = start(Infinity);
      await killed.writing;
      const silent = new Readable({ read() {} });
      const putting = blobs.put("mine", silent, PLENTY);
      silent.push("wh");
      while (unfinished().length < 2) await setImmediate();

      await (await openAdapter(fileBlobs({ dir }))).close();
      await start(0).exit;
      expect(unfinished()).toHaveLength(2);

      killed.child.kill("SIGKILL");
      await killed.exit;
      expect(unfinished()).toHaveLength(2);
      await (await openAdapter(fileBlobs({ dir }))).close();
      expect(unfinished()).toHaveLength(1);
      silent.push("ole");
      silent.push(null);
      expect((await putting).size).toBe(5);
      expect(await keys()).toEqual(["a", "mine"]);
      expect((await blobs.stat("a"))?.size).toBe(0);
    });

    it("needs no more memory for 256 MiB than for little", async () => {
      const { size, read, grownKib } = await start(256 * 1024 * 1024).said;
      expect([size, read]).toEqual([256 * 1024 * 1024, 256 * 1024 * 1024]);
      expect(grownKib).toBeLessThan(100 * 1024);
    });

    it("is unavailable where nothing more can be written, and leaves nothing of it", async () => {
      const limited = 'ulimit -f 4096; exec "$0" "$@"';
      const args = ["-c", limited, process.execPath, putBlob, dir, `${16 * 1024 * 1024}`];
      const { said, exit } = follow(spawn("sh", args, { stdio: ["ignore", "ignore", "inherit", "ipc"] }));
      expect(await said).toEqual({ name: "BlobsUnavailable", code: "EFBIG" });
      await exit;
      expect(unfinished()).toEqual([]);
      expect(await keys()).toEqual([]);
    });
  });
});

/** What a descriptor of this process is open on; nothing for the one that listed them, which is closed by now. */
function targetOf(number: string): string {
  try {
    return readlinkSync(join(descriptors, number));
  } catch {
    return "";
  }
}
