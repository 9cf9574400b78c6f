import type { RouteContract } from "@portico/core";
import { agentWebhook } from "@portico/plugins/agent-webhook";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALLOWED_ORIGIN, TOKENS } from "../../harness/agent-app.ts";
import { startWebhookService, type WebhookService } from "../../harness/webhook-app.ts";

/** Every route of the area, straight from its contract: what is added to it is tested without a word here. */
const ROUTES = Object.entries(agentWebhook({}).spec.contract as Record<string, RouteContract>).map(
  ([key, { method, path, auth, body }]) => ({
    key,
    method,
    path: path.replace(":id", "helper").replace(":event", "deploy").replace(":agent_id", "helper"),
    auth,
    hasBody: body !== undefined,
  }),
);
let service: WebhookService;
beforeAll(async () => {
  service = await startWebhookService();
});
afterAll(() => service.close());

it("there is one route without the owner's token: the trigger", () => {
  expect(ROUTES.filter(({ auth }) => auth !== "owner").map(({ key, auth }) => [key, auth])).toEqual([["trigger", "agent"]]);
});

describe.each(ROUTES.filter(({ auth }) => auth === "owner"))("$method $path", ({ method, path, hasBody }) => {
  it.each([
    ["no token", {}],
    ["an empty token", { "x-agent-service-token": "" }],
    ["a token that is nearly right", { "x-agent-service-token": TOKENS.owner.slice(0, -1) }],
    ["the token in another header", { authorization: `Bearer ${TOKENS.owner}` }],
    ["the token twice", { "x-agent-service-token": [TOKENS.owner, TOKENS.owner] }],
  ])("401 error 'unauthorized' with %s", async (_what, headers) => {
    const reply = await service.raw({
      method,
      path,
      headers: { ...headers, ...(hasBody && { "content-type": "application/json" }) },
      ...(hasBody && { body: "{}" }),
    });
    expect([reply.status, await reply.json()]).toEqual([401, { error: "unauthorized" }]);
  });
});

describe.each(ROUTES)("$method $path", ({ method, path, hasBody }) => {
  it("403 origin_not_allowed from a foreign page; an allowed one goes on", async () => {
    const foreign = await service.call("owner", method, path, undefined, { origin: "https://evil.example" });
    expect([foreign.status, foreign.body.error]).toEqual([403, "origin_not_allowed"]);
    const friend = await service.call(undefined, method, path, hasBody ? {} : undefined, { origin: ALLOWED_ORIGIN });
    expect([friend.status, friend.headers["access-control-allow-origin"]]).toEqual([401, ALLOWED_ORIGIN]);
  });
});
