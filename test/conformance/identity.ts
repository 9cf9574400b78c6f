import { type Adapter, type ports, Secret } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** A token that the adapter under test must know, and its holder. */
export interface KnownToken {
  readonly token: Secret;
  readonly userId?: string;
  readonly role: ports.Role;
}

export interface IdentityConformanceOptions {
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
}

const KNOWN: readonly KnownToken[] = [
  { token: new Secret("member-token-before-the-owner"), userId: "member", role: "member" },
  { token: new Secret("owner-token-of-the-suite"), userId: "owner", role: "owner" },
  { token: new Secret("member-token-of-the-suite"), userId: "member", role: "member" },
  { token: new Secret("second-token-of-the-member"), userId: "member", role: "member" },
  { token: new Secret("service-token-of-the-suite"), role: "service" },
  { token: new Secret("token-of-a-second-owner"), userId: "second", role: "owner" },
];

/**
 * The law of the identity port, as vitest tests. `makeAdapter` is called once per test and gives an adapter that knows these
 * tokens.
 */
export function identityConformance(
  name: string,
  makeAdapter: (known: readonly KnownToken[]) => Adapter<typeof ports.identity> | Promise<Adapter<typeof ports.identity>>,
  { others = [] }: IdentityConformanceOptions = {},
): void {
  describe(`identity port: ${name}`, () => {
    let opened: OpenAdapter<ports.Identity>;
    let identity: ports.Identity;
    beforeEach(async () => {
      opened = await openAdapter(await makeAdapter(KNOWN), others);
      identity = opened.port;
    });
    afterEach(() => opened.close());

    it("resolves every token to its holder (open points 1)", async () => {
      for (const { token, userId, role } of KNOWN) expect(await identity.resolve(token.reveal())).toEqual({ userId, role });
    });

    it("resolves a service to no user (open points 1)", async () => {
      expect((await identity.resolve("service-token-of-the-suite"))?.userId).toBeUndefined();
    });

    it.each([
      "",
      " ",
      "owner",
      "owner-token-of-the-suit",
      "owner-token-of-the-suite ",
      "OWNER-TOKEN-OF-THE-SUITE",
      "owner-token-of-the-suite\0",
      "\ud800",
      "x".repeat(100_000),
      "constructor",
    ])("answers undefined to a token that nobody holds (%#)", async (token) => {
      expect(await identity.resolve(token)).toBeUndefined();
    });

    it("takes the first owner's token for the instance access token, and no other (open points 1)", async () => {
      for (const { token } of KNOWN) {
        const value = token.reveal();
        expect(await identity.isInstanceToken(value)).toBe(value === "owner-token-of-the-suite");
      }
      expect(await identity.isInstanceToken("")).toBe(false);
      expect(await identity.instanceOwner()).toBe("owner");
    });

    it("stops for a signal that has aborted", async () => {
      const reason = new Error("gone");
      await expect(identity.resolve("owner-token-of-the-suite", AbortSignal.abort(reason))).rejects.toBe(reason);
    });
  });
}
