import { type Adapter, ports, Secret } from "@portico/core";
import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** Options of `signingConformance`. */
export interface SigningConformanceOptions {
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
  /** Whether there can be an instance without a key; default true. */
  readonly keyless?: boolean;
}

type MakeAdapter = (key: Secret | undefined) => Adapter<typeof ports.signing> | Promise<Adapter<typeof ports.signing>>;

const KEY = new Secret("the-key-of-the-suite");
const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/**
 * The law of the signing port, as vitest tests. `makeAdapter` gives an adapter of an instance whose key is this secret or
 * derives from it, or of one without a key.
 */
export function signingConformance(
  name: string,
  makeAdapter: MakeAdapter,
  { others = [], keyless = true }: SigningConformanceOptions = {},
): void {
  describeSuite(`signing port: ${name}`, () => {
    const opened: OpenAdapter<ports.Signing>[] = [];
    const open = async (key: Secret | undefined): Promise<ports.Signing> => {
      const adapter = await openAdapter(await makeAdapter(key), others);
      opened.push(adapter);
      return adapter.port;
    };
    let signing: ports.Signing;
    beforeEach(async () => {
      signing = await open(KEY);
    });
    afterEach(async () => {
      for (const adapter of opened.splice(0)) await adapter.close();
    });

    it("signs any message that UTF-8 can hold with 43 characters of base64url, and knows them again", async () => {
      const messages = fc.oneof(
        fc.string({ unit: "binary" }),
        fc.constantFrom("", "\0", "\n", "é", "e\u0301", "x".repeat(100_000)),
      );
      await fc.assert(
        fc.asyncProperty(messages, async (message) => {
          const signature = await signing.sign("link", message);
          expect(signature).toMatch(/^[A-Za-z0-9_-]{43}$/);
          expect(await signing.verify("link", message, signature)).toBe(true);
        }),
      );
    });

    it("signs alike every time, and after the instance was opened again", async () => {
      const signature = await signing.sign("link", "GET /media/a");
      expect(await signing.sign("link", "GET /media/a")).toBe(signature);
      const again = await open(new Secret(KEY.reveal()));
      expect(await again.verify("link", "GET /media/a", signature)).toBe(true);
      expect(await again.sign("link", "GET /media/a")).toBe(signature);
    });

    it("accepts a signature for its own message alone", async () => {
      const messages = ["", "a", "b", "aa", "a ", " a", "a\n", "a\0", "A", "é", "e\u0301", "\ufffd"];
      for (const message of messages) {
        const signature = await signing.sign("link", message);
        const taken: string[] = [];
        for (const other of messages) if (await signing.verify("link", other, signature)) taken.push(other);
        expect(taken).toEqual([message]);
      }
    });

    it("takes no signature of one purpose for another's", async () => {
      const purposes = ["link", "link2", "lin", "media-link", "a", "a".repeat(64), "-", "0"];
      const signatures = await Promise.all(purposes.map((purpose) => signing.sign(purpose, "message")));
      expect(new Set(signatures).size).toBe(purposes.length);
      for (const [at, purpose] of purposes.entries()) {
        const known: boolean[] = [];
        for (const signature of signatures) known.push(await signing.verify(purpose, "message", signature));
        expect(known).toEqual(purposes.map((_, other) => other === at));
      }
      // Nor does the border between purpose and message move.
      expect(await signing.verify("lin", "kmessage", signatures[0]!)).toBe(false);
    });

    it("takes no signature of another key", async () => {
      const foreign = await open(new Secret("another-key-of-the-suite"));
      const signature = await signing.sign("link", "message");
      expect(await foreign.verify("link", "message", signature)).toBe(false);
      expect(await signing.verify("link", "message", await foreign.sign("link", "message"))).toBe(false);
    });

    it("compares every letter: each of the 63 others at each place is refused", async () => {
      const signature = await signing.sign("link", "message");
      const taken: string[] = [];
      for (let place = 0; place < signature.length; place++) {
        for (const letter of BASE64URL) {
          const other = signature.slice(0, place) + letter + signature.slice(place + 1);
          if (other !== signature && (await signing.verify("link", "message", other))) taken.push(other);
        }
      }
      expect(taken).toEqual([]);
    });

    it("takes nothing that a lenient reader would take for the signature", async () => {
      const signature = await signing.sign("link", "message");
      const looseForms = [
        ...["", `${signature}=`, `${signature}==`, `${signature}A`, signature.slice(0, -1), ` ${signature}`, `${signature} `],
        ...[`${signature}\n`, `${signature}\0`, `${signature.slice(0, 20)} ${signature.slice(20)}`, `"${signature}"`],
        ...[`${signature.slice(0, -1)}é`, `${signature.slice(0, -1)}\u{1d49c}`, encodeURIComponent(`${signature}=`)],
        Buffer.from(signature, "base64url").toString("hex"),
        signature.repeat(1000),
        "\ud800".repeat(43),
      ];
      for (const loose of looseForms) expect(await signing.verify("link", "message", loose)).toBe(false);
      // The other alphabet of base64, on a signature that has letters in which they differ.
      let number = 0;
      let message = "";
      let made = "";
      do {
        message = `message ${number++}`;
        made = await signing.sign("link", message);
      } while (!/[-_]/.test(made));
      expect(await signing.verify("link", message, made.replaceAll("-", "+").replaceAll("_", "/"))).toBe(false);
      expect(await signing.verify("link", message, made)).toBe(true);
    });

    it("neither signs nor accepts a message that UTF-8 cannot encode", async () => {
      await expect(signing.sign("link", "a\ud800")).rejects.toThrow(TypeError);
      const signature = await signing.sign("link", "a\ufffd");
      expect(await signing.verify("link", "a\ud800", signature)).toBe(false);
    });

    const noPurposes = ["", "Link", "a_b", "a b", "a/b", "é", "a\n", "a".repeat(65), undefined as unknown as string];

    it.each(noPurposes)("throws TypeError for an invalid purpose (%#)", async (purpose) => {
      await expect(signing.sign(purpose, "message")).rejects.toThrow(TypeError);
      await expect(signing.verify(purpose, "message", "A".repeat(43))).rejects.toThrow(TypeError);
    });

    it.runIf(keyless)("throws SigningUnavailable without a key, for any signature", async () => {
      const without = await open(undefined);
      await expect(without.sign("link", "message")).rejects.toThrow(ports.SigningUnavailable);
      for (const signature of ["", "A".repeat(43), await signing.sign("link", "message")]) {
        await expect(without.verify("link", "message", signature)).rejects.toThrow(ports.SigningUnavailable);
      }
    });
  });
}
