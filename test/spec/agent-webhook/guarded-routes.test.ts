import { agentWebhook } from "@portico/plugins/agent-webhook";
import { expect, it } from "vitest";
import { ALLOWED_ORIGIN } from "../../harness/agent-app.ts";
import { guardedRoutes, routesOf } from "../../harness/guarded-routes.ts";
import { startWebhookService } from "../../harness/webhook-app.ts";

const { contract } = agentWebhook({}).spec;
const parameters = { id: "helper", event: "deploy", sender: "billing", agent_id: "helper" };

guardedRoutes({
  ...{ contract, parameters },
  guard: "owner",
  unauthorized: { error: "unauthorized" },
  start: startWebhookService,
});

it("two routes are without the owner's token, the trigger and the door of senders, and they too refuse foreign pages", async () => {
  const others = routesOf({ contract, parameters }).filter(({ auth }) => auth !== "owner");
  expect(others.map(({ key, auth }) => [key, auth])).toEqual([
    ["receive", "agent"],
    ["trigger", "agent"],
  ]);
  await using service = await startWebhookService();
  for (const { key, method, path } of others) {
    const foreign = await service.call(undefined, method, path, undefined, { origin: "https://evil.example" });
    expect([foreign.status, foreign.body.error]).toEqual([403, "origin_not_allowed"]);
    const friend = await service.call(undefined, method, path, {}, { origin: ALLOWED_ORIGIN });
    const refusal = key === "trigger" ? 401 : 404;
    expect([friend.status, friend.headers["access-control-allow-origin"]]).toEqual([refusal, ALLOWED_ORIGIN]);
  }
});
