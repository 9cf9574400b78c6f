// Your own users: users that your identity provider signed in call the agent service with the provider's token.
import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { type App, createApp, defineAdapter, orAborted, ports } from "@portico/core";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { errors, generateKeyPair, type JWTVerifyGetKey, jwtVerify, SignJWT } from "jose";
import { testing } from "@portico/presets/testing";
import * as v from "valibot";

export interface JwtIdentityOptions {
  /** The provider's keys: `createRemoteJWKSet(new URL("https://login.example/.well-known/jwks.json"))`. */
  readonly keys: JWTVerifyGetKey;
  readonly issuer: string;
  readonly audience: string;
}

/** The claims that a token must have, in addition to those that `jwtVerify` checks. */
const claims = v.variant("role", [
  v.object({ role: v.picklist(["owner", "member"]), sub: v.pipe(v.string(), v.nonEmpty()) }),
  v.object({ role: v.literal("service"), sub: v.optional(v.undefined()) }),
]);

/** The caller's signed token (JWT) of one issuer names the user. No user holds an instance access token. */
export const jwtIdentity = defineAdapter({
  name: "identity/jwt",
  port: ports.identity,
  needs: {},
  open: (_given, { keys, issuer, audience }: JwtIdentityOptions): ports.Identity => ({
    async resolve(token, signal) {
      signal?.throwIfAborted();
      // Base64 decoders are lenient. Without this check, one token could be written in several ways.
      if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return undefined;
      try {
        const { payload } = await orAborted(jwtVerify(token, keys, { issuer, audience, requiredClaims: ["exp"] }), signal);
        const { success, output } = v.safeParse(claims, payload);
        return success ? { userId: output.sub, role: output.role } : undefined;
      } catch (error) {
        // If the provider's keys cannot be fetched, the token is neither valid nor invalid: the call fails.
        if (error instanceof errors.JOSEError && !UNREACHABLE.has(error.code)) return undefined;
        throw error;
      }
    },
    isInstanceToken: async () => false,
    instanceOwner: async () => undefined,
  }),
});

const UNREACHABLE = new Set([errors.JWKSTimeout.code, errors.JWKSInvalid.code, errors.JOSEError.code]);

/** An agent service for the provider's users. */
export function start(provider: JwtIdentityOptions): Promise<App> {
  return createApp({
    name: "desk",
    extends: testing({}),
    adapters: [systemClock(), randomIds(), jwtIdentity(provider)],
    plugins: [conversationsRuns({})],
  });
}

if (import.meta.main) {
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const provider = { keys: async () => publicKey, issuer: "https://login.example", audience: "desk" };
  await using app = await start(provider);
  for (const { sub, role, audience } of [
    { sub: "ada", role: "owner", audience: "desk" },
    { sub: "bob", role: "member", audience: "desk" },
    { sub: "eve", role: "owner", audience: "somewhere else" },
  ]) {
    const signed = new SignJWT({ sub, role }).setIssuer(provider.issuer).setAudience(audience).setExpirationTime("1h");
    const headers = { "x-agent-service-token": await signed.setProtectedHeader({ alg: "ES256" }).sign(privateKey) };
    const answer = await app.fetch(new Request("http://desk.local/api/handshake", { headers }));
    const { identity, code } = (await answer.json()) as { identity?: object; code?: string };
    console.log(`${sub}: ${JSON.stringify(identity) ?? code}`);
  }
}
