import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { Secret } from "@portico/core";
import { afterEach, expect, it, vi } from "vitest";
import { openText, sealText, toSealKey } from "../../adapters/src/sealing/sealed-text.ts";

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

it("the key of a context that is used again and again stays derived while many other contexts are used", () => {
  const key = toSealKey(new Secret(Buffer.alloc(32, 7).toString("base64url")), "portico/test");
  const sealed = sealText(key, "often", "a text");
  const derive = vi.spyOn(crypto, "hkdfSync");
  syncBuiltinESMExports();
  const others = 200;
  for (let n = 0; n < others; n++) {
    sealText(key, `seldom ${n}`, "another text");
    expect(openText(key, "often", sealed)).toBe("a text");
  }
  expect(derive).toHaveBeenCalledTimes(others);
});
