import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { startPortico, temporaryFolder } from "../../harness/portico-process.ts";

/** A run of it asks the model twice: once for a node, once for an agent's turn. */
const FILES = {
  "workflows/both.json": {
    nodes: {
      classify: { type: "model", with: { prompt: "Hello" } },
      reply: { type: "agent", needs: ["classify"], with: { agent: "support", prompt: "Hello" } },
    },
  },
  "agents/support/agent.json": { name: "Support" },
};

it("GET /metrics on the agent service, with its token, in Prometheus text format (open points 4)", async () => {
  using folder = { ...temporaryFolder(), [Symbol.dispose]: () => folder.remove() };
  for (const [name, value] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder.path, name)), { recursive: true });
    writeFileSync(join(folder.path, name), JSON.stringify(value));
  }
  await using service = await startPortico({
    cwd: folder.path,
    config: { agent: { tokens: [{ token: "scraper-token-0123456789", role: "service" }] } },
  });
  const { agentServiceToken, workflowServiceToken } = JSON.parse(service.read("credentials.json")) as Record<string, string>;
  const get = (path: string, token?: string) =>
    fetch(`${service.url("agent")}${path}`, token === undefined ? {} : { headers: { "x-agent-service-token": token } });
  expect((await get("/metrics")).status).toBe(401);
  expect((await get("/metrics", "wrong")).status).toBe(401);

  const safeToken = await service.token("demo");
  // Converted, and passed on unchanged.
  for (const path of ["/chat/completions", "/messages"]) {
    const answer = await fetch(`${service.url("proxy")}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": safeToken },
      body: JSON.stringify({ model: "demo", max_tokens: 100, messages: [{ role: "user", content: "hunter2" }] }),
    });
    expect(answer.status).toBe(200);
  }
  const url = `${service.url("workflow")}/api/workflow/webhook?id=both`;
  await fetch(url, { method: "POST", headers: { "x-workflow-service-token": workflowServiceToken! } });
  await expect
    .poll(async () => (await get("/metrics", agentServiceToken)).text(), { timeout: 30_000 })
    .toMatch(/^gen_ai_client_tokens_total\{.*source="agent"\} \d+$/m);
  await get("/api/runs", agentServiceToken);
  await get("/api/invented-path", agentServiceToken);

  const answer = await get("/metrics", "scraper-token-0123456789");
  const text = await answer.text();
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, expect.stringMatching(/^text\/plain; version=/)]);
  for (const line of [
    /^http_server_request_duration_seconds_count\{area="conversations-runs",route="conversations-runs.runs",method="GET",status="200"\} 1$/m,
    /^http_server_request_duration_seconds_count\{area="model-proxy",route="model-proxy.[a-zA-Z]+",method="POST",status="200"\} 1$/m,
    /^gen_ai_client_operation_duration_seconds_count\{provider="demo",model="demo",source="proxy"\} 2$/m,
    /^gen_ai_client_operation_duration_seconds_count\{provider="demo",model="demo",source="workflow"\} 1$/m,
    /^gen_ai_client_operation_duration_seconds_count\{provider="demo",model="demo",source="agent"\} 1$/m,
    ...["proxy", "workflow", "agent"].flatMap((source) =>
      ["input", "output"].map(
        (type) =>
          new RegExp(
            `^gen_ai_client_tokens_total\\{provider="demo",model="demo",type="${type}",source="${source}"\\} [1-9]`,
            "m",
          ),
      ),
    ),
    /^process_resident_memory_bytes \d+$/m,
  ]) {
    expect(text).toMatch(line);
  }
  for (const secret of ["hunter2", "invented-path", safeToken, agentServiceToken!]) expect(text).not.toContain(secret);
});
