import { type Adapter, ports, Secret } from "@portico/core";
import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** Options of `sealingConformance`. */
export interface SealingConformanceOptions {
  /** Adapters that fill what the adapter needs. */
  readonly others?: () => readonly Adapter[];
}

type MakeAdapter = (key: Secret) => Adapter<typeof ports.sealing> | Promise<Adapter<typeof ports.sealing>>;

const KEY = new Secret(Buffer.alloc(32, 1).toString("base64url"));
const OTHER_KEY = new Secret(Buffer.alloc(32, 2).toString("base64url"));

/** The law of the sealing port, as vitest tests. `makeAdapter` gives an adapter of an instance with this key. */
export function sealingConformance(
  name: string,
  makeAdapter: MakeAdapter,
  { others = () => [] }: SealingConformanceOptions = {},
): void {
  describeSuite(`sealing port: ${name}`, () => {
    const opened: OpenAdapter<ports.Sealing>[] = [];
    const open = async (key: Secret): Promise<ports.Sealing> => {
      const adapter = await openAdapter(await makeAdapter(key), others());
      opened.push(adapter);
      return adapter.port;
    };
    let sealing: ports.Sealing;
    beforeEach(async () => {
      sealing = await open(KEY);
    });
    afterEach(async () => {
      for (const adapter of opened.splice(0)) await adapter.close();
    });
    const brokenFor = async (reader: ports.Sealing, context: string, sealed: string) =>
      reader.open(context, sealed).then(
        () => "opened",
        (error: unknown) => (error instanceof ports.SealBroken ? error.reason : String(error)),
      );

    it("opens anything it sealed, also after the instance was opened again", async () => {
      const again = await open(new Secret(KEY.reveal()));
      const texts = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("", "\0", "é", "x".repeat(100_000)));
      await fc.assert(
        fc.asyncProperty(texts, async (text) => {
          const sealed = await sealing.seal("run:1", text);
          expect(sealed).toMatch(/^[!#-&(-~]+$/);
          expect(await sealing.open("run:1", sealed)).toBe(text);
          expect(await again.open("run:1", sealed)).toBe(text);
        }),
      );
    });

    it("knows a text of its present key, and texts that were not sealed, as not outdated", async () => {
      expect(await sealing.isOutdated(await sealing.seal("run:1", "text"))).toBe(false);
      for (const text of ["", "text", "v1.a.b"]) expect(await sealing.isOutdated(text)).toBe(false);
    });

    it("knows a text of another key as outdated", async () => {
      const other = await open(OTHER_KEY);
      expect(await other.isOutdated(await sealing.seal("run:1", "text"))).toBe(true);
    });

    it("seals the same text differently each time, and shows nothing of it", async () => {
      const sealed = await Promise.all(Array.from({ length: 50 }, () => sealing.seal("run:1", "a-secret-of-the-suite")));
      expect(new Set(sealed).size).toBe(50);
      for (const each of sealed) expect(Buffer.from(each, "base64url").toString("latin1")).not.toContain("a-secret");
    });

    it("opens nothing of another context, and nothing under another key", async () => {
      const sealed = await sealing.seal("run:1", "text");
      expect(await brokenFor(sealing, "run:2", sealed)).toBe("damaged");
      expect(await brokenFor(sealing, "run:", sealed)).toBe("damaged");
      expect(await brokenFor(await open(OTHER_KEY), "run:1", sealed)).toBe("other-key");
    });

    it("opens nothing that was changed, cut, or never sealed", async () => {
      let sealed = await sealing.seal("run:1", "a text of the suite");
      // The last letter that is changed to another one for the same bytes, where letters stand for six bits.
      for (let left = 200; left > 0 && !sealed.endsWith("A"); left--) sealed = await sealing.seal("run:1", "a text of the suite");
      const odd = [
        "",
        "text",
        "v1.",
        `${sealed}A`,
        sealed.slice(0, -1),
        sealed.slice(1),
        `${sealed}\n`,
        ` ${sealed}`,
        sealed + sealed,
      ];
      const changed = Array.from(
        sealed,
        (letter, at) => sealed.slice(0, at) + (letter === "A" ? "B" : "A") + sealed.slice(at + 1),
      );
      for (const each of [...odd, ...changed]) expect(await brokenFor(sealing, "run:1", each)).toMatch(/^(?:damaged|other-key)$/);
    });

    it("throws TypeError for a text that UTF-8 cannot hold", async () => {
      await expect(sealing.seal("run:1", "a\ud800")).rejects.toThrow(TypeError);
    });

    it.each(["", "a\0", "\ud800", "x".repeat(513)])("throws TypeError for a context that is none (%#)", async (context) => {
      await expect(sealing.seal(context, "text")).rejects.toThrow(TypeError);
      await expect(sealing.open(context, "text")).rejects.toThrow(TypeError);
    });

    it("takes a context of 512 characters of any script", async () => {
      const context = "\u{1f680}".repeat(256);
      expect(await sealing.open(context, await sealing.seal(context, "text"))).toBe("text");
    });
  });
}
