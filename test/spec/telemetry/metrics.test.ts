import { expect, it } from "vitest";
import { startPortico } from "../../harness/portico-process.ts";

it("GET /metrics on the agent service, with its token, in Prometheus text format (open points 4)", async () => {
  await using service = await startPortico({
    config: { agent: { tokens: [{ token: "scraper-token-0123456789", role: "service" }] } },
  });
  const { agentServiceToken } = JSON.parse(service.read("credentials.json")) as { agentServiceToken: string };
  const get = (path: string, token?: string) =>
    fetch(`${service.url("agent")}${path}`, token === undefined ? {} : { headers: { "x-agent-service-token": token } });
  expect((await get("/metrics")).status).toBe(401);
  expect((await get("/metrics", "wrong")).status).toBe(401);

  const safeToken = await service.token("demo");
  // Converted, so that the proxy reads what was used; bytes that pass untouched are not read.
  await fetch(`${service.url("proxy")}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": safeToken },
    body: JSON.stringify({ model: "demo", messages: [{ role: "user", content: "hunter2" }] }),
  });
  await get("/api/runs", agentServiceToken);
  await get("/api/invented-path", agentServiceToken);

  const answer = await get("/metrics", "scraper-token-0123456789");
  const text = await answer.text();
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, expect.stringMatching(/^text\/plain; version=/)]);
  for (const line of [
    /^http_server_request_duration_seconds_count\{area="conversations-runs",route="conversations-runs.runs",method="GET",status="200"\} 1$/m,
    /^http_server_request_duration_seconds_count\{area="model-proxy",route="model-proxy.[a-zA-Z]+",method="POST",status="200"\} 1$/m,
    /^gen_ai_client_tokens_total\{provider="demo",model="demo",type="input"\} \d+$/m,
    /^process_resident_memory_bytes \d+$/m,
  ]) {
    expect(text).toMatch(line);
  }
  for (const secret of ["hunter2", "invented-path", safeToken, agentServiceToken]) expect(text).not.toContain(secret);
});
