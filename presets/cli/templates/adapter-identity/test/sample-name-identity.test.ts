import { identityConformance } from "@portico/test/conformance/identity";
import { digestOf, sampleNameIdentity } from "../src/sample-name-identity.ts";

// The rules of the port. `known` are the tokens that the suite presents, with their holders.
identityConformance(
  "sample-name",
  (known) => {
    const callers = new Map(known.map(({ token, userId, role }) => [digestOf(token.reveal()), { userId, role }]));
    return sampleNameIdentity({ find: async (digest) => callers.get(digest) });
  },
  { hasInstanceToken: false },
);
