import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { aesGcmSealing } from "@portico/adapters/sealing/aes-gcm";
import { fileSecrets } from "@portico/adapters/secrets/files";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { Secret } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../harness/portico-process.ts";
import { openAdapter } from "./open-adapter.ts";
import { sealingConformance } from "./sealing.ts";

sealingConformance("aes-gcm", (key) => aesGcmSealing({ key }), { others: () => [memorySecrets()] });

describe("sealing/aes-gcm", () => {
  let folder: ReturnType<typeof temporaryFolder>;
  beforeEach(() => void (folder = temporaryFolder()));
  afterEach(() => folder.remove());

  const path = () => join(folder.path, "credentials.json");
  const kept = () => JSON.parse(readFileSync(path(), "utf8")) as Record<string, string>;
  const open = async (key?: string) =>
    (await openAdapter(aesGcmSealing({ key: key === undefined ? undefined : new Secret(key) }), [fileSecrets({ path: path() })]))
      .port;
  const keyOf = (byte: number) => Buffer.alloc(32, byte).toString("base64url");
  const LOST = /sealed under another instance key: give it back, or remove instanceKeyId/;

  it("creates a key at its first seal, stores it readable only for its owner, and continues to use it", async () => {
    const sealing = await open();
    expect(() => statSync(path())).toThrow("ENOENT");
    const sealed = await sealing.seal("a", "text");
    expect(statSync(path()).mode & 0o777).toBe(0o600);
    expect(kept()["instanceKey"]).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(await (await open()).open("a", sealed)).toBe("text");
  });

  it("continues to open values of its own key after another key is configured", async () => {
    const sealed = await (await open()).seal("a", "text");
    const given = await open(keyOf(1));
    expect(await given.open("a", sealed)).toBe("text");
    const after = await given.seal("a", "text");
    expect(await (await open(keyOf(1))).open("a", after)).toBe("text");
    await expect(open()).rejects.toThrow(LOST);
  });

  it("opens values of its other keys, seals with its own one, and then opens without the others", async () => {
    const openWith = async (key: string, ...others: readonly string[]) => {
      const options = { key: new Secret(key), otherKeys: others.map((each) => new Secret(each)) };
      return (await openAdapter(aesGcmSealing(options), [fileSecrets({ path: path() })])).port;
    };
    const earlier = await openWith(keyOf(1), keyOf(2));
    const sealed = await earlier.seal("a", "text");
    const later = await openWith(keyOf(2), keyOf(1));
    expect(await later.open("a", sealed)).toBe("text");
    // Opening alone suffices, without a text that the new key sealed.
    await openWith(keyOf(2));
    const after = await later.seal("a", "text");
    expect(await earlier.open("a", after)).toBe("text");
    const alone = await openWith(keyOf(2));
    expect(await alone.open("a", after)).toBe("text");
    await expect(alone.open("a", sealed)).rejects.toMatchObject({ reason: "other-key" });
    await expect(openWith(keyOf(1))).rejects.toThrow(LOST);
  });

  it("does not open without the key that was used, and continues without it only if told to", async () => {
    const sealed = await (await open(keyOf(1))).seal("a", "text");
    await expect(open()).rejects.toThrow(LOST);
    await expect(open(keyOf(2))).rejects.toThrow(LOST);
    const { port: secrets } = await openAdapter(fileSecrets({ path: path() }));
    await secrets.replace("instanceKeyId", new Secret((await idOf(keyOf(2)))!));
    await expect((await open(keyOf(2))).open("a", sealed)).rejects.toMatchObject({ name: "SealBroken", reason: "other-key" });
  });

  it.each(["", "short", keyOf(1).slice(1), `${keyOf(1)}A`, `${keyOf(1).slice(0, -1)}F`, `${keyOf(0).slice(0, -2)}+/`])(
    "throws TypeError for a key that is not 32 bytes in base64url (%#)",
    async (key) => {
      await expect(open(key)).rejects.toThrow(TypeError);
    },
  );

  async function idOf(key: string): Promise<string | undefined> {
    const secrets = memorySecrets();
    const { port } = await openAdapter(aesGcmSealing({ key: new Secret(key) }), [secrets]);
    return (await port.seal("a", "")).split(".")[1];
  }

  it("opens what an earlier version sealed", async () => {
    const sealed = "v1.dY9H84M5CpA.w1ME0WWZWAoW5Xc_qSef44jbhXB5m8QxBLCu8dBA";
    expect(await (await open(keyOf(1))).open("run:1", sealed)).toBe("é");
  });

  it("says other-key of what was sealed under a key that it never had, also when it has made one itself", async () => {
    const sealing = await open();
    await sealing.seal("a", "text");
    const foreign = "v1.dY9H84M5CpA.w1ME0WWZWAoW5Xc_qSef44jbhXB5m8QxBLCu8dBA";
    await expect(sealing.open("run:1", foreign)).rejects.toMatchObject({ reason: "other-key" });
  });

  it("continues after a kill between storing its key and recording that the key is used", async () => {
    const sealed = await (await open()).seal("a", "text");
    const { instanceKey } = kept();
    writeFileSync(path(), JSON.stringify({ instanceKey }), { mode: 0o600 });
    const after = await open();
    expect(await after.open("a", sealed)).toBe("text");
    await after.seal("a", "more");
    expect(kept()["instanceKeyId"]).toBe(sealed.split(".")[1]);
  });

  it("throws SealingUnavailable while the key cannot be read", async () => {
    const sealing = await open();
    writeFileSync(path(), "damaged", { mode: 0o600 });
    await expect(sealing.seal("a", "text")).rejects.toMatchObject({
      name: "SealingUnavailable",
      cause: { name: "SecretsUnavailable" },
    });
  });
});
