import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type PorticoProcess, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

const folder = temporaryFolder();
let service: PorticoProcess;
beforeAll(async () => {
  mkdirSync(join(folder.path, "agents/helper"), { recursive: true });
  writeFileSync(join(folder.path, "agents/helper/agent.json"), JSON.stringify({ name: "Helper", limits: { tokensPerDay: 500 } }));
  service = await startPortico({
    cwd: folder.path,
    config: {
      prices: { currency: "EUR", models: [{ model: "demo", from: "2026-01-01", input: 1_000_000, output: 0 }] },
      limits: { instance: { moneyPerDay: 1_000_000 } },
    },
  });
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  folder.remove();
});

it("portico usage prints what a running service counted, as a table with daily limits, as CSV and as JSON, and refuses unknown fields", async () => {
  expect((await service.run("usage")).stdout).not.toContain("demo");
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
  const table = (await service.run("usage", "--by", "source", "--range", "today")).stdout;
  expect(table).toMatch(/^From .* compared with .* \(days of UTC\)\nsource +COST \(EUR\) +SHARE +BEFORE +CHANGE +CALLS/);
  expect(table).toMatch(/\nproxy +\d+\.0000 +100\.0 % +0\.0000 +new +1 +0 +\d+ +0 +\d+\n\(total\) +\d+\.0000/);
  expect(table).toMatch(
    /Limits of today, until .*T00:00:00\.000Z:\nLIMIT .*\nmoneyPerDay +instance +\d+\.0000 EUR +1000000\.0000 EUR/,
  );
  expect(table).toMatch(/\ntokensPerDay +agent helper +0 +500 +0 %/);
  const csv = (await service.run("usage", "--by", "model", "--csv")).stdout;
  expect(csv).toMatch(
    /^model,calls,[^\r]*cost_EUR,calls_without_price,share_of_cost,before_calls[^\r]*\r\ndemo,1,[^\r]*\r\n\(total\),1,[^\r]*\r\n$/,
  );
  const none = await service.run("usage", "--since", "2026-01-01", "--until", "2026-01-02");
  expect([none.code, none.stdout.split("\n")[0]]).toEqual([0, expect.stringMatching(/^Limits of today/)]);
  for (const args of [
    ["--range", "week"],
    ["--range", "today", "--since", "1h"],
    ["--since", "2026-02-01", "--until", "2026-01-01"],
    ["--csv", "--json"],
    ["--csv", "--by", "model,userId"],
  ])
    expect((await service.run("usage", ...args)).code, args.join(" ")).toBe(64);
  expect((await service.run("usage", "--by", "prompt")).code).toBe(64);
  expect((await service.run("usage", "--step", "week")).code).toBe(64);
});

it("after kills, what the upstream counted is what was recorded, but for calls that are unknown", async () => {
  await using upstream = await startFakeUpstream();
  const place = temporaryFolder();
  mkdirSync(join(place.path, "workflows"));
  const model = { type: "model", with: { prompt: "hello" } };
  const nodes = Object.fromEntries(
    Array.from({ length: 6 }, (_, at) => [`ask${at}`, at === 0 ? model : { ...model, needs: [`ask${at - 1}`] }]),
  );
  writeFileSync(join(place.path, "workflows/ask.json"), JSON.stringify({ name: "Ask", nodes }));
  const provider = {
    id: "main",
    type: "test",
    protocol: "messages",
    baseUrl: upstream.baseUrl,
    models: ["echo-large"],
    credential: "key",
  };
  const options = {
    cwd: place.path,
    hasOwnProcess: true,
    config: { providers: [provider], workflow: { token: "workflow-token-of-usage" } },
  };
  const headers = { "x-workflow-service-token": "workflow-token-of-usage", "content-type": "application/json" };
  for (let life = 0; life < 3; life++) {
    await using running = await startPortico(options);
    await Promise.all(
      Array.from({ length: 10 }, () =>
        fetch(`${running.url("workflow")}/api/workflow/webhook?id=ask`, { method: "POST", headers, body: "{}" }),
      ),
    );
    // In the middle of the work, at another place each time.
    await upstream.request(upstream.requests.length + 5 + 7 * life);
    running.signal("SIGKILL");
    await running.exited;
  }
  await upstream.quiet();
  const { stdout } = await runPortico(["usage", "--by", "source", "--json"], { cwd: place.path });
  const { source, calls, unknown, refused, inputTokens, outputTokens } = JSON.parse(stdout);
  const asked = upstream.requests.length;
  expect([source, refused]).toEqual(["workflow", 0]);
  // A call that was noted and not sent is unknown, too.
  expect(calls).toBeGreaterThanOrEqual(asked);
  expect(calls - asked).toBeLessThanOrEqual(unknown);
  expect(calls - unknown).toBeLessThanOrEqual(asked);
  // All calls are the same, so the tokens tell how many are known.
  const known = calls - unknown;
  expect(known).toBeGreaterThan(0);
  expect([inputTokens % known, outputTokens % known]).toEqual([0, 0]);
  place.remove();
});
