import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type WorkflowFolder, type WorkflowProcess, workflowFolder } from "../../harness/workflow-process.ts";

const greet = `
parameters: { type: object, required: [name], properties: { name: { type: string } } }
nodes:
  greet:
    type: model
    with: { provider: demo, model: demo, prompt: "\${{ parameters.name }}" }
outputs: { greeting: "\${{ nodes.greet.output.text }}" }
`;
const asking = {
  nodes: { ask: { type: "agent", with: { agent: "helper", prompt: "Hello" } } },
  outputs: { answer: "${{ nodes.ask.output.text }}" },
};

// Some tests start a service twice.
vi.setConfig({ testTimeout: 60_000 });

let folder: WorkflowFolder;
beforeEach(() => {
  folder = workflowFolder();
  folder.deploy("greet.yaml", greet);
});
afterEach(() => folder[Symbol.dispose]());

function agent(id: string, definition: object): void {
  mkdirSync(join(folder.path, "agents", id), { recursive: true });
  writeFileSync(join(folder.path, "agents", id, "agent.json"), JSON.stringify(definition));
}

const statusOf = async (service: WorkflowProcess, path: string, headers: Record<string, string> = {}) =>
  (await fetch(service.url("workflow") + path, { headers })).status;

/** A process so much later, in which a minute passes at once. */
const after = (days: number) => `
  const { now } = Date, { setTimeout } = globalThis;
  Date.now = () => now() + ${days} * 86_400_000;
  globalThis.setTimeout = (run, ms, ...given) => setTimeout(run, ms === 60_000 ? 1 : ms, ...given);
`;

describe.each([
  ["workflow", ["workflow"]],
  ["local", ["proxy", "workflow", "agent"]],
])("portico start %s (open points 1)", (preset, listeners) => {
  it("has its own listeners alone, and plays definitions with the offline model", async () => {
    await using service = await folder.start(preset);
    expect(Object.keys(service.ready.listeners)).toEqual(listeners);
    expect(service.url("workflow")).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const runId = await service.trigger("greet", { name: "Ada" });
    expect(await service.until("greet", runId, "completed")).toMatchObject({
      finalOutputs: { greeting: "You said: Ada (This is the offline demo model.)" },
    });
  });

  it("plays agent nodes with the agents of agentsDir", async () => {
    agent("helper", { name: "Helper" });
    folder.deploy("asking.json", asking);
    await using service = await folder.start(preset);
    const runId = await service.trigger("asking");
    expect(await service.until("asking", runId, "completed")).toMatchObject({
      finalOutputs: { answer: "You said: Hello (This is the offline demo model.)" },
    });
  });
});

describe("portico start workflow", () => {
  it("makes the service token once, keeps it, and shows it in no log", async () => {
    let token: string;
    {
      await using first = await folder.start("workflow", { hasOwnProcess: true });
      token = first.token("workflowServiceToken");
      expect(token).toMatch(/^workflow_[\w-]{43}$/);
      expect(first.stdout() + first.stderr()).not.toContain(token);
      expect((await first.call("GET", "/api/workflows")).status).toBe(200);
      await first.stop();
    }
    await using second = await folder.start("workflow");
    expect(second.token("workflowServiceToken")).toBe(token);
  });

  it("uses the token of the settings, and then creates none", async () => {
    await using service = await folder.start("workflow", { env: { WORKFLOW_SERVICE_TOKEN: "token-of-the-settings" } });
    expect((await service.call("GET", "/api/workflows")).status).toBe(200);
    expect(service.token("workflowServiceToken")).toBeUndefined();
  });

  it("answers 401 to a wrong or missing token, /metrics included; probes need none (4)", async () => {
    await using service = await folder.start("workflow");
    const token = { "x-workflow-service-token": service.token("workflowServiceToken") };
    const wrong = { "x-workflow-service-token": "workflow_wrong" };
    const foreign = { "x-workflow-service-token": service.token("agentServiceToken") };
    for (const path of ["/api/workflows", "/metrics"]) {
      for (const headers of [{}, wrong, foreign]) expect(await statusOf(service, path, headers), path).toBe(401);
      expect(await statusOf(service, path, token), path).toBe(200);
    }
    expect(await statusOf(service, "/healthz")).toBe(200);
    expect(await statusOf(service, "/readyz")).toBe(200);
    expect((await service.call("GET", "/metrics")).body).toContain("http_server_request_duration_seconds");
  });

  it("without agents refuses definitions with agent nodes, in a sentence", async () => {
    folder.deploy("asking.json", asking);
    await using service = await folder.start("workflow", { hasOwnProcess: true });
    expect((await service.call("GET", "/api/workflows")).body.workflows).toMatchObject([{ id: "greet" }]);
    expect(service.stderr()).toContain("No agents are configured in this instance");
  });

  it("keeps runs for 90 days after their end, or as workflow.keepRuns says", async () => {
    const runAt = async (days: number) => {
      await using service = await folder.start("workflow", { before: after(days) });
      const runId = await service.trigger("greet", { name: "Ada" });
      await service.until("greet", runId, "completed");
      await service.stop();
      return runId;
    };
    const shownAt = async (days: number, wanted: readonly string[], env: Record<string, string> = {}) => {
      await using service = await folder.start("workflow", { before: after(days), env });
      const shown = async () =>
        (await service.call("GET", "/api/workflow/greet/runs")).body.runs.map(({ runId }: { runId: string }) => runId);
      await expect.poll(shown, { timeout: 30_000 }).toEqual(wanted);
      await service.stop();
    };
    const [first, second, third] = [await runAt(0), await runAt(5), await runAt(60)];
    await shownAt(91, [third, second]);
    await shownAt(91, [third], { PORTICO_WORKFLOW_KEEP_RUNS: "80d" });
    expect(first).not.toBe(second);
  });

  it("refuses to start with an invalid time to keep runs", async () => {
    for (const keepRuns of ["soon", "5m", 90]) {
      const config = { workflow: { keepRuns } };
      await expect(folder.start("workflow", { config })).rejects.toThrow(/ended with 78: workflow\.keepRuns: expected /);
    }
    await using _service = await folder.start("workflow", { config: { workflow: { keepRuns: "forever" } } });
  });

  it("is called by pages of workflow.allowedOrigins alone", async () => {
    await using service = await folder.start("workflow", { config: { workflow: { allowedOrigins: ["https://desk.example"] } } });
    const origin = (text: string) => service.call("GET", "/api/workflows", undefined, { origin: text });
    expect((await origin("https://desk.example")).status).toBe(200);
    expect(await origin("https://evil.example")).toMatchObject({ status: 403, body: { error: "origin_not_allowed" } });
  });
});

describe("the agent service beside it", () => {
  const call = async (service: WorkflowProcess, path: string, token: string, body?: object) => {
    const answer = await fetch(service.url("agent") + path, {
      method: body ? "POST" : "GET",
      headers: { "x-agent-service-token": token, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as any };
  };

  it.each(["local", "agent"])("of preset %s answers 404 to everything under /api/workflow (open points 4)", async (preset) => {
    await using service = await folder.start(preset);
    const token = service.token("agentServiceToken");
    for (const path of ["/api/workflow", "/api/workflow/greet/runs", "/api/workflow/events?runId=x", "/api/workflow/run"]) {
      expect((await call(service, path, token)).status, path).toBe(404);
      expect((await call(service, path, token, {})).status, path).toBe(404);
    }
  });

  it("without agents reads attachments that users uploaded on the same instance (4.5)", async () => {
    folder.deploy("take.json", {
      nodes: { take: { type: "attachment", with: { attachment: "${{ parameters.attachment }}" } } },
    });
    let attachment: string;
    let executionGrantId: string;
    {
      await using local = await folder.start("local");
      const token = local.token("agentServiceToken");
      const body = new FormData();
      body.append("file", new Blob(["A note"], { type: "text/plain" }), "note.txt");
      const headers = { "x-agent-service-token": token };
      const uploaded = await fetch(`${local.url("agent")}/api/attachments`, { method: "POST", headers, body });
      attachment = ((await uploaded.json()) as { fileReference: string }).fileReference;
      const granted = await call(local, "/api/execution-grants", token, { workflowId: "take" });
      executionGrantId = granted.body.executionGrantId;
    }
    await using service = await folder.start("workflow");
    const run = { executionGrantId, idempotencyKey: "1", workflowId: "take", parameters: { attachment } };
    const { runId } = (await service.call("POST", "/api/workflow/run", run)).body;
    const { files } = await service.until("take", runId, "completed");
    expect(files).toMatchObject([{ name: "note.txt", size: 6 }]);
  });

  it("issues execution grants only to the owner (open points 8)", async () => {
    const tokens = [
      { token: "owner-token", userId: "olivia", role: "owner" },
      { token: "member-token", userId: "max", role: "member" },
    ];
    await using service = await folder.start("local", { config: { agent: { tokens } } });
    const order = (token: string, workflowId: string) => call(service, "/api/execution-grants", token, { workflowId });
    expect((await order("member-token", "greet")).status).toBe(403);
    expect((await order("nobody", "greet")).status).toBe(401);
    expect((await order("owner-token", "nope")).status).toBe(404);
    const { status, body } = await order("owner-token", "greet");
    expect(status).toBe(201);
    const { executionGrantId } = body;
    const run = { executionGrantId, idempotencyKey: "1", workflowId: "greet", parameters: { name: "Ada" } };
    const started = await service.call("POST", "/api/workflow/run", run);
    expect(started).toMatchObject({ status: 200, body: { workflowId: "greet", status: "started" } });
    expect(await service.until("greet", started.body.runId, "completed")).toMatchObject({ userId: "olivia" });
  });
});
