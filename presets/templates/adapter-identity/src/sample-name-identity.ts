import { createHash } from "node:crypto";
import { defineAdapter, orAborted, ports } from "@portico/core";

export interface SampleNameIdentityOptions {
  /**
   * Who is signed in with the token of this digest. An application keeps no token, but what it is recognised by, and looks it up like any key: how
   * long that takes tells nobody how much of a token was right.
   */
  find(digest: string): Promise<ports.Caller | undefined>;
}

/** The users of an application, by the tokens that its own sign-in gave them. Nobody holds an instance access token. */
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

/** What an application keeps of a token: its SHA-256 in hexadecimal. */
export function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
