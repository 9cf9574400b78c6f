import { identityConformance } from "@portico/test/conformance/identity";
import { generateKeyPair, SignJWT } from "jose";
import { jwtIdentity } from "./own-identity.ts";

const { publicKey, privateKey } = await generateKeyPair("ES256");
const issuer = "https://login.example";

identityConformance("playground/own-identity.ts", () => jwtIdentity({ keys: async () => publicKey, issuer, audience: "desk" }), {
  hasInstanceToken: false,
  present: ({ userId, role }) =>
    new SignJWT({ role, ...(userId !== undefined && { sub: userId }) })
      .setProtectedHeader({ alg: "ES256" })
      .setIssuer(issuer)
      .setAudience("desk")
      .setExpirationTime("1h")
      .sign(privateKey),
});
