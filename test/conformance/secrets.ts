import { type Adapter, type ports, Secret } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** Options of `secretsConformance`. */
export interface SecretsConformanceOptions {
  /** Adapters that fill what the adapter needs. A function is called after each `makeAdapter`, for adapters that keep something. */
  readonly others?: readonly Adapter[] | (() => readonly Adapter[]);
  /** One adapter value opened twice meets the same kept secrets: then durability and sharing are tested too. */
  readonly shared?: boolean;
}

/**
 * The law of the secrets port, as vitest tests. `makeAdapter` is called once per test and gives an adapter that keeps nothing
 * yet.
 */
export function secretsConformance(
  name: string,
  makeAdapter: () => Adapter<typeof ports.secrets> | Promise<Adapter<typeof ports.secrets>>,
  { others: filling = [], shared = false }: SecretsConformanceOptions = {},
): void {
  describeSuite(`secrets port: ${name}`, () => {
    let adapter: Adapter<typeof ports.secrets>;
    let others: readonly Adapter[];
    let opened: OpenAdapter<ports.Secrets>;
    let secrets: ports.Secrets;
    beforeEach(async () => {
      adapter = await makeAdapter();
      others = typeof filling === "function" ? filling() : filling;
      opened = await openAdapter(adapter, others);
      secrets = opened.port;
    });
    afterEach(() => opened.close());

    const reveal = (value: Secret): string => value.reveal();

    describe("create", () => {
      it("makes the prefix and 256 bits of base64url", () => {
        const value = secrets.create("service_");
        expect(value).toBeInstanceOf(Secret);
        expect(reveal(value)).toMatch(/^service_[A-Za-z0-9_-]{43}$/);
        expect(Buffer.from(reveal(value).slice("service_".length), "base64url")).toHaveLength(32);
      });

      it("never makes the same one again", () => {
        expect(new Set(Array.from({ length: 1000 }, () => reveal(secrets.create("")))).size).toBe(1000);
      });
    });

    describe("digest and matches", () => {
      it("digests with SHA-256 in lowercase hex", () => {
        expect(secrets.digest("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        expect(secrets.digest("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        expect(secrets.digest("é")).toBe("4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c");
      });

      it("knows a secret by its digest, and no other", () => {
        const value = reveal(secrets.create("whs_"));
        const digest = secrets.digest(value);
        expect(secrets.matches(value, digest)).toBe(true);
        for (const wrong of ["", "whs_", value.slice(0, -1), `${value} `, value.toUpperCase(), digest]) {
          expect(secrets.matches(wrong, digest)).toBe(false);
        }
      });

      it.each(["", "\0", "\ud800", "é\u{1f680}", "x".repeat(100_000)])("takes what a stranger sent (%#)", (presented) => {
        expect(secrets.matches(presented, secrets.digest("known"))).toBe(false);
        expect(secrets.matches(presented, secrets.digest(presented))).toBe(true);
      });

      it("matches nothing with a damaged digest", () => {
        const digest = secrets.digest("known");
        for (const damaged of [
          "",
          "zz",
          digest.slice(0, -2),
          `${digest}00`,
          digest.toUpperCase(),
          "é".repeat(32),
          "z".repeat(64),
        ]) {
          expect(secrets.matches("known", damaged)).toBe(false);
        }
      });
    });

    describe("keep", () => {
      it("makes a secret once, and says so once", async () => {
        const first = await secrets.keep("agent", () => secrets.create("agent_"));
        const make = vi.fn(() => secrets.create("workflow_"));
        const second = await secrets.keep("agent", make);
        expect(first.created).toBe(true);
        expect(second.created).toBe(false);
        expect(make).not.toHaveBeenCalled();
        expect(reveal(second.value)).toBe(reveal(first.value));
      });

      it("gives one value to all that ask at the same time", async () => {
        const kept = await Promise.all(Array.from({ length: 20 }, () => secrets.keep("agent", () => secrets.create("agent_"))));
        expect(new Set(kept.map(({ value }) => reveal(value))).size).toBe(1);
        expect(kept.filter(({ created }) => created)).toHaveLength(1);
      });

      it("keeps the secret of each name, for any name", async () => {
        const names = ["agent", "workflow", "webhook:helper", "a/b.c_d-e", "constructor", "__proto__", "x".repeat(128)];
        for (const at of names) await secrets.keep(at, () => new Secret(`value of ${at}`));
        for (const at of names) expect(reveal((await secrets.keep(at, () => secrets.create(""))).value)).toBe(`value of ${at}`);
      });

      it("keeps any value as it is", async () => {
        const odd = 'é\u{1f680} "\\\n\0';
        await secrets.keep("odd", () => new Secret(odd));
        expect(reveal((await secrets.keep("odd", () => secrets.create(""))).value)).toBe(odd);
      });

      it("passes on what make throws, and has kept nothing then", async () => {
        const failure = new Error("no");
        const failing = secrets.keep("agent", () => {
          throw failure;
        });
        await expect(failing).rejects.toBe(failure);
        expect((await secrets.keep("agent", () => secrets.create(""))).created).toBe(true);
      });

      it("refuses an empty secret", async () => {
        await expect(secrets.keep("agent", () => new Secret(""))).rejects.toThrow(TypeError);
        await expect(secrets.replace("agent", new Secret(""))).rejects.toThrow(TypeError);
        expect((await secrets.keep("agent", () => secrets.create(""))).created).toBe(true);
      });

      it.each(["", "x".repeat(129), "a b", "a\n", "é", "a=b"])("refuses the name %j", async (bad) => {
        await expect(secrets.keep(bad, () => secrets.create(""))).rejects.toThrow(TypeError);
        await expect(secrets.replace(bad, secrets.create(""))).rejects.toThrow(TypeError);
        await expect(secrets.find(bad)).rejects.toThrow(TypeError);
      });
    });

    describe("find", () => {
      it("answers what is kept, and makes nothing", async () => {
        expect(await secrets.find("agent")).toBeUndefined();
        const { value, created } = await secrets.keep("agent", () => secrets.create(""));
        expect(created).toBe(true);
        expect(reveal((await secrets.find("agent"))!)).toBe(reveal(value));
        await secrets.replace("agent", new Secret("new"));
        expect(reveal((await secrets.find("agent"))!)).toBe("new");
        for (const other of ["agen", "constructor", "__proto__"]) expect(await secrets.find(other)).toBeUndefined();
      });
    });

    describe("replace", () => {
      it("leaves only the new value", async () => {
        await secrets.keep("agent", () => new Secret("old"));
        await secrets.keep("other", () => new Secret("other"));
        await secrets.replace("agent", new Secret("new"));
        const kept = await secrets.keep("agent", () => secrets.create(""));
        expect([reveal(kept.value), kept.created]).toEqual(["new", false]);
        expect(reveal((await secrets.keep("other", () => secrets.create(""))).value)).toBe("other");
      });

      it("stores a value if there was no earlier value", async () => {
        await secrets.replace("agent", new Secret("new"));
        expect(reveal((await secrets.keep("agent", () => secrets.create(""))).value)).toBe("new");
      });
    });

    if (!shared) return;
    describe("secrets opened twice", () => {
      it("gives both one value, at the same time and after opening again", async () => {
        const other = await openAdapter(adapter, others);
        const kept = await Promise.all([opened, other].map(({ port }) => port.keep("agent", () => port.create(""))));
        expect(new Set(kept.map(({ value }) => reveal(value))).size).toBe(1);
        await other.port.replace("agent", new Secret("new"));
        expect(reveal((await secrets.keep("agent", () => secrets.create(""))).value)).toBe("new");
        await Promise.all([opened.close(), other.close()]);
        opened = await openAdapter(adapter, others);
        expect(reveal((await opened.port.keep("agent", () => secrets.create(""))).value)).toBe("new");
      });
    });
  });
}
