// Several users with a session cookie: people sign in at the host, and their browser calls the agent service with the host's cookie.
import { createHash, randomBytes } from "node:crypto";
import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { createApp, defineAdapter, ports } from "@portico/core";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { testing } from "@portico/presets/testing";
import { Hono } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { Host } from "./embedding-story.ts";

const COOKIE = "desk_session";

interface Session extends ports.Caller {
  readonly end: () => void;
}

/** The host's sessions, by the digest of their token. A host with several processes keeps them in its database. */
export function createSessions() {
  const sessions = new Map<string, Session>();
  const digest = (token: string) => createHash("sha256").update(token).digest("hex");
  return {
    begin(userId: string): string {
      const token = randomBytes(32).toString("base64url");
      const ending = new AbortController();
      sessions.set(digest(token), { userId, role: "member", ended: ending.signal, end: () => ending.abort() });
      return token;
    },
    end(token: string): void {
      sessions.get(digest(token))?.end();
      sessions.delete(digest(token));
    },
    resolve: (token: string): ports.Caller | undefined => sessions.get(digest(token)),
  };
}

/** Finds the user of a session. No user holds an instance access token. */
const sessionIdentity = defineAdapter({
  name: "identity/session",
  port: ports.identity,
  needs: {},
  open: (_given, { resolve }: { readonly resolve: (token: string) => ports.Caller | undefined }): ports.Identity => ({
    resolve: async (token) => resolve(token),
    isInstanceToken: async () => false,
    instanceOwner: async () => undefined,
  }),
});

/** A host whose people sign in with a name and a password. */
export async function start(isPassword: (userId: string, password: string) => boolean): Promise<Host> {
  const sessions = createSessions();
  const app = await createApp({
    name: "desk",
    extends: testing({}),
    adapters: [systemClock(), randomIds(), sessionIdentity(sessions)],
    plugins: [conversationsRuns({})],
    // A browser adds the cookie to requests by itself, so pages of other origins must be refused.
    surfaces: { agent: { allowedOrigins: [] } },
  });
  const agent = app.surface("agent");
  const host = new Hono()
    .post("/sign-in", async (context) => {
      const { userId = "", password = "" } = await context.req.json<Record<string, string>>();
      if (!isPassword(userId, password)) return context.text("Wrong name or password", 401);
      setCookie(context, COOKIE, sessions.begin(userId), { httpOnly: true, secure: true, sameSite: "Strict" });
      return context.body(null, 204);
    })
    .post("/sign-out", (context) => {
      sessions.end(getCookie(context, COOKIE) ?? "");
      deleteCookie(context, COOKIE, { secure: true });
      return context.body(null, 204);
    })
    .all("/agent/*", async (context) => {
      const { raw } = context.req;
      const url = new URL(raw.url);
      url.pathname = url.pathname.slice("/agent".length);
      const request = new Request(url, raw);
      request.headers.delete("cookie");
      request.headers.set("x-agent-service-token", getCookie(context, COOKIE) ?? "");
      return agent.fetch(request);
    });
  return {
    call: async (path, init) => host.fetch(new Request(`http://desk.local${path}`, init)),
    [Symbol.asyncDispose]: app.close,
  };
}

if (import.meta.main) {
  await using host = await start((_userId, password) => password === "of this story");
  for (const userId of ["ada", "bob"]) {
    const body = JSON.stringify({ userId, password: "of this story" });
    const signedIn = await host.call("/sign-in", { method: "POST", headers: { "content-type": "application/json" }, body });
    const cookie = signedIn.headers.getSetCookie()[0]!.split(";")[0]!;
    const answer = await host.call("/agent/api/handshake", { headers: { cookie } });
    console.log(JSON.stringify(((await answer.json()) as { identity: object }).identity));
    await host.call("/sign-out", { method: "POST", headers: { cookie } });
    console.log(`signed out: ${(await host.call("/agent/api/handshake", { headers: { cookie } })).status}`);
  }
}
