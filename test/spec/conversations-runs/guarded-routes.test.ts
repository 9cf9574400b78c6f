import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { expect, it } from "vitest";
import { startAgentService } from "../../harness/agent-app.ts";
import { guardedRoutes, routesOf } from "../../harness/guarded-routes.ts";

const { contract } = conversationsRuns({}).spec;
const parameters = { id: "some-id" };

guardedRoutes({
  ...{ contract, parameters },
  guard: "instance",
  unauthorized: { error: "unauthorized", code: "unauthorized" },
  start: startAgentService,
});

it("every route is guarded", () => {
  expect(new Set(routesOf({ contract, parameters }).map(({ auth }) => auth))).toEqual(new Set(["instance"]));
});

it("an unknown path, also below a known one and under /api/workflow, is 404 in the area's words (open points 4)", async () => {
  await using service = await startAgentService();
  for (const path of ["/api/nothing", "/api/runs/a/b/c", "/api/runs/", "/api/workflow", "/api/workflow/run", "/"]) {
    const { status, body } = await service.call("owner", "GET", path);
    expect([path, status, body]).toEqual([path, 404, { error: "Not found", code: "not_found" }]);
  }
});
