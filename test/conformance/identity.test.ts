import { type TokenHolder, tokenIdentity } from "@portico/adapters/identity/tokens";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import type { TokenRotation } from "@portico/adapters/identity/tokens";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { createLive, type ports, Secret } from "@portico/core";
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

describe("identity/tokens whose list is replaced", () => {
  const holder = (value: string, userId = "ada", role: ports.Role = "member"): TokenHolder => ({
    token: new Secret(value),
    userId,
    role,
  });
  async function open(...tokens: TokenHolder[]) {
    const clock = createManualClock();
    const rotation = createLive<TokenRotation>({ tokens, overlapMs: 0 });
    const opened = await openAdapter(tokenIdentity({ tokens, rotation }), [memorySecrets(), manualClock({ clock })]);
    const known = async (...values: string[]) =>
      (await Promise.all(values.map((value) => opened.port.resolve(value)))).map((caller) => caller?.userId);
    const replace = (next: TokenHolder[], overlapMs: number) => rotation.replace({ tokens: next, overlapMs });
    return { ...opened, clock, known, replace };
  }

  it("knows removed tokens until the overlap ends, and tells their callers then", async () => {
    const { port, clock, known, replace } = await open(holder("one"), holder("two", "bob"));
    const [ending, staying] = [await port.resolve("one"), await port.resolve("two")];
    await replace([holder("two", "bob"), holder("three")], 1000);
    expect(await known("one", "two", "three")).toEqual(["ada", "bob", "ada"]);
    await clock.advance(999);
    expect([await known("one"), ending?.ended?.aborted]).toEqual([["ada"], false]);
    await clock.advance(1);
    expect(await known("one", "two", "three")).toEqual([undefined, "bob", "ada"]);
    expect([ending?.ended?.aborted, staying?.ended?.aborted]).toEqual([true, false]);
  });

  it("keeps a token that comes back before its end", async () => {
    const { port, clock, known, replace } = await open(holder("one"));
    const caller = await port.resolve("one");
    await replace([holder("two")], 1000);
    await replace([holder("one")], 1000);
    await clock.advance(5000);
    expect(await known("one", "two")).toEqual(["ada", undefined]);
    expect(caller?.ended?.aborted).toBe(false);
  });

  it("forgets removed tokens at once without an overlap, earlier removed ones included", async () => {
    const { known, replace } = await open(holder("one"));
    await replace([holder("two")], 1000);
    await replace([holder("two")], 0);
    expect(await known("one", "two")).toEqual([undefined, "ada"]);
  });

  it("gives a token to its new holder at once, and ends what the earlier holder opened", async () => {
    const { port, known, replace } = await open(holder("one"));
    const caller = await port.resolve("one");
    await replace([holder("one", "bob")], 1000);
    expect(await known("one")).toEqual(["bob"]);
    expect(caller?.ended?.aborted).toBe(true);
  });

  it("takes both instance access tokens, and the new owner, while they overlap (open points 1)", async () => {
    const { port, clock, replace } = await open(holder("one", "ada", "owner"));
    await replace([holder("two", "bob", "owner")], 1000);
    const instances = () => Promise.all(["one", "two"].map((value) => port.isInstanceToken(value)));
    expect([await instances(), await port.instanceOwner()]).toEqual([[true, true], "bob"]);
    await clock.advance(1000);
    expect(await instances()).toEqual([false, true]);
  });

  it("refuses a list with a fault, and keeps the present one", async () => {
    const { known, replace } = await open(holder("one"));
    await expect(replace([holder("two"), holder("two")], 0)).rejects.toThrow("tokens[1] repeats");
    expect(await known("one", "two")).toEqual(["ada", undefined]);
  });

  it("limits how many earlier lists count, if lists change faster than they end", async () => {
    const { known, replace } = await open(holder("token-0"));
    for (let at = 1; at <= 40; at++) await replace([holder(`token-${at}`)], 1000);
    const all = await known(...Array.from({ length: 41 }, (_, at) => `token-${at}`));
    expect(all.slice(0, 20).every((each) => each === undefined)).toBe(true);
    expect(all.slice(30).every((each) => each === "ada")).toBe(true);
  });
});
