import { createApp } from "@portico/core";
import { probes } from "@portico/operator/probes";
import { expect, it } from "vitest";

it("healthz answers while the process lives, readyz is 503 until ready and once a stop has begun (4)", async () => {
  let isReady = false;
  const app = await createApp({ name: "probed", plugins: [probes({ surface: "agent", isReady: () => isReady })] });
  const ask = async (path: string) => {
    const answer = await app.fetch(new Request(`http://agent${path}`));
    return [answer.status, await answer.json()];
  };

  expect(await ask("/readyz")).toEqual([503, { status: "service_not_ready" }]);
  expect(await ask("/healthz")).toEqual([200, { status: "alive" }]);
  isReady = true;
  expect(await ask("/readyz")).toEqual([200, { status: "ready" }]);
  await app.close();
});

it("several surfaces of one app have probes of their own", async () => {
  const app = await createApp({
    name: "probed",
    plugins: [probes({ surface: "agent" }), probes({ surface: "workflow", isReady: () => false })],
  });

  expect((await app.surface("agent").fetch(new Request("http://agent/readyz"))).status).toBe(200);
  expect((await app.surface("workflow").fetch(new Request("http://workflow/readyz"))).status).toBe(503);
  await app.close();
});
