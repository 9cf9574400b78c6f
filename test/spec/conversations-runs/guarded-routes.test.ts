import type { RouteContract } from "@portico/core";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALLOWED_ORIGIN, type AgentService, startAgentService, TOKENS } from "../../harness/agent-app.ts";

/** Every route of the area, straight from its contract: what is added to it is tested without a word here. */
const ROUTES = Object.entries(conversationsRuns({}).spec.contract as Record<string, RouteContract>).map(
  ([key, { method, path, auth, body }]) => ({
    key,
    method,
    path: path.replace(":id", "some-id"),
    auth,
    hasBody: body !== undefined,
  }),
);
let service: AgentService;
beforeAll(async () => {
  service = await startAgentService();
});
afterAll(() => service.close());

describe.each(ROUTES)("$method $path", ({ method, path, auth, hasBody }) => {
  it("is guarded", () => expect(auth).toBe("instance"));

  it.each([
    ["no token", {}],
    ["an empty token", { "x-agent-service-token": "" }],
    ["a wrong token", { "x-agent-service-token": "wrong" }],
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
    expect([reply.status, ((await reply.json()) as { error: string }).error]).toEqual([401, "unauthorized"]);
  });

  it("403 origin_not_allowed from a foreign page, before the token is looked at; an allowed one goes on", async () => {
    const foreign = await service.call("owner", method, path, undefined, { origin: "https://evil.example" });
    expect([foreign.status, foreign.body.error]).toEqual([403, "origin_not_allowed"]);
    const friend = await service.call(undefined, method, path, hasBody ? {} : undefined, { origin: ALLOWED_ORIGIN });
    expect([friend.status, friend.headers["access-control-allow-origin"]]).toEqual([401, ALLOWED_ORIGIN]);
  });
});

it("an unknown path, also below a known one and under /api/workflow, is 404 in the area's words (open points 4)", async () => {
  for (const path of ["/api/nothing", "/api/runs/a/b/c", "/api/runs/", "/api/workflow", "/api/workflow/run", "/"]) {
    const { status, body } = await service.call("owner", "GET", path);
    expect([path, status, body]).toEqual([path, 404, { error: "Not found", code: "not_found" }]);
  }
});
