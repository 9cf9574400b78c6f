import { expect, it } from "vitest";
import { startPortico, temporaryFolder } from "../../harness/portico-process.ts";

it("measurements survive a restart: later calls are added to those of the process before it", async () => {
  const place = temporaryFolder();
  for (const calls of [2, 3]) {
    await using service = await startPortico({ cwd: place.path, hasOwnProcess: true });
    const headers = { "x-api-key": await service.token("demo"), "content-type": "application/json" };
    const body = JSON.stringify({ model: "demo", max_tokens: 9, messages: [{ role: "user", content: "hello" }] });
    for (let call = 0; call < calls; call++)
      await (await fetch(`${service.url("proxy")}/messages`, { method: "POST", headers, body })).text();
    service.signal("SIGTERM");
    await service.exited;
  }
  await using service = await startPortico({ cwd: place.path, hasOwnProcess: true });
  const { agentServiceToken } = JSON.parse(service.read("credentials.json")) as { agentServiceToken: string };
  const asked = await fetch(`${service.url("agent")}/api/measurements?by=source&step=day`, {
    headers: { "x-agent-service-token": agentServiceToken },
  });
  const { series } = (await asked.json()) as { series: { value: string; calls: number[]; durationP95: (number | null)[] }[] };
  expect(series.map(({ value, calls }) => [value, calls.reduce((sum, each) => sum + each, 0)])).toEqual([["proxy", 5]]);
  expect(series[0]?.durationP95.some((each) => each !== null)).toBe(true);
  place.remove();
});
