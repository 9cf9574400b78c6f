import { createClient, isCallFailed } from "@portico/core/client";
import { Secret } from "@portico/core";
import { sign } from "@octokit/webhooks-methods";
import { agentWebhookContract } from "@portico/plugins/agent-webhook/contract";
import { afterAll, beforeAll, expect, it } from "vitest";
import { forwardGithub } from "../../../playground/forward-github.ts";
import { TOKENS } from "../../harness/agent-app.ts";
import { startWebhookService, type WebhookService } from "../../harness/webhook-app.ts";

let service: WebhookService;
beforeAll(async () => {
  service = await startWebhookService();
});
afterAll(() => service.close());

const third = new Secret("a-secret-of-the-third-party");
const triggerOf = (secret: string, events: readonly string[]) => ({
  url: `${service.url}/api/webhook/helper`,
  secret: new Secret(secret),
  events: [...events],
  answerWithinMs: 8000,
});

it("a notification of GitHub, mapped by a forwarder, is worked on (4.4)", async () => {
  const secret = await service.save("github.pull_request.opened", "Review {{title}} of {{repository}}");
  const forwarder = forwardGithub({ secret: third, trigger: triggerOf(secret, ["github.pull_request.opened"]) });
  const body = JSON.stringify({
    action: "opened",
    pull_request: { number: 7, title: "Milk", body: "Please.", html_url: "https://github.example/ada/tea/pull/7" },
    repository: { full_name: "ada/tea" },
    sender: { login: "ada" },
  });
  const headers = { "x-github-event": "pull_request", "x-hub-signature-256": await sign(third.reveal(), body) };
  const answer = await forwarder.fetch(new Request("http://forwarder/github", { method: "POST", headers, body }));
  expect(answer.status).toBe(200);
  await expect.poll(() => service.engine.played).toContain("Review Milk of ada/tea");
});

it("the contract's typed client manages events, and knows their errors", async () => {
  const webhooks = createClient(agentWebhookContract, {
    baseURL: service.url,
    headers: { "x-agent-service-token": TOKENS.owner },
  });
  const params = { id: "helper", event: "typed" };
  const saved = await webhooks.saveEvent({ params, body: { promptTemplate: "x", toolIds: [] } });
  expect(saved).toMatchObject({ success: true, event: "typed" });
  const { events } = await webhooks.configuration({ params: { id: "helper" } });
  expect(events.map(({ event }) => event)).toContain("typed");
  expect(await webhooks.deleteEvent({ params })).toMatchObject({ success: true });
  const refused = await webhooks.deleteEvent({ params }).catch((error: unknown) => error);
  expect(isCallFailed(refused, agentWebhookContract.deleteEvent) && refused.code).toBe("webhook_event_not_found");
});
