import { type Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** The adapter under test, and what it needs. */
export interface DocumentsUnderTest {
  /** Holds no document yet. */
  readonly adapter: Adapter<typeof ports.documents>;
  /** Changes a document as another program would; undefined removes it. Left out where no other program can. */
  readonly edit?: (name: string, text: string | undefined) => unknown;
  /** Puts bytes that are no text in a document's place; left out where no other program can. */
  readonly spoil?: (name: string, bytes: Uint8Array) => unknown;
}

/** Options of `documentsConformance`. */
export interface DocumentsConformanceOptions {
  /** Adapters that fill what the adapter needs. A function is called after each `make`, for adapters that keep something. */
  readonly others?: readonly Adapter[] | (() => readonly Adapter[]);
}

/** The law of the documents port, as vitest tests. `make` is called once per test. */
export function documentsConformance(
  name: string,
  make: () => DocumentsUnderTest | Promise<DocumentsUnderTest>,
  { others = [] }: DocumentsConformanceOptions = {},
): void {
  describeSuite(`documents port: ${name}`, () => {
    let made: DocumentsUnderTest;
    let opened: OpenAdapter<ports.Documents>;
    let documents: ports.Documents;
    beforeEach(async () => {
      made = await make();
      opened = await openAdapter(made.adapter, typeof others === "function" ? others() : others);
      documents = opened.port;
    });
    afterEach(() => opened.close());

    const watched = async (): Promise<{ names: string[]; stop: () => Promise<void> }> => {
      const names: string[] = [];
      return { names, stop: await documents.watch((changed) => names.push(changed)) };
    };
    const soon = (holds: () => unknown): Promise<unknown> => vi.waitFor(holds, { timeout: 30_000, interval: 20 });

    describe("read and write", () => {
      it("has an id that tells it from other sources", () => expect(documents.id).toMatch(/./));

      it("gives undefined if the document does not exist", async () => expect(await documents.read("none.json")).toBeUndefined());

      it.each([
        ["a plain text", '{\n  "name": "Ada"\n}\n'],
        ["an empty text", ""],
        ["a text that looks like a value", '"quoted"'],
        ["a number", "12"],
        ["letters of every length", "é — 漢 — \u{1f680}"],
        ["line ends of another system, and a byte order mark", "\ufeffa\r\nb\r\n"],
        ["a control character", "a\0b"],
        ["a long text", "line\n".repeat(100_000)],
      ])("gives back exactly what was written: %s", async (_what, text) => {
        const written = await documents.write("agent.json", text, "absent");
        expect(written).toEqual({ name: "agent.json", text, version: written.version });
        expect(await documents.read("agent.json")).toEqual(written);
      });

      it("keeps documents in segments apart", async () => {
        await documents.write("a/x.json", "1", "absent");
        await documents.write("b/x.json", "2", "absent");
        await documents.write("x.json", "3", "absent");
        await documents.write("a/b/c/x.json", "4", "absent");
        const texts = await Promise.all(
          ["a/x.json", "b/x.json", "x.json", "a/b/c/x.json"].map(async (name) => (await documents.read(name))?.text),
        );
        expect(texts).toEqual(["1", "2", "3", "4"]);
      });

      it("gives the same text the same version, and another text another", async () => {
        const first = await documents.write("x", "one", "absent");
        const second = await documents.write("x", "two", first.version);
        const third = await documents.write("x", "one", second.version);
        expect(second.version).not.toBe(first.version);
        expect(third.version).toBe(first.version);
      });

      it("refuses a text over 16 MiB, and one that UTF-8 cannot hold", async () => {
        await expect(documents.write("x", "é".repeat(ports.DOCUMENT_BYTES / 2 + 1), "absent")).rejects.toThrow(RangeError);
        await expect(documents.write("x", "\ud800", "absent")).rejects.toThrow(TypeError);
        expect(await documents.list()).toEqual([]);
      });
    });

    describe("what a write expects", () => {
      const conflict = (write: Promise<unknown>) => expect(write).rejects.toBeInstanceOf(ports.DocumentConflict);

      it("makes nothing where something was expected, and the other way round", async () => {
        await conflict(documents.write("x", "new", "0".repeat(64)));
        expect(await documents.read("x")).toBeUndefined();
        const { version } = await documents.write("x", "old", "absent");
        await conflict(documents.write("x", "new", "absent"));
        await conflict(documents.write("x", "new", `${version} `));
        expect((await documents.read("x"))?.text).toBe("old");
      });

      it("lets one of many through that have read the same", async () => {
        const { version } = await documents.write("x", "0", "absent");
        const outcomes = await Promise.allSettled(
          Array.from({ length: 20 }, (_, at) => documents.write("x", `${at + 1}`, version)),
        );
        const written = outcomes.filter((outcome) => outcome.status === "fulfilled");
        expect(written).toHaveLength(1);
        expect(await documents.read("x")).toEqual(written[0]?.value);
        for (const outcome of outcomes) {
          if (outcome.status === "rejected") expect(outcome.reason).toBeInstanceOf(ports.DocumentConflict);
        }
      });

      it("lets one of many make the same document", async () => {
        const outcomes = await Promise.allSettled(
          Array.from({ length: 20 }, (_, at) => documents.write("new/x", `${at}`, "absent")),
        );
        expect(outcomes.filter((outcome) => outcome.status === "fulfilled")).toHaveLength(1);
      });

      it("conflicts with what a person saved meanwhile, and leaves it", async ({ skip }) => {
        if (!made.edit) return skip("No other program can change these documents");
        const { version } = await documents.write("x", "ours", "absent");
        await made.edit("x", "theirs");
        await conflict(documents.write("x", "ours too", version));
        await conflict(documents.remove("x", version));
        expect((await documents.read("x"))?.text).toBe("theirs");
      });

      it("takes a text that a person put back for the one that was read", async ({ skip }) => {
        if (!made.edit) return skip("No other program can change these documents");
        const { version } = await documents.write("x", "ours", "absent");
        await made.edit("x", "theirs");
        await made.edit("x", "ours");
        await documents.write("x", "ours too", version);
        expect((await documents.read("x"))?.text).toBe("ours too");
      });
    });

    describe("remove", () => {
      it("takes away what was read, and tells whether there was one", async () => {
        const { version } = await documents.write("a/x", "text", "absent");
        await expect(documents.remove("a/x", "0".repeat(64))).rejects.toBeInstanceOf(ports.DocumentConflict);
        await expect(documents.remove("a/x", "absent")).rejects.toBeInstanceOf(ports.DocumentConflict);
        expect(await documents.remove("a/x", version)).toBe(true);
        expect(await documents.read("a/x")).toBeUndefined();
        expect(await documents.remove("a/x", "absent")).toBe(false);
        await expect(documents.remove("a/x", version)).rejects.toBeInstanceOf(ports.DocumentConflict);
        await documents.write("a/x", "again", "absent");
      });
    });

    describe("list", () => {
      it("gives every name once, in the order of their UTF-8 bytes", async () => {
        // In UTF-16, U+FF5E comes after U+1F680; a segment's end comes before letters and after `-`.
        const names = ["a-b", "a/x", "a/y/z", "a0", "b.json", "z", "é", "\uff5e", "\u{1f680}"];
        for (const name of names.toReversed()) await documents.write(name, "text", "absent");
        expect(await documents.list()).toEqual(names);
      });

      it("is empty at first", async () => expect(await documents.list()).toEqual([]));
    });

    describe("names", () => {
      const outside = ["", ".", "..", "../x", "a/../x", "/x", "x/", "a//x", "a/./x", ".hidden", "a/.git", "a\\x", "a\0x"];
      it.each([...outside, "a\nx", "a:x", "a?x", "x".repeat(256), "é".repeat(128), "a\ud800"])(
        "throws TypeError for the name %j",
        async (wrong) => {
          for (const call of [
            documents.read(wrong),
            documents.write(wrong, "text", "absent"),
            documents.remove(wrong, "absent"),
          ]) {
            await expect(call).rejects.toBeInstanceOf(TypeError);
          }
          expect(await documents.list()).toEqual([]);
        },
      );

      it.each(["x".repeat(255), "é".repeat(127), "a b/c d.json", "constructor", "__proto__", "a$", "x..y/z.", "%2e%2e%2fx"])(
        "takes the name %j",
        async (name) => {
          await documents.write(name, "text", "absent");
          expect((await documents.read(name))?.text).toBe("text");
          expect(await documents.list()).toEqual([name]);
        },
      );
    });

    describe("watch", () => {
      it("tells of what was changed here before the change resolves", async () => {
        const { names } = await watched();
        const { version } = await documents.write("a/x", "one", "absent");
        // A look at the store at this moment may tell of it, too.
        expect(new Set(names)).toEqual(new Set(["a/x"]));
        const told = names.length;
        await documents.remove("a/x", version);
        expect(names.slice(told)).toContain("a/x");
      });

      it("announces no write that changed nothing", async () => {
        const { names } = await watched();
        await documents.write("x", "one", "0".repeat(64)).catch(() => {});
        await documents.remove("x", "absent");
        await documents.read("x");
        expect(names).toEqual([]);
      });

      it("notifies all watchers except stopped ones", async () => {
        const first = await watched();
        const second = await watched();
        await first.stop();
        await documents.write("x", "one", "absent");
        expect([first.names, second.names]).toEqual([[], ["x"]]);
        await second.stop();
        const third = await watched();
        await documents.write("y", "one", "absent");
        expect(third.names).toContain("y");
      });

      it("tells of documents that another program makes, changes and removes, in new places too", async ({ skip }) => {
        const { edit } = made;
        if (!edit) return skip("No other program can change these documents");
        await edit("old.json", "1");
        const { names } = await watched();
        for (const [name, text] of [
          ["new/deep/x.json", "1"],
          ["new/deep/x.json", "2"],
          ["old.json", "2"],
          ["old.json", undefined],
          ["new/deep/x.json", undefined],
        ] as const) {
          names.length = 0;
          await edit(name, text);
          await soon(() => expect(names).toContain(name));
        }
      });
    });

    it("reads text that another program wrote, and refuses other bytes (DocumentsUnavailable)", async ({ skip }) => {
      if (!made.edit || !made.spoil) return skip("No other program can change these documents");
      await made.edit("theirs.json", "text");
      expect((await documents.read("theirs.json"))?.text).toBe("text");
      await made.spoil("spoiled", Uint8Array.of(0x68, 0x69, 0xff));
      const error: unknown = await documents.read("spoiled").catch((error: unknown) => error);
      expect(error).toBeInstanceOf(ports.DocumentsUnavailable);
      await expect(documents.write("spoiled", "text", "absent")).rejects.toThrow();
    });

    it("is unavailable once closed", async () => {
      await opened.close();
      for (const call of [documents.read("x"), documents.write("x", "", "absent"), documents.list(), documents.watch(() => {})]) {
        await expect(call).rejects.toBeInstanceOf(ports.DocumentsUnavailable);
      }
    });
  });
}
