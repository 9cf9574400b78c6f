import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { createEndedRequests } from "@portico/adapters/telemetry/ended-requests";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { recordUsage } from "@portico/adapters/usage/records";
import { definePlugin } from "@portico/core";
import { defineContract, reply } from "@portico/core/contract";
import { measurements } from "@portico/operator/measurements";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LoopedAgents, startLoopedAgents } from "../../harness/looped-agents.ts";
import { startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { events, json, never } from "../../harness/upstream-answers.ts";

const failing = definePlugin({
  name: "failing",
  summary: "Fails.",
  config: v.strictObject({}),
  needs: {},
  contract: defineContract(
    { surface: "agent", auth: "open", envelope: (error) => ({ error: error.message }) },
    {
      fail: { method: "GET", path: "/api/fails", summary: "Fail", success: reply.json(v.object({})) },
    },
  ),
  setup: () => ({
    fail() {
      throw new Error("broken");
    },
  }),
});

let agents: LoopedAgents;
beforeAll(async () => {
  const endedRequests = createEndedRequests();
  agents = await startLoopedAgents(
    { talker: { provider: "messages" } },
    {
      telemetry: openTelemetry({ level: "silent", endedRequests }),
      adapters: [recordUsage({ requests: endedRequests })],
      plugins: [measurements({ counted: createPrometheusMetrics() }), failing({})],
    },
  );
});
afterAll(() => agents?.[Symbol.asyncDispose]());

const read = async (query: string, holder?: "owner" | "member" | "service") =>
  agents.service.call(holder, "GET", `/api/measurements/work?${query}`);
const sums = ({ completed, failed, cancelled, interrupted }: any) =>
  [completed, failed, cancelled, interrupted].map((list: number[]) => list.reduce((sum, each) => sum + each, 0));
/** How many of a name completed, failed, were cancelled and were interrupted. */
const endsOf = async (kind: string, name: string) => {
  const { body } = await read(`kind=${kind}`, "owner");
  const found = body.series.find((one: any) => one.value === name);
  return found && sums(found);
};

describe("GET /api/measurements/work", () => {
  it("counts turns of agents by how they ended, with the latencies of those that completed", async () => {
    agents.upstream.answerAll(events(messagesEvents("one two")));
    await agents.ask("talker", "hello");
    agents.upstream.answerAll(json(400, { type: "error", error: { type: "invalid_request_error", message: "no" } }));
    await agents.ask("talker", "hello");
    agents.upstream.reset();
    agents.upstream.answerAll(never());
    const { clientRequestId } = await agents.client.start("hello", {}, { agentId: "talker" });
    await agents.upstream.request(0);
    expect((await agents.service.call("owner", "POST", "/api/users/owner/stop-turns")).body.stopped).toBe(1);
    await agents.client.ended(clientRequestId);
    await expect.poll(() => endsOf("turn", "talker")).toEqual([1, 1, 1, 0]);
    const [series] = (await read("kind=turn", "owner")).body.series;
    expect(series.durationP95.filter((each: number | null) => each !== null)).toHaveLength(1);
  });

  it("counts requests by area, and as failed those with status 500 or higher alone", async () => {
    for (let call = 0; call < 2; call++) expect((await agents.service.call("owner", "GET", "/api/fails")).status).toBe(500);
    expect((await agents.service.call(undefined, "GET", "/api/counters")).status).toBe(401);
    // Every process of a cluster of one test hears the requests of all.
    const [fine, broken] = await endsOf("request", "failing");
    expect([fine, broken >= 2]).toEqual([0, true]);
    const [completed, failed] = await endsOf("request", "measurements");
    expect([completed > 0, failed]).toEqual([true, 0]);
  });

  it("has a series for each kind without a kind", async () => {
    const { body } = await read("step=day", "owner");
    expect(body.series.map(({ value }: any) => value).toSorted()).toEqual(["request", "turn"]);
    expect(body.timeZone).toBe("UTC");
    for (const { completed, durationP50 } of body.series)
      expect([completed.length, durationP50.length]).toEqual([body.steps.length, body.steps.length]);
  });

  it("is for the owner alone", async () => {
    const asked = [await read("", "member"), await read("", "service"), await read("")];
    expect(asked.map(({ status }) => status)).toEqual([403, 403, 401]);
  });

  it.each(["kind=node", "step=week", "from=yesterday", "from=2030-02-30T00:00:00Z", "top=0", "top=21", "by=model"])(
    "refuses %s",
    async (query) => {
      expect(await read(query, "owner")).toMatchObject({ status: 400, body: { code: "invalid_request" } });
    },
  );

  it("refuses a time with too many steps", async () => {
    const { status, body } = await read("step=minute&from=2020-01-01T00:00:00Z", "owner");
    expect([status, body.code]).toEqual([400, "too_many_steps"]);
  });
});

it("a service counts turns, workflow runs, webhook events and requests over restarts", async () => {
  const place = temporaryFolder();
  for (const [name, value] of Object.entries({
    "agents/helper/agent.json": {
      ...{ name: "Helper", provider: "demo" },
      webhooks: { enabled: true, events: { deploy: { promptTemplate: "go", toolIds: [] } } },
    },
    "workflows/fails.json": { nodes: { stop: { type: "fail", with: { message: "no" } } } },
  })) {
    mkdirSync(dirname(join(place.path, name)), { recursive: true });
    writeFileSync(join(place.path, name), JSON.stringify(value));
  }
  let owner: Record<string, string>;
  {
    await using service = await startPortico({ cwd: place.path, hasOwnProcess: true });
    const tokens = JSON.parse(service.read("credentials.json")) as Record<string, string>;
    owner = { "x-agent-service-token": tokens["agentServiceToken"]! };
    const post = async (url: string, headers: Record<string, string>, body: object) => {
      const sent = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) };
      return (await fetch(url, sent)).status;
    };
    const hook = `${service.url("agent")}/api/webhook/helper`;
    const bearer = { authorization: `Bearer ${tokens["agentServiceToken"]}` };
    expect(await post(hook, bearer, { event: "deploy" })).toBeLessThan(300);
    expect(await post(hook, bearer, { event: "unknown" })).toBeGreaterThanOrEqual(400);
    expect(await post(hook, { authorization: "Bearer wrong" }, { event: "deploy" })).toBe(401);
    const workflow = { "x-workflow-service-token": tokens["workflowServiceToken"]! };
    expect(await post(`${service.url("workflow")}/api/workflow/webhook?id=fails`, workflow, {})).toBeLessThan(300);
    const ends = async () => {
      const asked = await fetch(`${service.url("agent")}/api/measurements/work?step=day`, { headers: owner });
      const { series } = (await asked.json()) as { series: any[] };
      return Object.fromEntries(series.filter(({ value }) => value !== "request").map((one) => [one.value, sums(one)]));
    };
    await expect.poll(ends).toEqual({ turn: [1, 0, 0, 0], run: [0, 1, 0, 0], webhook: [1, 2, 0, 0] });
    service.signal("SIGTERM");
    await service.exited;
  }
  await using service = await startPortico({ cwd: place.path, hasOwnProcess: true });
  const asked = await fetch(`${service.url("agent")}/api/measurements/work?step=day`, { headers: owner });
  const { series } = (await asked.json()) as { series: any[] };
  expect(series.map(({ value }) => value).toSorted()).toEqual(["request", "run", "turn", "webhook"]);
  expect(sums(series.find(({ value }) => value === "webhook"))).toEqual([1, 2, 0, 0]);
  place.remove();
});
