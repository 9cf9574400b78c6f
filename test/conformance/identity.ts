import { type Adapter, type ports, Secret } from "@portico/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** A token that the adapter under test must know, and its holder. */
export interface KnownToken {
  readonly token: Secret;
  readonly userId?: string;
  readonly role: ports.Role;
}

/** Options of `identityConformance`. */
export interface IdentityConformanceOptions {
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
  /** What a holder presents where that is not the suite's own token, such as a signed one; default: the token as it is. */
  readonly present?: (known: KnownToken) => string | Promise<string>;
  /** False for an adapter without a holder of the instance access token. Default: the first owner holds it. */
  readonly hasInstanceToken?: boolean;
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
 * tokens, or what `present` makes of them.
 */
export function identityConformance(
  name: string,
  makeAdapter: (known: readonly KnownToken[]) => Adapter<typeof ports.identity> | Promise<Adapter<typeof ports.identity>>,
  { others = [], present = ({ token }) => token.reveal(), hasInstanceToken = true }: IdentityConformanceOptions = {},
): void {
  describeSuite(`identity port: ${name}`, () => {
    let opened: OpenAdapter<ports.Identity>;
    let identity: ports.Identity;
    beforeEach(async () => {
      opened = await openAdapter(await makeAdapter(KNOWN), others);
      identity = opened.port;
    });
    afterEach(() => opened.close());

    const owner = KNOWN.find(({ role }) => role === "owner")!;

    it("resolves every token to its holder (open points 1)", async () => {
      for (const known of KNOWN) {
        const { userId, role } = known;
        expect(holderOf(await identity.resolve(await present(known)))).toEqual({ userId, role });
      }
    });

    it("resolves a service to no user (open points 1)", async () => {
      const service = KNOWN.find(({ role }) => role === "service")!;
      expect(holderOf(await identity.resolve(await present(service)))).toEqual({ userId: undefined, role: "service" });
    });

    it("names a token, if it names tokens, always the same, and without its value", async () => {
      for (const known of KNOWN) {
        const presented = await present(known);
        const first = await identity.resolve(presented);
        expect((await identity.resolve(presented))?.tokenId).toBe(first?.tokenId);
        expect(presented).not.toContain(first?.tokenId ?? "no id");
        expect(first?.ended?.aborted ?? false).toBe(false);
      }
    });

    it.each<[what: string, from: (token: string) => string]>([
      ["nothing", () => ""],
      ["a blank", () => " "],
      ["its beginning", (token) => token.slice(0, 5)],
      ["one without its last character", (token) => token.slice(0, -1)],
      ["one with a blank behind it", (token) => `${token} `],
      ["one in other letters", (token) => token.toUpperCase()],
      ["one with U+0000 behind it", (token) => `${token}\0`],
      ["half a character", () => "\ud800"],
      ["a very long one", () => "x".repeat(100_000)],
      ["a word of the language", () => "constructor"],
    ])("answers undefined to a token that nobody holds: %s", async (_what, from) => {
      expect(await identity.resolve(from(await present(owner)))).toBeUndefined();
    });

    it.runIf(hasInstanceToken)(
      "takes the first owner's token for the instance access token, and no other (open points 1)",
      async () => {
        for (const known of KNOWN) expect(await identity.isInstanceToken(await present(known))).toBe(known === owner);
        expect(await identity.isInstanceToken("")).toBe(false);
        expect(await identity.instanceOwner()).toBe("owner");
      },
    );

    it.runIf(!hasInstanceToken)("identifies no caller by an instance access token", async () => {
      for (const known of KNOWN) expect(await identity.isInstanceToken(await present(known))).toBe(false);
      expect(await identity.instanceOwner()).toBeUndefined();
    });

    it("stops for a signal that has aborted", async () => {
      const reason = new Error("gone");
      await expect(identity.resolve(await present(owner), AbortSignal.abort(reason))).rejects.toBe(reason);
    });
  });
}

/** What every identity tells of a token. */
function holderOf(caller: ports.Caller | undefined) {
  return caller && { userId: caller.userId, role: caller.role };
}
