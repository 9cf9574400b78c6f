import { createManualClock } from "@portico/adapters/clock/manual";
import { createLoopback } from "@portico/adapters/realtime/loopback";
import { createMemoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, defineContract, definePlugin, ports, reply } from "@portico/core";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { agentRuntime } from "@portico/plugins/conversations-runs/agent-runtime";
import { testing } from "@portico/presets/testing";
import * as v from "valibot";
import { expect, it, vi } from "vitest";
import { startBody } from "../../harness/agent-app.ts";

it("preset testing fills every port that a third party's plugin may need, and its clock does not advance", async () => {
  const clock = createManualClock({ startAt: "2031-01-01T00:00:00.000Z" });
  const mine = definePlugin({
    name: "mine",
    config: v.strictObject({}),
    needs: {
      agentEngines: ports.agentEngines,
      agents: ports.agents,
      blobs: ports.blobs,
      clock: ports.clock,
      documents: ports.documents,
      engine: ports.engine,
      ids: ports.ids,
      identity: ports.identity,
      log: ports.log,
      models: ports.models,
      realtime: ports.realtime,
      records: ports.records,
      secrets: ports.secrets,
      telemetry: ports.telemetry,
    },
    contract: defineContract(
      { surface: "mine", auth: "open", envelope: (error) => ({ error: error.code }) },
      {
        now: {
          method: "GET",
          path: "/now",
          summary: "The time",
          success: reply.json(v.object({ now: v.string(), id: v.string() })),
        },
      },
    ),
    setup: ({ clock, ids }) => ({ now: () => ({ now: new Date(clock.now()).toISOString(), id: ids.id("x_") }) }),
  });
  const app = await createApp({ name: "mine", extends: testing({ clock }), plugins: [mine({})] });

  const answer = await app.fetch(new Request("http://mine/now"));

  expect(await answer.json()).toMatchObject({ now: "2031-01-01T00:00:00.000Z" });
  expect(await app.port(ports.identity).resolve("owner-token")).toMatchObject({ userId: "owner", role: "owner" });
  expect((await app.port(ports.agents).list()).map(({ id }) => id)).toEqual(["echo"]);
  expect(app.port(ports.models).map(({ id }) => id)).toEqual(["demo"]);
  await app.close();
});

it("an agent service runs on it, with clients in the same process", async () => {
  const loopback = createLoopback();
  await using app = await createApp({
    name: "service",
    extends: testing({ loopback }),
    adapters: [agentRuntime({})],
    plugins: [conversationsRuns({})],
  });
  const client = await loopback.connect({ token: "owner-token", clientInstanceId: "instance-in-process" });
  const output = new Promise((resolve) =>
    client.on("query:complete", (data) => resolve((data as { result: { output: string } }).result.output)),
  );
  const body = startBody(client, "Hello", {}, { agentId: "echo" });
  const answer = await app.fetch(
    new Request("http://service/api/query/start", {
      method: "POST",
      headers: { "content-type": "application/json", "x-agent-service-token": "owner-token" },
      body: JSON.stringify(body),
    }),
  );
  expect(answer.status).toBe(202);
  expect(await output).toBe("Hello");
});

it("preset testing prints failures with their causes, unless a test reads the telemetry itself", async () => {
  const defect = new Error("the cause itself");
  const broken = definePlugin({
    name: "broken",
    config: v.strictObject({}),
    needs: { engine: ports.engine },
    contract: defineContract({ surface: "mine", auth: "open", envelope: (error) => ({ error: error.code }) }, {}),
    setup({ engine }, _options, scope) {
      engine.define("broken", () => Promise.reject(defect), { onInterrupted: "resume" });
      scope.onReady(() => engine.ready());
      return {};
    },
  });
  const printed = vi.spyOn(console, "error").mockImplementation(() => {});
  try {
    const telemetry = createMemoryTelemetry();
    for (const options of [{ telemetry }, {}]) {
      await using app = await createApp({ name: "mine", extends: testing(options), plugins: [broken({})] });
      await app.port(ports.engine).start("broken", "one", {});
      await vi.waitFor(async () => expect((await app.port(ports.engine).status("one"))?.state).toBe("failed"));
    }
    expect(telemetry.lines).toMatchObject([{ message: "Work failed" }]);
    expect(printed.mock.calls).toEqual([
      ["Work failed", { area: expect.stringContaining("engine/"), kind: "broken", id: "one" }, defect],
    ]);
  } finally {
    printed.mockRestore();
  }
});
