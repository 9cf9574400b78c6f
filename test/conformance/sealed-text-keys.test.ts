import type * as Crypto from "node:crypto";
import { Secret } from "@portico/core";
import { expect, it, vi } from "vitest";
import { openText, sealText, toSealKey } from "../../adapters/src/sealing/sealed-text.ts";

const derived = vi.hoisted(() => ({ count: 0 }));
vi.mock("node:crypto", async (original) => {
  const crypto = await original<typeof Crypto>();
  const hkdfSync = (...given: Parameters<typeof crypto.hkdfSync>) => {
    derived.count++;
    return crypto.hkdfSync(...given);
  };
  return { ...crypto, hkdfSync };
});

it("the key of a context that is used again and again stays derived while many other contexts are used", () => {
  const key = toSealKey(new Secret(Buffer.alloc(32, 7).toString("base64url")), "portico/test");
  const sealed = sealText(key, "often", "a text");
  const before = derived.count;
  const others = 200;
  for (let n = 0; n < others; n++) {
    sealText(key, `seldom ${n}`, "another text");
    expect(openText(key, "often", sealed)).toBe("a text");
  }
  expect(derived.count - before).toBe(others);
});
