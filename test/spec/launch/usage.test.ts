import { afterAll, beforeAll, expect, it } from "vitest";
import { type PorticoProcess, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

const folder = temporaryFolder();
let service: PorticoProcess;
beforeAll(async () => {
  service = await startPortico({
    cwd: folder.path,
    config: {
      prices: { currency: "EUR", models: [{ model: "demo", from: "2026-01-01", input: 1_000_000, output: 0 }] },
    },
  });
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  folder.remove();
});

it("portico usage prints what a running service counted, as text and as JSON, and refuses unknown fields", async () => {
  expect((await service.run("usage")).stdout).toBe("");
  const token = (await service.run("token", "issue", "--provider", "demo")).stdout.trim();
  const response = await fetch(`${service.url("proxy")}/messages`, {
    method: "POST",
    headers: { "x-api-key": token, "content-type": "application/json" },
    body: JSON.stringify({ model: "demo", max_tokens: 20, messages: [{ role: "user", content: "hello" }] }),
  });
  const { usage } = (await response.json()) as { usage: { input_tokens: number } };
  const patient = { timeout: 30_000, interval: 200 };
  const lines = async () => (await service.run("usage", "--by", "source,model", "--json")).stdout.trim();
  await expect.poll(lines, patient).toContain('"unknown":0');
  const group = {
    source: "proxy",
    model: "demo",
    calls: 1,
    inputTokens: usage.input_tokens,
    cost: usage.input_tokens,
    currency: "EUR",
  };
  expect(JSON.parse(await lines())).toMatchObject(group);
  expect((await service.run("usage", "--step", "hour")).stdout).toMatch(
    /T\d\d:00:00\.000Z {2}demo {2}1 calls {2}\d+ in {2}\d+ out/,
  );
  expect((await service.run("usage", "--by", "prompt")).code).toBe(64);
  expect((await service.run("usage", "--step", "week")).code).toBe(64);
});
