import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { systemClock } from "@portico/adapters/clock/system";
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { type UnstorageDocumentsOptions, unstorageDocuments } from "@portico/adapters/documents/unstorage";
import { ports } from "@portico/core";
import { createStorage, type Driver } from "unstorage";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { documentsConformance } from "./documents.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

// Below a hidden folder, as a data directory usually is.
const folder = join(mkdtempSync(join(tmpdir(), "portico-documents-")), ".portico");
mkdirSync(folder);
afterAll(() => rmSync(dirname(folder), { recursive: true }));

let folders = 0;
const newFolder = (): string => join(folder, `${++folders}`);
const others = [systemClock()];

function editIn(dir: string): (name: string, text: string | Uint8Array | undefined) => void {
  return (name, text) => {
    const path = join(dir, name);
    if (text === undefined) return unlinkSync(path);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  };
}

/** unstorage's own store in memory, which another program may change through `texts`. */
function memoryDriver(): { readonly driver: Driver; readonly texts: Map<string, unknown> } {
  const { driver } = createStorage().getMount();
  return { driver, texts: driver.getInstance?.() as Map<string, unknown> };
}

documentsConformance("memory", () => ({ adapter: memoryDocuments({ id: "agents" }) }), { others });
documentsConformance(
  "unstorage, a folder",
  () => {
    const dir = newFolder();
    const edit = editIn(dir);
    return { adapter: unstorageDocuments({ id: "agents", dir }), edit, spoil: edit };
  },
  { others },
);
documentsConformance(
  "unstorage, another driver",
  () => {
    const { driver, texts } = memoryDriver();
    const put = (name: string, value: unknown) => void texts.set(name.replaceAll("/", ":"), value);
    const edit = (name: string, text: string | undefined) =>
      void (text === undefined ? texts.delete(name.replaceAll("/", ":")) : put(name, text));
    return { adapter: unstorageDocuments({ id: "agents", driver, pollMs: 20 }), edit, spoil: put };
  },
  { others },
);

describe("documents/memory", () => {
  it("has the texts that it was given, and refuses an invalid name", async () => {
    const { port } = await openAdapter(memoryDocuments({ id: "workflows", texts: { "a/b": "text" } }), others);
    expect([port.id, await port.list(), (await port.read("a/b"))?.text]).toEqual(["workflows", ["a/b"], "text"]);
    await expect(openAdapter(memoryDocuments({ id: "workflows", texts: { "../b": "" } }), others)).rejects.toThrow(TypeError);
  });
});

describe("documents/unstorage, a folder", () => {
  let dir: string;
  let edit: ReturnType<typeof editIn>;
  let opened: OpenAdapter<ports.Documents>;
  let documents: ports.Documents;
  const open = async (options: Partial<UnstorageDocumentsOptions> = {}) => {
    opened = await openAdapter(unstorageDocuments({ id: "agents", dir, ...options }), others);
    documents = opened.port;
  };
  beforeEach(async () => {
    dir = newFolder();
    edit = editIn(dir);
    await open();
  });
  afterEach(() => opened.close());

  const watched = async (): Promise<string[]> => {
    const names: string[] = [];
    await documents.watch((changed) => names.push(changed));
    return names;
  };
  const soon = (holds: () => unknown): Promise<unknown> => vi.waitFor(holds, { timeout: 30_000, interval: 20 });
  const refused = (call: Promise<unknown>) => expect(call).rejects.toBeInstanceOf(ports.DocumentsUnavailable);

  it("is empty and readable without its folder, and makes it for the first document", async () => {
    expect(existsSync(dir)).toBe(false);
    expect([await documents.list(), await documents.read("x")]).toEqual([[], undefined]);
    await documents.write("a/b/x", "text", "absent");
    expect(readFileSync(join(dir, "a/b/x"), "utf8")).toBe("text");
  });

  it("leaves nothing beside a document, whether it was written or not", async () => {
    const { version } = await documents.write("x", "one", "absent");
    await documents.write("x", "two", version);
    await documents.write("x", "three", version).catch(() => {});
    await documents.write("x", "four", "absent").catch(() => {});
    expect(readdirSync(dir)).toEqual(["x"]);
  });

  it("never shows a part: a concurrent reader gets the old text or the new one", async () => {
    const texts = Array.from({ length: 40 }, (_, at) => `${at}`.repeat(200_000));
    let { version } = await documents.write("x", texts[0]!, "absent");
    const read: string[] = [];
    let isDone = false;
    const reading = (async () => {
      while (!isDone) {
        read.push(readFileSync(join(dir, "x"), "utf8"));
        await new Promise(setImmediate);
      }
    })();
    for (const text of texts.slice(1)) ({ version } = await documents.write("x", text, version));
    isDone = true;
    await reading;
    expect(read.length).toBeGreaterThan(40);
    expect(read.every((text) => texts.includes(text))).toBe(true);
  });

  it("conflicts with an edit that comes while the new text is already being written", async () => {
    const { version } = await documents.write("x", "one", "absent");
    const writing = documents.write("x", "ours".repeat(1_000_000), version);
    writing.catch(() => {});
    while (readdirSync(dir).length < 2) await new Promise(setImmediate);
    edit("x", "theirs");
    await expect(writing).rejects.toBeInstanceOf(ports.DocumentConflict);
    expect(readdirSync(dir)).toEqual(["x"]);
    expect((await documents.read("x"))?.text).toBe("theirs");
  });

  it("conflicts with a document that another writer makes at the same time", async () => {
    mkdirSync(dir);
    const writing = documents.write("x", "ours".repeat(1_000_000), "absent");
    writing.catch(() => {});
    while (readdirSync(dir).length < 1) await new Promise(setImmediate);
    edit("x", "theirs");
    await expect(writing).rejects.toBeInstanceOf(ports.DocumentConflict);
    expect((await documents.read("x"))?.text).toBe("theirs");
  });

  it("writes into a new file; readers that have the old one open keep its content", async () => {
    const { version } = await documents.write("x", "one", "absent");
    const before = statSync(join(dir, "x")).ino;
    await documents.write("x", "two", version);
    expect(statSync(join(dir, "x")).ino).not.toBe(before);
  });

  it("keeps a file's mode", async () => {
    edit("x", "theirs");
    chmodSync(join(dir, "x"), 0o640);
    await documents.write("x", "ours", (await documents.read("x"))!.version);
    expect(statSync(join(dir, "x")).mode & 0o777).toBe(0o640);
  });

  it("sweeps what a killed process left of its write of the same document, and nothing that may be a running one's", async () => {
    const { version } = await documents.write("x", "one", "absent");
    const fresh = await freshNameOf("x");
    edit(fresh, "left");
    utimesSync(join(dir, fresh), 0, 0);
    edit(`${fresh}2`, "being written");
    await documents.write("x", "two", version);
    expect(readdirSync(dir).sort()).toEqual([`${fresh}2`, "x"]);
    expect(await documents.list()).toEqual(["x"]);
  });

  /** The name that a text has on its way: seen in a folder that holds nothing else, of a write that cannot end. */
  async function freshNameOf(name: string): Promise<string> {
    const other = newFolder();
    const { port } = await openAdapter(unstorageDocuments({ id: "agents", dir: other }), others);
    mkdirSync(other);
    const seen = new Set<string>();
    const writing = port.write(name, "text", "absent");
    let isDone = false;
    void writing.finally(() => (isDone = true));
    while (!isDone) {
      for (const each of readdirSync(other)) seen.add(each);
      await new Promise(setImmediate);
    }
    const found = [...seen].find((each) => each.startsWith("."));
    expect(found).toBeDefined();
    return found!.slice(0, -4);
  }

  describe("links", () => {
    let outside: string;
    beforeEach(() => {
      outside = newFolder();
      mkdirSync(outside);
      mkdirSync(dir);
      writeFileSync(join(outside, "secret"), "hidden-word");
    });

    it.each(["a file", "a folder"])(
      "neither reads, writes, removes nor lists what a link to %s outside leads to",
      async (what) => {
        const name = what === "a file" ? "link" : "link/secret";
        symlinkSync(what === "a file" ? join(outside, "secret") : outside, join(dir, "link"));
        await refused(documents.read(name));
        await refused(documents.write(name, "text", "absent"));
        await refused(documents.remove(name, "absent"));
        expect(await documents.list()).toEqual([]);
        expect(readdirSync(outside)).toEqual(["secret"]);
        expect(readFileSync(join(outside, "secret"), "utf8")).toBe("hidden-word");
      },
    );

    it("makes no file and no folder outside through a link", async () => {
      symlinkSync(outside, join(dir, "link"));
      await refused(documents.write("link/new", "text", "absent"));
      await refused(documents.write("link/new/deep/x", "text", "absent"));
      symlinkSync(join(outside, "nothing-yet"), join(dir, "dangling"));
      await documents.write("dangling", "text", "absent").catch(() => {});
      expect(readdirSync(outside)).toEqual(["secret"]);
    });

    it("follows links within the folder, once, and writes to where they lead", async () => {
      edit("real/x", "one");
      symlinkSync("real", join(dir, "linked"));
      symlinkSync("..", join(dir, "real/up"));
      symlinkSync("real/x", join(dir, "y"));
      expect(await documents.list()).toEqual(["linked/x", "real/x", "y"]);
      await documents.write("y", "two", (await documents.read("y"))!.version);
      expect((await documents.read("real/x"))?.text).toBe("two");
    });

    it("takes a folder that is a link itself", async () => {
      edit("x", "text");
      symlinkSync(dir, `${dir}-link`);
      const { port, close } = await openAdapter(unstorageDocuments({ id: "agents", dir: `${dir}-link` }), others);
      expect([await port.list(), (await port.read("x"))?.text]).toEqual([["x"], "text"]);
      await close();
    });
  });

  it("lists no hidden files, no files below hidden folders, and no invalid names", async () => {
    for (const name of ["x", ".hidden", "a/.git/config", ".portico/x", "a:b", "a?b"]) edit(name, "text");
    expect(await documents.list()).toEqual(["x"]);
  });

  it("refuses a file over 16 MiB and anything but a file, and ignores a folder", async () => {
    edit("large", Buffer.alloc(ports.DOCUMENT_BYTES + 1, "x"));
    mkdirSync(join(dir, "folder"));
    await refused(documents.read("large"));
    expect(await documents.read("folder")).toBeUndefined();
    await expect(documents.write("folder", "text", "absent")).rejects.toBeInstanceOf(ports.DocumentConflict);
  });

  it("lists and watches no deeper than it is told", async () => {
    await opened.close();
    await open({ depth: 2 });
    edit("a/agent.json", "1");
    edit("a/b/deep.json", "1");
    expect(await documents.list()).toEqual(["a/agent.json"]);
    const names = await watched();
    edit("a/b/deep.json", "2");
    edit("b/c/deep.json", "2");
    edit("b/agent.json", "2");
    await soon(() => expect(names).toContain("b/agent.json"));
    expect(new Set(names)).toEqual(new Set(["b/agent.json"]));
  });

  describe("watch", () => {
    it("sees how editors save: a new file renamed over the old one, or the old one moved away first", async () => {
      edit("a/x", "1");
      const names = await watched();
      edit("a/.x.swp", "2");
      renameSync(join(dir, "a/.x.swp"), join(dir, "a/x"));
      await soon(() => expect(names).toContain("a/x"));
      names.length = 0;
      renameSync(join(dir, "a/x"), join(dir, "a/x~"));
      edit("a/x", "3");
      await soon(() => expect(names).toContain("a/x"));
      expect((await documents.read("a/x"))?.text).toBe("3");
    });

    it("sees whole folders come and go", async () => {
      edit("a/x", "1");
      edit("a/deep/y", "1");
      const names = await watched();
      cpSync(join(dir, "a"), join(dir, "b"), { recursive: true });
      await soon(() => expect(names).toEqual(expect.arrayContaining(["b/x", "b/deep/y"])));
      names.length = 0;
      renameSync(join(dir, "a"), `${dir}-gone`);
      await soon(() => expect(names).toEqual(expect.arrayContaining(["a/x", "a/deep/y"])));
    });

    it("sees mounted configuration swapped by a link", async () => {
      edit("..one/w.yaml", "1");
      edit("..two/w.yaml", "2");
      symlinkSync("..one", join(dir, "..data"));
      symlinkSync("..data/w.yaml", join(dir, "w.yaml"));
      expect([await documents.list(), (await documents.read("w.yaml"))?.text]).toEqual([["w.yaml"], "1"]);
      const names = await watched();
      symlinkSync("..two", join(dir, "..fresh"));
      renameSync(join(dir, "..fresh"), join(dir, "..data"));
      await soon(() => expect(names).toContain("w.yaml"));
      expect((await documents.read("w.yaml"))?.text).toBe("2");
    });

    it("tells of a burst of changes to one document as few", async () => {
      edit("x", "0");
      const names = await watched();
      for (let at = 1; at <= 100; at++) edit("x", `${at}`);
      await soon(() => expect(names).toContain("x"));
      expect(names.length).toBeLessThan(20);
    });
  });
});

describe("documents/unstorage, another driver", () => {
  it("looks for changes as often as it is told, by the clock it is given", async () => {
    const { driver, texts } = memoryDriver();
    const clock = createManualClock();
    const adapter = unstorageDocuments({ id: "agents", driver, pollMs: 1000 });
    const { port, close } = await openAdapter(adapter, [manualClock({ clock })]);
    const names: string[] = [];
    await port.watch((name) => names.push(name));
    texts.set("a:x", "theirs");
    await clock.advance(900);
    expect(names).toEqual([]);
    await clock.advance(1000);
    expect(names).toEqual(["a/x"]);
    await clock.advance(10_000);
    expect(names).toEqual(["a/x"]);
    await close();
  });

  it("takes the driver's word for changes, and looks itself where watching fails", async () => {
    const { driver, texts } = memoryDriver();
    let tell: ((event: "update" | "remove", key: string) => void) | undefined;
    const clock = createManualClock();
    const telling: Driver = { ...driver, watch: (callback) => ((tell = callback), async () => {}) };
    const first = await openAdapter(unstorageDocuments({ id: "a", driver: telling }), [manualClock({ clock })]);
    const names: string[] = [];
    await first.port.watch((name) => names.push(name));
    texts.set("a:x", "theirs");
    tell?.("update", "a:x");
    tell?.("update", "a:untouched");
    await clock.advance(100);
    expect(names).toEqual(["a/x"]);

    const failing: Driver = { ...driver, watch: () => Promise.reject(new Error("no watchers left")) };
    const second = await openAdapter(unstorageDocuments({ id: "b", driver: failing, pollMs: 1000 }), [manualClock({ clock })]);
    await second.port.watch((name) => names.push(name));
    texts.set("b", "theirs");
    await clock.advance(1100);
    expect(names).toEqual(["a/x", "b"]);
    await Promise.all([first.close(), second.close()]);
  });

  it.each<[string, Partial<Driver>]>([
    ["fails", { getItemRaw: () => Promise.reject(new Error("hidden-word")) }],
    ["answers with its error", { getItemRaw: () => new Error("hidden-word") }],
    ["answers with what it parsed", { getItemRaw: () => ({ parsed: "hidden-word" }) }],
  ])("is unavailable where the driver %s, and says nothing of it", async (_how, broken) => {
    const { port } = await openAdapter(unstorageDocuments({ id: "a", driver: { ...memoryDriver().driver, ...broken } }), others);
    const error: unknown = await port.read("x").catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ports.DocumentsUnavailable);
    expect((error as Error).message).not.toContain("hidden-word");
  });

  it("is unavailable for writes where the driver cannot write", async () => {
    const { driver } = memoryDriver();
    const { setItem: _setItem, removeItem: _removeItem, ...readOnly } = driver;
    const { port } = await openAdapter(unstorageDocuments({ id: "a", driver: readOnly }), others);
    await expect(port.write("x", "text", "absent")).rejects.toBeInstanceOf(ports.DocumentsUnavailable);
  });
});
