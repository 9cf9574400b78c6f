// What a session issues may outlive it: docs/security.md, "Sign-in links".
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { createApp } from "@portico/core";
import { local, readPlatformOptions } from "@portico/presets/local";
import { expect, it } from "vitest";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

const OWNER = "the-token-of-the-owner";
const HOST = "agent.local";
const EVENT = { toolIds: [], promptTemplate: "{{text}}" };

it.each([
  ["as long as those of the owner's token, by default", undefined, { grant: 3_600_000, lateStatus: 200 }],
  ["for `agent.sessionIssuesMs` at most", 60_000, { grant: 60_000, lateStatus: 401 }],
])("grants, safe tokens and webhook secrets that a session issues are valid %s", async (_how, sessionIssuesMs, expected) => {
  const folder = temporaryFolder();
  await using upstream = await startFakeUpstream();
  try {
    const [agentsDir, definitionsDir] = ["agents", "workflows"].map((name) => join(folder.path, name)) as [string, string];
    mkdirSync(join(agentsDir, "helper"), { recursive: true });
    mkdirSync(definitionsDir);
    writeFileSync(join(agentsDir, "helper", "agent.json"), JSON.stringify({ name: "Helper" }));
    writeFileSync(join(definitionsDir, "w.json"), JSON.stringify({ nodes: { a: { type: "transform", with: { value: 1 } } } }));
    const config = {
      ...{ dataDir: folder.path, log: { level: "silent" as const } },
      providers: [{ id: "main", protocol: "messages" as const, baseUrl: upstream.baseUrl, models: ["echo-large"] }],
      agent: { agentsDir, sessionIssuesMs, tokens: [{ token: OWNER, userId: "ada", role: "owner" as const }] },
      workflow: { definitionsDir },
    };
    const clock = createManualClock({ startAt: "2031-01-01T00:00:00.000Z" });
    await using app = await createApp({
      name: "sessions",
      extends: local(await readPlatformOptions(config, { env: {} })),
      adapters: [manualClock({ clock })],
    });
    const call = async (surface: string, method: string, path: string, headers: Record<string, string>, body?: unknown) => {
      const answer = await app.surface(surface).fetch(
        new Request(`http://${HOST}${path}`, {
          method,
          headers: { host: HOST, ...(body !== undefined && { "content-type": "application/json" }), ...headers },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        }),
      );
      return { status: answer.status, body: (await answer.json()) as any };
    };
    const link = await call("agent", "POST", "/api/sign-in-links", { "x-agent-service-token": OWNER });
    const code = link.body.url.split("/").at(-1);
    const { body: session } = await call("agent", "POST", "/api/sign-in", { origin: `http://${HOST}` }, { code });

    const now = clock.now();
    const issue = async (token: string) => {
      const as = { "x-agent-service-token": token };
      const grant = await call("agent", "POST", "/api/execution-grants", as, { workflowId: "w", ttlMs: 3_600_000 });
      const safe = await call("agent", "POST", "/api/safe-tokens", as, { providerId: "main" });
      await call("agent", "PUT", "/api/agents/helper/webhooks/events/ticket", as, EVENT);
      const secret = await call("agent", "POST", "/api/agents/helper/webhooks/secret/rotate", as);
      return { grantMs: Date.parse(grant.body.expiresAt) - now, safe: safe.body, secret: secret.body.secret as string };
    };
    const models = async (token: string) => (await call("proxy", "GET", "/v1/models", { "x-api-key": token })).status;
    const trigger = async (secret: string) =>
      (await call("agent", "POST", "/api/webhook/helper?event=none", { authorization: `Bearer ${secret}` }, { text: "hello" }))
        .status;

    const own = await issue(OWNER);
    expect([own.grantMs, own.safe.expiresAt]).toEqual([3_600_000, undefined]);
    const issued = await issue(session.token);
    expect(issued.grantMs).toBe(expected.grant);
    const early = [await models(issued.safe.token), await trigger(issued.secret)];
    expect(early).toEqual([200, expect.any(Number)]);
    expect(early[1]).not.toBe(401);
    await clock.advance(60_000);
    expect(await models(issued.safe.token)).toBe(expected.lateStatus);
    expect((await trigger(issued.secret)) === 401).toBe(expected.lateStatus === 401);
    expect(await models(own.safe.token)).toBe(200);
  } finally {
    folder.remove();
  }
});
