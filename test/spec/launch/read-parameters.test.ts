import { flattenPreset, type RouteContract } from "@portico/core";
import { local, readPlatformOptions } from "@portico/presets/local";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpCall } from "../../harness/http-call.ts";
import { type PorticoProcess, startPortico } from "../../harness/portico-process.ts";

const AGENT_TOKEN = "agent-token-0123456789";
const WORKFLOW_TOKEN = "workflow-token-0123456789";
const HEADERS = { "x-agent-service-token": AGENT_TOKEN, "x-workflow-service-token": WORKFLOW_TOKEN };

/** Reads whose parameters the specification fixes, and pages for browsers. They ignore unknown parameters. */
const LENIENT = new Set([
  ...["/v1/models", "/media/:filename", "/approve/:token", "/", "/console/:file"],
  ...["/api/handshake", "/api/agents", "/api/agents/:id/webhooks", "/api/agents/:id/schedule-messages"],
  ...["/api/runs", "/api/runs/:id", "/api/runs/:id/runtime-state", "/api/runs/:id/receipt", "/api/attachments/:attachmentId"],
  ...["/api/workflows", "/api/workflow/events", "/api/workflow/:id/runs", "/api/workflow/:id/runs/:runId"],
]);

const { plugins } = flattenPreset(local(await readPlatformOptions({ autoProviders: false }, { env: {} })));
const strictReads = plugins
  // Probes, metrics and documents are not calls of an area.
  .filter(({ spec }) => !/^(?:probes|metrics|api)-/.test(spec.name))
  .flatMap(({ spec }) => Object.values(spec.contract as Record<string, RouteContract>))
  .filter(({ method, path }) => method === "GET" && !LENIENT.has(path))
  .map(({ surface, path }) => ({ surface, path: path.replaceAll(/:\w+/g, "some-id") }));

let service: PorticoProcess;
beforeAll(async () => {
  service = await startPortico({
    args: ["local"],
    config: {
      shutdownGraceMs: 100,
      agent: { tokens: [{ token: { env: "AGENT" }, userId: "owner", role: "owner" }] },
      workflow: { token: { env: "WORKFLOW" } },
    },
    env: { AGENT: AGENT_TOKEN, WORKFLOW: WORKFLOW_TOKEN },
  });
});
afterAll(() => service?.[Symbol.asyncDispose]());

const read = async (surface: string, path: string) => {
  const reply = await httpCall(service.url(surface), { path, headers: HEADERS });
  const text = await reply.text();
  return { status: reply.status, text };
};

describe.each(strictReads)("GET $path ($surface)", ({ surface, path }) => {
  it("refuses a parameter that it does not know", async () => {
    const { status, text } = await read(surface, `${path}?no_such_parameter=1`);
    expect(status, text).toBe(400);
  });
});

describe.each([
  ["/api/approvals", 200],
  ["/api/runs/search", 200],
  ["/api/conversations", 200],
  ["/api/conversations/some-id/messages", 200],
  ["/api/runs/some-id/trace", 20],
  ["/api/audit", 1000],
] as const)("GET %s", (path, most) => {
  it(`takes a limit of ${most}, and refuses a higher one`, async () => {
    expect((await read("agent", `${path}?limit=${most}`)).status).not.toBe(400);
    const { status, text } = await read("agent", `${path}?limit=${most + 1}`);
    expect(status, text).toBe(400);
  });
});

it("GET /api/runs has no highest limit (4.6), and GET /api/runs/:id/receipt lowers its limit to 100", async () => {
  expect((await read("agent", "/api/runs?limit=100000&no_such_parameter=1")).status).toBe(200);
  expect((await read("agent", "/api/runs/some-id/receipt?limit=101")).status).toBe(404);
});
