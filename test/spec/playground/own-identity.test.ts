import type { ports } from "@portico/core";
import { createRemoteJWKSet, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { jwtIdentity, type JwtIdentityOptions, start } from "../../../playground/own-identity.ts";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { listen } from "../../harness/hosts.ts";

const ISSUER = "https://login.example";
const { publicKey, privateKey } = await generateKeyPair("ES256");

const sign = (claims: JWTPayload, key: Parameters<SignJWT["sign"]>[0] = privateKey) =>
  new SignJWT({ iss: ISSUER, aud: "desk", exp: Math.floor(Date.now() / 1000) + 60, ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "1" })
    .sign(key);
const open = async (keys: JwtIdentityOptions["keys"] = async () => publicKey): Promise<ports.Identity> =>
  (await openAdapter(jwtIdentity({ keys, issuer: ISSUER, audience: "desk" }))).port;

describe("users of an application's own identity provider", () => {
  it.each<[string, JWTPayload]>([
    ["expired", { exp: 1 }],
    ["of another issuer", { iss: "https://elsewhere.example" }],
    ["for another audience", { aud: "somewhere else" }],
    ["without a user", { sub: undefined as never }],
    ["of an empty user", { sub: "" }],
    ["of a role that there is not", { role: "admin" }],
    ["that never expires", { exp: undefined as never }],
  ])("are nobody with a token %s", async (_what, claims) => {
    const identity = await open();
    const good = { sub: "ada", role: "owner" };
    expect(await identity.resolve(await sign(good))).toEqual({ userId: "ada", role: "owner" });
    expect(await identity.resolve(await sign({ ...good, ...claims }))).toBeUndefined();
  });

  it("are unknown with a token that another issuer signed", async () => {
    const other = await generateKeyPair("ES256");
    const identity = await open();
    expect(await identity.resolve(await sign({ sub: "ada", role: "owner" }, other.privateKey))).toBeUndefined();
  });

  it("the call fails, and the token is not refused, while the provider is unavailable", async () => {
    let isAway = false;
    const jwk = { ...(await exportJWK(publicKey)), kid: "1", alg: "ES256" };
    await using provider = await listen((request, response) => {
      response.writeHead(isAway ? 503 : 200, { "content-type": "application/json" }).end(JSON.stringify({ keys: [jwk] }));
      request.resume();
    });
    const keys = () => createRemoteJWKSet(new URL(`${provider.origin}/jwks.json`));
    const token = await sign({ sub: "ada", role: "member" });
    expect(await (await open(keys())).resolve(token)).toEqual({ userId: "ada", role: "member" });
    isAway = true;
    await expect((await open(keys())).resolve(token)).rejects.toThrow();
  });

  it("call the agent service by their own names, and see what is their own", async () => {
    await using app = await start({ keys: async () => publicKey, issuer: ISSUER, audience: "desk" });
    const call = async (path: string, token: string) => {
      const headers = { "x-agent-service-token": token };
      const answer = await app.fetch(new Request(`http://desk.test${path}`, { headers }));
      return { status: answer.status, body: (await answer.json()) as any };
    };
    const bob = await sign({ sub: "bob", role: "member" });
    expect((await call("/api/handshake", bob)).body.identity).toEqual({ userId: "bob", role: "member" });
    expect((await call("/api/handshake", `${bob}x`)).status).toBe(401);
  });
});
