import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { hmacSigning, type SigningRotation } from "@portico/adapters/signing/hmac";
import { keptKey } from "@portico/adapters/signing/kept-key";
import { createLive, Secret } from "@portico/core";
import { describe, expect, it } from "vitest";
import { openAdapter } from "./open-adapter.ts";
import { signingConformance } from "./signing.ts";

signingConformance("hmac", (key) => hmacSigning({ key }));

describe("signing/hmac", () => {
  it("is HMAC-SHA-256 with a key that HKDF-SHA-256 derives for the purpose (open points 6)", async () => {
    const { port: signing } = await openAdapter(hmacSigning({ key: new Secret("instance") }));
    // Reckoned by other means than Node: extract with salt `portico/signing`, expand with info `media-link`.
    expect(await signing.sign("media-link", "é")).toBe("owqpfLVjoRsiBKZ6CyUZkGaXVZPiPxV5ia-OUxE4Utg");
  });

  it("refuses an empty key when it opens", async () => {
    await expect(openAdapter(hmacSigning({ key: new Secret("") }))).rejects.toThrow(TypeError);
  });

  it("finds its key among the secrets: one that is made once and kept", async () => {
    const found = hmacSigning({ key: async () => new Secret("instance") });
    const { port: signing } = await openAdapter(found, [memorySecrets()]);
    expect(await signing.sign("media-link", "é")).toBe("owqpfLVjoRsiBKZ6CyUZkGaXVZPiPxV5ia-OUxE4Utg");

    const { port: secrets } = await openAdapter(memorySecrets());
    expect((await keptKey(secrets)).reveal()).toBe((await keptKey(secrets)).reveal());
  });

  it("refuses to read a key without an adapter for secrets", async () => {
    await expect(openAdapter(hmacSigning({ key: keptKey }))).rejects.toThrow('port "secrets"');
  });
});

describe("signing/hmac with a key that is replaced", () => {
  async function open() {
    const clock = createManualClock();
    const key = new Secret("first");
    const rotation = createLive<SigningRotation>({ key, overlapMs: 0 });
    const { port } = await openAdapter(hmacSigning({ key, rotation }), [manualClock({ clock })]);
    const { port: first } = await openAdapter(hmacSigning({ key }));
    const { port: second } = await openAdapter(hmacSigning({ key: new Secret("second") }));
    const replace = (overlapMs: number, delayMs?: number) => rotation.replace({ key: new Secret("second"), overlapMs, delayMs });
    return { port, clock, replace, first: await first.sign("link", "m"), second: await second.sign("link", "m") };
  }

  it("signs with the new key, and verifies signatures of both until the overlap ends (4.5, rule 10)", async () => {
    const { port, clock, replace, first, second } = await open();
    await replace(1000);
    expect(await port.sign("link", "m")).toBe(second);
    expect([await port.verify("link", "m", first), await port.verify("link", "m", second)]).toEqual([true, true]);
    expect(await port.verify("link", "other", first)).toBe(false);
    await clock.advance(1000);
    expect([await port.verify("link", "m", first), await port.verify("link", "m", second)]).toEqual([false, true]);
  });

  it("signs with the earlier key for a given time, and verifies signatures of the new one meanwhile", async () => {
    const { port, clock, replace, first, second } = await open();
    await replace(1000, 400);
    expect([await port.sign("link", "m"), await port.verify("link", "m", second)]).toEqual([first, true]);
    await clock.advance(400);
    expect([await port.sign("link", "m"), await port.verify("link", "m", first)]).toEqual([second, true]);
    await replace(0, 400);
    expect([await port.sign("link", "m"), await port.verify("link", "m", first)]).toEqual([second, false]);
  });

  it("signs with the new key at once without an overlap", async () => {
    const { port, replace, second } = await open();
    await replace(0, 400);
    expect(await port.sign("link", "m")).toBe(second);
  });

  it("refuses an empty key, and keeps the present one", async () => {
    const { first } = await open();
    const rotation = createLive<SigningRotation>({ key: new Secret("first"), overlapMs: 0 });
    const { port: signing } = await openAdapter(hmacSigning({ key: new Secret("first"), rotation }));
    await expect(rotation.replace({ key: new Secret(""), overlapMs: 0 })).rejects.toThrow(TypeError);
    expect(await signing.sign("link", "m")).toBe(first);
  });
});
