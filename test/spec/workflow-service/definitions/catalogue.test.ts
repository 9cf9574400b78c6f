import { mkdir, mkdtemp, rm, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "@portico/adapters/clock/system";
import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import type { ports, Scope } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readDefinitions } from "../../../../plugins/src/workflow-service/definition/read-definitions.ts";
import { openCatalogue } from "../../../../plugins/src/workflow-service/definition/open-catalogue.ts";
import { openAdapter } from "../../../conformance/open-adapter.ts";
import { secretNames, types } from "./stand-in-nodes.ts";

const flow = (id: string, name = id) => `id: ${id}\nname: ${name}\nnodes: { a: { type: fail, with: { message: x } } }\n`;
const soon = { timeout: 30_000, interval: 20 };

let folder: string;
let lines: { level: string; message: string; fields: ports.LogFields | undefined }[];
const undo: (() => unknown)[] = [];
const scope: Scope = { onClose: (run) => void undo.push(run), onReady: (run) => void run() };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "portico-definitions-"));
  undo.push(() => rm(folder, { recursive: true }));
  lines = [];
});
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

async function write(name: string, text: string | Uint8Array): Promise<void> {
  await mkdir(dirname(join(folder, name)), { recursive: true });
  await writeFile(join(folder, name), text);
}

async function open(documents?: Parameters<typeof openCatalogue>[0]["documents"]) {
  const to = (level: string) => (message: string, fields?: ports.LogFields) => void lines.push({ level, message, fields });
  const log = { info: to("info"), warn: to("warn") };
  if (!documents) {
    const opened = await openAdapter(unstorageDocuments({ id: "workflows", dir: folder }), [systemClock()]);
    undo.push(opened.close);
    documents = opened.port;
  }
  const clock = await openAdapter(systemClock());
  undo.push(clock.close);
  const load = readDefinitions({ types, secretNames }, { clock: clock.port, log }, scope);
  return openCatalogue({ documents, load, log }, scope);
}

describe("the catalogue", () => {
  it("lists the definitions of the folder by id, and finds them by id and by path", async () => {
    await write("z.yaml", flow("one"));
    await write("support/triage.yml", flow("two"));
    await write("a.json", JSON.stringify({ nodes: { a: { type: "fail", with: { message: "x" } } } }));
    await write("README.md", "no definition");
    const catalogue = await open();

    expect(catalogue.list().map(({ id }) => id)).toEqual(["a", "one", "two"]);
    expect(catalogue.find("two")!.name).toBe("two");
    expect(catalogue.findByPath("support/triage.yml")).toBe(catalogue.find("two"));
    expect(catalogue.pathOf("two")).toBe("support/triage.yml");
    expect(catalogue.find("three")).toBeUndefined();
    expect(catalogue.findByPath("../triage.yml")).toBeUndefined();
    expect(catalogue.broken()).toEqual([]);
    expect(lines).toEqual([]);
  });

  it("names UTF-16, with or without a byte order mark", async () => {
    await write("marked.yaml", Buffer.from(`\uFEFF${flow("a")}`, "utf16le"));
    await write("plain.yaml", Buffer.from(flow("b"), "utf16le"));
    await write("swapped.yaml", Buffer.from(`\uFEFF${flow("c")}`, "utf16le").swap16());
    const catalogue = await open();
    const messages = catalogue.broken().map(({ problems }) => problems.map(({ message }) => message));
    expect(messages).toEqual(Array(3).fill(["The document is UTF-16 text: save it as UTF-8"]));
  });

  it("leaves out and reports broken definitions, and lists the others", async () => {
    await write("good.yaml", flow("good"));
    await write("bad.yaml", "nodes: { a: { type: nope } }");
    await write("bytes.yaml", Uint8Array.of(0x61, 0xfe, 0xfd));
    const catalogue = await open();

    expect(catalogue.list().map(({ id }) => id)).toEqual(["good"]);
    expect(catalogue.find("bad")).toBeUndefined();
    expect(catalogue.findByPath("bad.yaml")).toBeUndefined();
    expect(catalogue.broken().map(({ name, problems }) => [name, problems[0]!.line, problems[0]!.column])).toEqual([
      ["bad.yaml", 1, 21],
      ["bytes.yaml", 1, 1],
    ]);
    expect(catalogue.broken()[1]!.problems[0]!.message).toBe("The document is not UTF-8 text");
    const told = lines.filter(({ fields }) => fields?.["definition"] === "bad.yaml");
    expect(told).toHaveLength(1);
    expect(told[0]!.fields!["first"]).toContain("1:21 $.nodes.a.type: There is no kind of node");
  });

  it("gives an id to the first of several files by name, until that goes", async () => {
    await write("b.yaml", `name: x\n${flow("same", "second").replace("name: second\n", "")}`);
    await write("a.yaml", flow("same", "first"));
    const catalogue = await open();

    expect(catalogue.find("same")!.name).toBe("first");
    expect(catalogue.findByPath("b.yaml")).toBeUndefined();
    expect(catalogue.broken()).toEqual([
      {
        name: "b.yaml",
        id: "same",
        problems: [{ line: 2, column: 5, path: "$.id", message: 'The definition "a.yaml" also has the id "same"' }],
      },
    ]);
    await unlink(join(folder, "a.yaml"));
    await vi.waitFor(() => expect(catalogue.find("same")!.name).toBe("x"), soon);
    expect(catalogue.broken()).toEqual([]);
  });

  it("leaves an id to the file that has it when another comes with the same", async () => {
    await write("b.yaml", flow("same", "first"));
    const catalogue = await open();
    await write("a.yaml", flow("same", "second"));

    await vi.waitFor(() => expect(catalogue.broken().map(({ name }) => name)).toEqual(["a.yaml"]), soon);
    expect(catalogue.find("same")!.name).toBe("first");
  });

  it("follows files that appear, change, break, are mended and go", async () => {
    await write("a.yaml", flow("a", "one"));
    const catalogue = await open();
    const first = catalogue.find("a");
    await write("b.yaml", flow("b"));
    await vi.waitFor(() => expect(catalogue.find("b")).toBeDefined(), soon);
    expect(catalogue.find("a")).toBe(first);

    await write("a.yaml", flow("a", "two"));
    await vi.waitFor(() => expect(catalogue.find("a")!.name).toBe("two"), soon);
    expect(first!.name).toBe("one");

    await write("a.yaml", "nodes: {}");
    await vi.waitFor(() => expect(catalogue.broken()).toHaveLength(1), soon);
    expect(catalogue.list().map(({ id }) => id)).toEqual(["b"]);

    await write("a.yaml", flow("a", "three"));
    await vi.waitFor(() => expect(catalogue.find("a")?.name).toBe("three"), soon);
    expect(catalogue.broken()).toEqual([]);
    expect(lines.map(({ level, message }) => `${level}: ${message}`)).toEqual([
      "warn: A workflow definition cannot be used",
      "info: A workflow definition is usable again",
    ]);

    await unlink(join(folder, "b.yaml"));
    await vi.waitFor(() => expect(catalogue.find("b")).toBeUndefined(), soon);
  });
});

describe("with documents that answer when they are told to, the catalogue", () => {
  function scripted() {
    const texts = new Map<string, string>();
    const waiting: (() => void)[] = [];
    let changed: (name: string) => void = () => {};
    let reads = 0;
    let isHeld = false;
    return {
      texts,
      reads: () => reads,
      hold: () => (isHeld = true),
      release: () => waiting.splice(0).forEach((go) => go()),
      tell: (name: string) => changed(name),
      documents: {
        list: async () => [...texts.keys()],
        read: async (name: string) => {
          reads++;
          const text = texts.get(name);
          if (isHeld) await new Promise<void>((go) => waiting.push(go));
          return text === undefined ? undefined : { name, text, version: text };
        },
        watch: async (listener: (name: string) => void) => {
          changed = listener;
          return async () => {};
        },
      },
    };
  }

  it("ends with the newest of changes in quick succession, and reads one at a time", async () => {
    const script = scripted();
    script.texts.set("a.yaml", flow("a", "v0")).set("b.yaml", flow("b"));
    const catalogue = await open(script.documents);
    const before = script.reads();
    script.hold();
    for (let change = 1; change <= 5; change++) {
      script.texts.set("a.yaml", flow("a", `v${change}`));
      script.tell("a.yaml");
    }
    expect(script.reads() - before).toBe(1);
    script.release();
    await vi.waitFor(() => expect(script.reads() - before).toBe(2), soon);
    script.release();
    await vi.waitFor(() => expect(catalogue.find("a")!.name).toBe("v5"), soon);
    expect(script.reads() - before).toBe(2);
  });

  it("reads only changed documents, and only definitions", async () => {
    const script = scripted();
    script.texts.set("a.yaml", flow("a")).set("b.yaml", flow("b"));
    const catalogue = await open(script.documents);
    const [a, before] = [catalogue.find("a"), script.reads()];
    script.texts.set("b.yaml", flow("b", "new"));
    script.tell("b.yaml");
    script.tell("notes.txt");
    await vi.waitFor(() => expect(catalogue.find("b")!.name).toBe("new"), soon);
    expect(script.reads() - before).toBe(1);
    expect(catalogue.find("a")).toBe(a);
  });

  it("sees what changes while it is opened", async () => {
    const script = scripted();
    script.texts.set("a.yaml", flow("a", "old"));
    const { list } = script.documents;
    script.documents.list = async () => {
      const names = await list();
      script.hold();
      setTimeout(() => {
        script.texts.set("a.yaml", flow("a", "new"));
        script.tell("a.yaml");
        script.release();
        setTimeout(script.release, 10);
      }, 10);
      return names;
    };
    const catalogue = await open(script.documents);
    expect(catalogue.find("a")!.name).toBe("new");
  });

  it("reports a broken definition once, also after several hints, and without values", async () => {
    const script = scripted();
    script.texts.set("a.yaml", "settings: { timeout: hunter2 }\nnodes: { a: { type: fail, with: { message: x } } }");
    const catalogue = await open(script.documents);
    for (let hint = 0; hint < 3; hint++) script.tell("a.yaml");
    script.texts.set("b.yaml", flow("b"));
    script.tell("b.yaml");
    await vi.waitFor(() => expect(catalogue.find("b")).toBeDefined(), soon);
    expect(script.reads()).toBeGreaterThan(3);
    expect(lines).toHaveLength(1);
    expect(JSON.stringify(lines)).not.toContain("hunter2");
  });
});
