import { memorySecrets } from "@portico/adapters/secrets/memory";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { keptKey } from "@portico/adapters/signing/kept-key";
import { Secret } from "@portico/core";
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
