import { functionTools } from "@portico/adapters/tools/functions";
import { expect, it } from "vitest";
import { type AgentServiceOptions, startAgentService } from "../../harness/agent-app.ts";
import { toolOf } from "../../harness/looped-agents.ts";

const node = { properties: { next: { $ref: "#/$defs/node" } } };
/** Each level of a value doubles the work. */
const doubling = {
  node: { anyOf: [1, 2].map((at) => ({ allOf: [node, { required: [`no${at}`] }] })) },
};
const nested = (levels: number): object => (levels === 0 ? { no1: 1 } : { next: nested(levels - 1) });

/** The demo model gives no arguments to these: its call waits. */
const path = (schema: object, more: object = {}) => ({ patternProperties: { "^path$": schema }, ...more });
const hostile = `${"a".repeat(30)}!`;
const doublings = Array.from({ length: 30 }, (_, at) => [
  `d${at}`,
  { allOf: [1, 2].map(() => ({ $ref: `#/$defs/d${at + 1}` })) },
]);

const schemas = {
  "a pattern of exponential time": [path({ pattern: "^(a+)+$" }), { path: hostile }],
  patternProperties: [
    { patternProperties: { "^(a+)+$": { type: "number" } }, maxProperties: 1 },
    { [hostile]: 1, more: 1 },
  ],
  propertyNames: [{ propertyNames: { pattern: "^(a+)+$" } }, { [hostile]: 1 }],
  "a pattern of quadratic time": [path({ pattern: "a*b$" }), { path: "a".repeat(250_000) }],
  uniqueItems: [path({ uniqueItems: true }), { path: [...Array.from({ length: 9_000 }, (_, at) => ({ at })), { at: 0 }] }],
  "references that double": [
    path({ $ref: "#/$defs/d0" }, { $defs: Object.fromEntries([...doublings, ["d30", { minimum: 1 }]]) }),
    { path: 5 },
  ],
  "a choice of itself": [{ properties: { next: { $ref: "#/$defs/node" } }, $defs: doubling }, { next: nested(60) }],
} satisfies Record<string, [object, object]>;

/** A service whose agent waits for a person to approve a call of a tool with this schema. */
async function waiting(schema: object, more: AgentServiceOptions = {}) {
  const run = async () => "done";
  const tool = {
    ...toolOf("erase", { riskLevel: "critical", requiresConfirmation: true }),
    inputSchema: { type: "object", ...schema },
    run,
  };
  const service = await startAgentService({
    agents: new Map([["looper", { name: "Looper", tools: ["erase"] }]]),
    adapters: [functionTools({ tools: [tool] })],
    ...more,
  });
  const client = await service.connect("member");
  const { clientRequestId } = await client.start("use erase", {}, { agentId: "looper" });
  const { runId } = await client.event("query:started", clientRequestId);
  const approvals = async () => (await service.call("member", "GET", "/api/approvals")).body.approvals;
  await expect.poll(approvals).toHaveLength(1);
  return { service, runId, callId: (await approvals())[0].callId as string };
}

it.each(Object.entries(schemas))(
  "edited arguments of an approval do not delay other requests, and are refused: %s",
  async (_what, [schema, args]) => {
    const { service, runId, callId } = await waiting(schema);
    await using _service = service;
    const body = { decision: "approve", arguments: args };
    const [decided, other] = await Promise.all([
      service.call("member", "POST", `/api/runs/${runId}/approvals/${callId}`, body),
      service.call("member", "GET", "/api/agents"),
    ]);
    expect(decided).toMatchObject({ status: 400, body: { code: "arguments_invalid" } });
    expect(other.status).toBe(200);
    expect((await service.call("member", "POST", `/api/runs/${runId}/approvals/${callId}`, { decision: "reject" })).status).toBe(
      200,
    );
  },
);

it("a request that comes after a check that takes its whole time is answered before it ends", async () => {
  const [schema, args] = schemas["a choice of itself"];
  const { service, runId, callId } = await waiting(schema);
  await using _service = service;
  const order: string[] = [];
  const body = { decision: "approve", arguments: args };
  const decided = service
    .call("member", "POST", `/api/runs/${runId}/approvals/${callId}`, body)
    .then(() => order.push("decided"));
  for (let number = 0; number < 3; number++) {
    await service.call("member", "GET", "/api/agents");
    order.push("listed");
  }
  await decided;
  expect(order).toEqual(["listed", "listed", "listed", "decided"]);
});
