import { type Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** The law of the port `signing`, as vitest tests. `make` is called with the key to sign with, or without any. */
export function signingConformance(
  name: string,
  make: (key: string | undefined) => { readonly adapter: Adapter<typeof ports.signing>; readonly others?: readonly Adapter[] },
): void {
  describe(`signing port: ${name}`, () => {
    const opened: OpenAdapter<ports.Signing>[] = [];
    const open = async (key: string | undefined) => {
      const { adapter, others } = make(key);
      const one = await openAdapter(adapter, others);
      opened.push(one);
      return one.port;
    };
    let signing: ports.Signing;
    beforeEach(async () => {
      signing = await open("the instance's key");
    });
    afterEach(async () => {
      for (const one of opened.splice(0)) await one.close();
    });

    it("knows its own signatures again, of 43 characters of base64url", async () => {
      for (const message of ["", "read\nm\n1", "ä\0", "x".repeat(100_000)]) {
        const signature = await signing.sign("media-link", message);
        expect(signature).toMatch(/^[A-Za-z0-9_-]{43}$/);
        expect(await signing.sign("media-link", message)).toBe(signature);
        expect(await signing.verify("media-link", message, signature)).toBe(true);
      }
    });

    it("knows them again after it was opened anew with the same key, and not with another", async () => {
      const signature = await signing.sign("media-link", "m");
      expect(await (await open("the instance's key")).verify("media-link", "m", signature)).toBe(true);
      expect(await (await open("another key")).verify("media-link", "m", signature)).toBe(false);
    });

    it("takes a signature of one purpose or message for none of another", async () => {
      const signature = await signing.sign("media-link", "m");
      expect(await signing.verify("grant", "m", signature)).toBe(false);
      expect(await signing.verify("media-link", "n", signature)).toBe(false);
    });

    it("takes nothing but the exact form", async () => {
      const signature = await signing.sign("media-link", "m");
      const last = signature.at(-1)!;
      const forms = [
        "",
        signature.slice(1),
        `${signature}=`,
        `${signature}A`,
        ` ${signature}`,
        signature.toLowerCase(),
        "ä".repeat(43),
      ];
      // The last character has two bits that count for nothing: no other letter may stand for it.
      for (const other of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") {
        if (other !== last) forms.push(signature.slice(0, -1) + other);
      }
      for (const form of forms.filter((each) => each !== signature))
        expect(await signing.verify("media-link", "m", form)).toBe(false);
    });

    it.each(["", "A", "a b", "a".repeat(65), "ä"])("throws TypeError for %j, which is no purpose", async (purpose) => {
      await expect(signing.sign(purpose, "m")).rejects.toThrow(TypeError);
      await expect(signing.verify(purpose, "m", "s")).rejects.toThrow(TypeError);
    });

    it("throws SigningUnavailable without a key", async () => {
      const none = await open(undefined);
      await expect(none.sign("media-link", "m")).rejects.toBeInstanceOf(ports.SigningUnavailable);
      await expect(none.verify("media-link", "m", "s")).rejects.toBeInstanceOf(ports.SigningUnavailable);
    });
  });
}
