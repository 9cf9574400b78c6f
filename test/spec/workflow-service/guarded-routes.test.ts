import { workflowService } from "@portico/plugins/workflow-service";
import { describe, expect, it } from "vitest";
import { routesOf } from "../../harness/guarded-routes.ts";
import { startWorkflowService } from "../../harness/workflow-app.ts";

const { contract } = workflowService({}).spec;
const all = routesOf({ contract, parameters: { id: "free", runId: "wrun_1" } });
/** The token in the path of an approval link (open points 14), and in that of a callback, is the credential. */
const routes = all.filter(({ path }) => !path.startsWith("/approve/") && !path.startsWith("/callback/"));

describe("the service token (5; 7.2)", () => {
  it("guards every route", () => {
    expect(routes.length).toBeGreaterThan(8);
    expect(routes.filter(({ auth }) => auth !== "service")).toEqual([]);
  });

  it.each(routes.map(({ method, path }) => [method, path]))(
    "%s %s is 401 without it, with another, and with it elsewhere",
    async (method, path) => {
      await using service = await startWorkflowService();
      const token = "workflow-token-0123456789";
      const answers = await Promise.all([
        service.call(method, path, undefined, { token: "" }),
        service.call(method, path, undefined, { token: "wrong" }),
        service.call(method, path, undefined, { token: "", headers: { authorization: `Bearer ${token}` } }),
        service.call(method, path, undefined, { token: "", headers: { "x-agent-service-token": token } }),
        service.call(method, `${path}${path.includes("?") ? "&" : "?"}token=${token}`, undefined, { token: "" }),
      ]);
      for (const { status, body } of answers) expect([status, body.error]).toEqual([401, "unauthorized"]);
    },
  );

  it.each(routes.map(({ method, path }) => [method, path]))("%s %s is 503 while no token is set", async (method, path) => {
    await using service = await startWorkflowService({ token: undefined });
    const answer = await service.call(method, path);
    expect([answer.status, answer.body.error]).toEqual([503, "workflow_service_not_initialized"]);
  });

  it("an unknown path is 404 in the area's words", async () => {
    await using service = await startWorkflowService();
    const answer = await service.call("GET", "/api/workflow/a/b/c/d");
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
  });
});
