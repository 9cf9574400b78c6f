import { afterAll, beforeAll, expect, it } from "vitest";
import { start } from "../../../playground/own-session.ts";

let host: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  host = await start((userId, password) => password === `of ${userId}`);
});
afterAll(() => host[Symbol.asyncDispose]());

async function signIn(userId: string, password = `of ${userId}`) {
  const headers = { "content-type": "application/json" };
  const answer = await host.call("/sign-in", { method: "POST", headers, body: JSON.stringify({ userId, password }) });
  const [, cookie = ""] = /^([^;]+); .*HttpOnly; Secure; SameSite=Strict/.exec(answer.headers.get("set-cookie") ?? "") ?? [];
  return { status: answer.status, cookie };
}

it("each person is the user of their own session, until they sign out", async () => {
  const [ada, bob] = [await signIn("ada"), await signIn("bob")];
  const identity = async (cookie: string) => (await host.call("/agent/api/handshake", { headers: { cookie } })).json();
  expect(await identity(ada.cookie)).toMatchObject({ identity: { userId: "ada", role: "member" } });
  expect(await identity(bob.cookie)).toMatchObject({ identity: { userId: "bob", role: "member" } });
  await host.call("/sign-out", { method: "POST", headers: { cookie: ada.cookie } });
  expect(await identity(ada.cookie)).toMatchObject({ code: "unauthorized" });
  expect(await identity(bob.cookie)).toMatchObject({ identity: { userId: "bob" } });
});

it("a wrong password opens no session, and a page of another origin cannot use one", async () => {
  expect(await signIn("ada", "guessed")).toEqual({ status: 401, cookie: "" });
  const { cookie } = await signIn("ada");
  const foreign = await host.call("/agent/api/agents", { headers: { cookie, origin: "https://evil.example" } });
  expect([foreign.status, await foreign.json()]).toMatchObject([403, { code: "origin_not_allowed" }]);
});
