import { createManualClock } from "@portico/adapters/clock/manual";
import { ports } from "@portico/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type AgentService, startAgentService } from "../../harness/agent-app.ts";

const HOUR = 3_600_000;
const manual = createManualClock();
let behind = 0;
const clock = { ...manual, now: () => manual.now() - behind };

let service: AgentService;
beforeAll(async () => {
  service = await startAgentService({ clock });
  service.engine.otherwise(async (_turn, { say }) => {
    behind += HOUR;
    await say({ type: "text", delta: "done" });
  });
});
afterAll(() => service.close());

const read = async (path: string) => (await service.call("owner", "GET", path)).body;

/** Nothing of a run and its receipt lies before its beginning. */
async function expectInOrder(runId: string): Promise<void> {
  const { receipts } = await read(`/api/runs/${runId}/receipt`);
  const [{ started_at, completed_at, duration_ms }] = receipts;
  expect(Date.parse(completed_at)).toBeGreaterThanOrEqual(Date.parse(started_at));
  expect(duration_ms).toBe(0);
  const { turn_started_at, updatedAt, completed_at: closedAt = updatedAt } = await read(`/api/runs/${runId}`);
  expect(Date.parse(updatedAt)).toBeGreaterThanOrEqual(Date.parse(turn_started_at));
  expect(Date.parse(closedAt)).toBeGreaterThanOrEqual(Date.parse(turn_started_at));
}

it("a clock that steps back during a turn makes nothing end before it began", async () => {
  const client = await service.connect("owner");
  const { clientRequestId } = await client.start("work");
  const { data } = await client.ended(clientRequestId);
  await expectInOrder(data.runId);
  const { messages } = await read(`/api/conversations/${data.conversationId}/messages`);
  const [asked, answered] = messages.map(({ at }: { at: string }) => Date.parse(at));
  expect(answered).toBeGreaterThanOrEqual(asked);
});

it("a clock that steps back during a background turn makes nothing end before it began", async () => {
  const turns = service.app.port(ports.backgroundTurns);
  const { runId } = await turns.start({
    ...{ agentId: "helper", userId: "owner", prompt: "work", toolIds: [], maxTurns: 5 },
    origin: { origin: "webhook", displayName: "deploy" },
  });
  await expect.poll(async () => (await read(`/api/runs/${runId}`))?.status).toBe("completed");
  await expectInOrder(runId);
});
