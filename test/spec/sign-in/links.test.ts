import { createManualClock } from "@portico/adapters/clock/manual";
import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { createApp, createEndedSessions, ports, Secret } from "@portico/core";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { signIn } from "@portico/console/sign-in";
import { testing } from "@portico/presets/testing";
import { describe, expect, it } from "vitest";

const TOKENS = { owner: "token-of-the-owner", second: "token-of-a-second-owner", member: "token-of-a-member" };
const HOLDERS = [
  { token: new Secret(TOKENS.owner), userId: "ada", role: "owner" },
  { token: new Secret(TOKENS.second), userId: "bob", role: "owner" },
  { token: new Secret(TOKENS.member), userId: "eve", role: "member" },
] as const;
const HOST = "agent.local";
const OWN = { host: HOST, origin: `http://${HOST}` };

/** A service whose clock a test moves. */
async function openService(sessions = true) {
  const clock = createManualClock({ startAt: "2031-01-01T00:00:00.000Z" });
  const app = await createApp({
    name: "signing-in",
    extends: testing({ clock }),
    adapters: [tokenIdentity({ tokens: HOLDERS, sessions })],
    plugins: [conversationsRuns({}), signIn({ ownOrigins: ["https://agents.example"] })],
    surfaces: { agent: { allowedOrigins: ["https://desk.example", "https://agents.example"] } },
  });
  const call = async (method: string, path: string, headers: Record<string, string> = {}, body?: unknown) => {
    const answer = await app.surface("agent").fetch(
      new Request(`http://${HOST}${path}`, {
        method,
        headers: { host: HOST, ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
    return {
      status: answer.status,
      headers: answer.headers,
      body: (answer.status === 204 ? undefined : await answer.json()) as any,
    };
  };
  const as = (token: string) => ({ "x-agent-service-token": token });
  const link = async (token: string = TOKENS.owner) => call("POST", "/api/sign-in-links", as(token));
  return {
    ...{ app, clock, call, as, link },
    code: async () => /^\/#\/sign-in\/(signin_[\w-]{43})$/.exec((await link()).body.url)![1]!,
    exchange: (code: string, headers: Record<string, string> = OWN) => call("POST", "/api/sign-in", headers, { code }),
    whoAmI: async (token: string) => call("GET", "/api/handshake", as(token)),
    [Symbol.asyncDispose]: () => app.close(),
  };
}

describe("a sign-in link", () => {
  it("signs its user in as the instance's owner, for 12 hours", async () => {
    await using service = await openService();
    const made = await service.link();
    expect(made).toMatchObject({ status: 201, body: { expiresAt: "2031-01-01T00:10:00.000Z" } });
    const { status, body } = await service.exchange(made.body.url.split("/").at(-1));
    expect([status, body.expiresAt]).toEqual([200, "2031-01-01T12:00:00.000Z"]);
    expect((await service.whoAmI(body.token)).body.identity).toEqual({ userId: "ada", role: "owner" });
    await service.clock.jump(12 * 3_600_000 - 1);
    expect((await service.whoAmI(body.token)).status).toBe(200);
    await service.clock.advance(1);
    expect((await service.whoAmI(body.token)).status).toBe(401);
  });

  it("works once, also for callers at the same time", async () => {
    await using service = await openService();
    const code = await service.code();
    const all = await Promise.all(Array.from({ length: 8 }, () => service.exchange(code)));
    expect(all.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(7).fill(401)]);
    expect((await service.exchange(code)).body).toEqual({
      error: "sign_in_link_invalid",
      message: "This sign-in link was used, has expired, or is not of this instance",
    });
  });

  it("works for ten minutes", async () => {
    await using service = await openService();
    const [early, late] = [await service.code(), await service.code()];
    await service.clock.advance(10 * 60_000 - 1);
    expect((await service.exchange(early)).status).toBe(200);
    await service.clock.advance(1);
    expect((await service.exchange(late)).status).toBe(401);
  });

  it("is made for the holder of the instance access token alone: no other owner, no member, no session", async () => {
    await using service = await openService();
    const session = (await service.exchange(await service.code())).body.token as string;
    for (const token of [TOKENS.second, TOKENS.member, session]) {
      expect(await service.link(token)).toMatchObject({ status: 403, body: { error: "instance_token_required" } });
    }
    for (const token of ["", "wrong"]) expect(await service.link(token)).toMatchObject({ status: 401 });
  });

  it("is refused on pages of other origins, and stays usable", async () => {
    await using service = await openService();
    const code = await service.code();
    const foreign: Record<string, string>[] = [
      { host: HOST, origin: "https://evil.example" },
      // Allowed to call the surface, and yet not the service's own page.
      { host: HOST, origin: "https://desk.example" },
      { host: HOST, origin: "null" },
      { ...OWN, "sec-fetch-site": "cross-site" },
      { ...OWN, "sec-fetch-site": "same-site" },
      { host: HOST, "sec-fetch-site": "cross-site" },
    ];
    for (const headers of foreign) {
      expect(await service.exchange(code, headers)).toMatchObject({ status: 403, body: { error: "origin_not_allowed" } });
    }
    const { status } = await service.exchange(code, {
      host: HOST,
      origin: "https://agents.example",
      "sec-fetch-site": "same-origin",
    });
    expect(status).toBe(200);
  });

  it("of another instance, or with a changed code, is refused", async () => {
    await using service = await openService();
    await using other = await openService();
    const code = await service.code();
    for (const wrong of [await other.code(), code.slice(0, -1), `${code}A`, code.toLowerCase(), "x".repeat(200)]) {
      expect((await service.exchange(wrong)).status).toBe(401);
    }
    expect((await service.exchange("x".repeat(201))).status).toBe(400);
    expect((await service.exchange("")).status).toBe(400);
    expect((await service.exchange(code)).status).toBe(200);
  });

  it("that is wrong gets 429 after 20 other wrong ones in a minute, from any caller, until that minute ends", async () => {
    await using service = await openService();
    for (let wrong = 0; wrong < 20; wrong++) expect((await service.exchange(`wrong-${wrong}`)).status).toBe(401);
    await service.clock.advance(10_000);
    const refused = await service.exchange("wrong");
    expect(refused).toMatchObject({ status: 429, body: { error: "too_many_attempts" } });
    expect(refused.headers.get("retry-after")).toBe("50");
    await service.clock.advance(50_000);
    expect((await service.exchange("wrong")).status).toBe(401);
  });

  it("signs in however many wrong codes came before: no caller keeps the owner out", async () => {
    await using service = await openService();
    const code = await service.code();
    for (let wrong = 0; wrong < 100; wrong++) await service.exchange(`wrong-${wrong}`);
    expect((await service.exchange(code)).status).toBe(200);
    expect((await service.exchange(code)).status).toBe(429);
  });

  it("is stored as a digest, and is removed after its end", async () => {
    await using service = await openService();
    const links = service.app
      .port(ports.records)
      .collection<object>({ name: "sign-in-links", indexes: { byEnd: ["expiresAt"] } });
    const code = await service.code();
    const { items } = await links.query();
    expect(JSON.stringify(items)).not.toContain(code);
    expect(items.map(({ id }) => id)).toEqual([service.app.port(ports.secrets).digest(code)]);
    await service.clock.jump(10 * 60_000);
    await service.code();
    expect((await links.query()).items).toHaveLength(1);
  });

  it("is not used up where no session can be opened", async () => {
    await using service = await openService(false);
    const code = await service.code();
    for (const _ of [1, 2])
      expect(await service.exchange(code)).toMatchObject({ status: 503, body: { error: "sign_in_unavailable" } });
  });
});

describe("a session", () => {
  it.each<[string, (token: string) => string]>([
    ["a later end", (token) => token.replace(/\.(\d+)\./, (_all, end: string) => `.${Number(end) + 1}.`)],
    ["another ID", (token) => token.replace("session_", "session_0")],
    ["no signature", (token) => token.slice(0, token.lastIndexOf(".") + 1)],
    ["another kind", (token) => token.replace("session_", "workflow_until_")],
    ["a blank behind it", (token) => `${token} .`],
  ])("with %s is refused", async (_what, change) => {
    await using service = await openService();
    const { token } = (await service.exchange(await service.code())).body as { token: string };
    expect((await service.whoAmI(token)).status).toBe(200);
    expect((await service.whoAmI(change(token))).status).toBe(401);
  });

  it("is accepted only by an identity that accepts sessions", async () => {
    await using service = await openService();
    const { token } = (await service.exchange(await service.code())).body as { token: string };
    await using strict = await openService(false);
    expect((await strict.whoAmI(token)).status).toBe(401);
  });

  it("ends by signing out, with what it opened, and no other session does", async () => {
    await using service = await openService();
    const open = async () => ((await service.exchange(await service.code())).body as { token: string }).token;
    const [token, other] = [await open(), await open()];
    const caller = await service.app.port(ports.identity).resolve(token);
    expect(await service.call("DELETE", "/api/session", service.as(token))).toMatchObject({ status: 204 });
    expect(caller!.ended!.aborted).toBe(true);
    expect((await service.whoAmI(token)).status).toBe(401);
    expect((await service.call("DELETE", "/api/session", service.as(token))).status).toBe(401);
    expect((await service.whoAmI(other)).status).toBe(200);
    expect(await service.call("DELETE", "/api/session", service.as(TOKENS.owner))).toMatchObject({
      ...{ status: 403, body: { error: "session_required" } },
    });
    expect((await service.call("DELETE", "/api/session")).status).toBe(401);
  });

  it("that another process ended is refused at once, and ends its connections soon", async () => {
    await using service = await openService();
    const { token } = (await service.exchange(await service.code())).body as { token: string };
    const identity = service.app.port(ports.identity);
    const [tokenId = "", expiresAt] = token.split(".");
    const caller = await identity.resolve(token);
    await service.app
      .port(ports.records)
      .batch([createEndedSessions(service.app.port(ports.records)).write({ tokenId, expiresAt: Number(expiresAt) })]);
    await service.clock.advance(10_000);
    await expect.poll(() => caller!.ended!.aborted).toBe(true);
    expect(await identity.resolve(token)).toBeUndefined();
  });

  it("that was ended is forgotten when its time has passed", async () => {
    await using service = await openService();
    const signOut = async () => {
      const { token } = (await service.exchange(await service.code())).body as { token: string };
      await service.call("DELETE", "/api/session", service.as(token));
    };
    await signOut();
    await service.clock.jump(12 * 3_600_000);
    await signOut();
    const ended = service.app
      .port(ports.records)
      .collection<object>({ name: "ended-sessions", indexes: { byEnd: ["expiresAt"] } });
    expect((await ended.query()).items).toHaveLength(1);
  });

  it("ends what it opened when it expires", async () => {
    await using service = await openService();
    const { token } = (await service.exchange(await service.code())).body as { token: string };
    const caller = await service.app.port(ports.identity).resolve(token);
    expect(caller).toMatchObject({ tokenId: expect.stringMatching(/^session_/) });
    expect(token).not.toBe(caller!.tokenId);
    expect(caller!.ended!.aborted).toBe(false);
    await service.clock.jump(12 * 3_600_000);
    expect(caller!.ended!.aborted).toBe(true);
  });
});
