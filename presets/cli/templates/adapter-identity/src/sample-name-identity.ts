import { createHash } from "node:crypto";
import { defineAdapter, orAborted, ports } from "@portico/core";

export interface SampleNameIdentityOptions {
  /**
   * Finds the user who is signed in with the token of this digest. An application stores only the digest, not the token, and looks it up like any key:
   * the time of a lookup does not reveal how much of a token is correct.
   */
  find(digest: string): Promise<ports.Caller | undefined>;
}

/** The users of an application, by the tokens of its own sign-in. No user holds an instance access token. */
export const sampleNameIdentity = defineAdapter({
  name: "identity/sample-name",
  port: ports.identity,
  needs: {},
  open: (_given, { find }: SampleNameIdentityOptions): ports.Identity => ({
    async resolve(token, signal) {
      signal?.throwIfAborted();
      return orAborted(find(digestOf(token)), signal);
    },
    isInstanceToken: async () => false,
    instanceOwner: async () => undefined,
  }),
});

/** The digest of a token that an application stores: its SHA-256 in hexadecimal. */
export function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
