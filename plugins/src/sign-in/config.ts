import * as v from "valibot";

/** Options of the page of sign-in links. */
export const signInConfig = v.strictObject({
  /**
   * Origins of the service's own pages, in addition to the host that a request names: of its public address, if a reverse proxy changes the
   * `Host` header.
   */
  ownOrigins: v.optional(v.array(v.string()), []),
});
