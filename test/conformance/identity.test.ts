import { type TokenHolder, tokenIdentity } from "@portico/adapters/identity/tokens";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { type ports, Secret } from "@portico/core";
import { describe, expect, it, vi } from "vitest";
import { identityConformance } from "./identity.ts";
import { openAdapter } from "./open-adapter.ts";

identityConformance("tokens", (tokens) => tokenIdentity({ tokens }), { others: [memorySecrets()] });
identityConformance("tokens that are found at the start", (tokens) => tokenIdentity({ tokens: async () => tokens }), {
  others: [memorySecrets()],
});

describe("identity/tokens", () => {
  const open = (...tokens: TokenHolder[]) => openAdapter(tokenIdentity({ tokens }), [memorySecrets()]);
  const token = new Secret("a-token-nobody-prints");

  it.each<[string, TokenHolder[], string]>([
    [
      "a repeated token",
      [
        { token, userId: "a", role: "owner" },
        { token, userId: "b", role: "member" },
      ],
      "tokens[1] repeats the value of tokens[0]",
    ],
    ["an empty token", [{ token: new Secret(""), userId: "a", role: "owner" }], "tokens[0] is empty"],
    ["an owner without a userId", [{ token, role: "owner" }], "tokens[0] has role owner and needs a userId"],
    ["a member with an empty userId", [{ token, userId: "", role: "member" }], "tokens[0] has role member and needs a userId"],
    ["a service with a userId", [{ token, userId: "a", role: "service" }], "tokens[0] has role service, which has no user"],
    ["an unknown role", [{ token, userId: "a", role: "admin" as ports.Role }], "tokens[0] has no role"],
  ])("refuses %s when it opens, with a sentence and without the value", async (_what, tokens, sentence) => {
    const refused = await open(...tokens).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(TypeError);
    expect(String(refused)).toContain(sentence);
    expect(String(refused)).not.toContain(token.reveal());
  });

  it("names all faults in one report", async () => {
    await expect(open({ token, role: "owner" }, { token, role: "service" })).rejects.toThrow(/tokens\[0\].*\n.*tokens\[1\]/);
  });

  it("knows no user without tokens", async () => {
    const { port } = await open();
    expect(await port.resolve("")).toBeUndefined();
    expect(await port.isInstanceToken("")).toBe(false);
    expect(await port.instanceOwner()).toBeUndefined();
  });

  it("compares with every token, so that the time reveals nothing", async () => {
    const { port: secrets } = await openAdapter(memorySecrets());
    const matches = vi.fn(secrets.matches);
    const tokens = ["one", "two", "three"].map((value) => ({ token: new Secret(value), userId: value, role: "member" as const }));
    const { spec } = tokenIdentity({ tokens });
    const identity: ports.Identity = await spec.open(
      { secrets: { ...secrets, matches } },
      { tokens },
      { onClose: () => {}, onReady: () => {} },
    );
    for (const presented of ["one", "three", "nobody's"]) {
      matches.mockClear();
      await identity.resolve(presented);
      expect(matches).toHaveBeenCalledTimes(3);
    }
  });
});
