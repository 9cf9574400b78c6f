import { createManualClock } from "@portico/adapters/clock/manual";
import { createApp, defineContract, definePlugin, ports, reply } from "@portico/core";
import { testing } from "portico/testing";
import * as v from "valibot";
import { expect, it } from "vitest";

it("preset testing fills every port that a third party's plugin may need, and time stands still", async () => {
  const clock = createManualClock({ startAt: "2031-01-01T00:00:00.000Z" });
  const mine = definePlugin({
    name: "mine",
    config: v.strictObject({}),
    needs: {
      clock: ports.clock,
      ids: ports.ids,
      identity: ports.identity,
      models: ports.models,
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
  expect(await app.port(ports.identity).resolve("owner-token")).toEqual({ userId: "owner", role: "owner" });
  expect(app.port(ports.models).map(({ id }) => id)).toEqual(["demo"]);
  await app.close();
});
