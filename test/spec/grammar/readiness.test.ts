import { createApp, defineAdapter, definePlugin, definePort, ports } from "@portico/core";
import { probes } from "@portico/operator/probes";
import { expect, it } from "vitest";
import * as v from "valibot";

const thing = definePort<object>("test/thing");

async function appOf(...checks: readonly ports.ReadinessCheck[]) {
  const adapter = defineAdapter({
    name: "test/thing",
    port: thing,
    needs: { readiness: ports.readiness },
    open: ({ readiness }) => {
      for (const check of checks) readiness.add(check);
      return {};
    },
  });
  const app = await createApp({ name: "probed", adapters: [adapter()], plugins: [probes({ surface: "agent" })] });
  return {
    app,
    readiness: app.port(ports.readiness),
    async ask() {
      const answer = await app.fetch(new Request("http://agent/readyz"));
      return [answer.status, await answer.json()];
    },
  };
}

it("an app without checks is ready", async () => {
  const { app, ask } = await appOf();
  expect(await ask()).toEqual([200, { status: "ready" }]);
  await app.close();
});

it("readyz names every check of an adapter that fails, in their order, and is ready when all pass", async () => {
  const reasons: (string | undefined)[] = [undefined, "away", "late"];
  const { app, ask } = await appOf(
    ...["first", "second", "third"].map((name, at) => ({
      name,
      reason: at === 1 ? () => reasons[at] : async () => reasons[at],
    })),
  );
  expect(await ask()).toEqual([503, { status: "service_not_ready", reason: "second: away; third: late" }]);
  reasons[1] = undefined;
  expect(await ask()).toEqual([503, { status: "service_not_ready", reason: "third: late" }]);
  reasons[2] = undefined;
  expect(await ask()).toEqual([200, { status: "ready" }]);
  await app.close();
});

it("a check that throws fails without its message, and one that never answers fails, too", async () => {
  const { app, ask } = await appOf(
    { name: "throwing", reason: () => Promise.reject(new Error("postgres://user:secret@host")) },
    { name: "throwing at once", reason: () => expect.fail("secret") },
    { name: "silent", reason: () => new Promise(() => {}) },
  );
  expect(await ask()).toEqual([
    503,
    {
      status: "service_not_ready",
      reason: "throwing: the check failed; throwing at once: the check failed; silent: no answer in time",
    },
  ]);
  await app.close();
});

it("two checks cannot have one name, and a name is free when its check is removed", async () => {
  const { app, readiness, ask } = await appOf();
  const remove = readiness.add({ name: "store", reason: () => "away" });
  expect(() => readiness.add({ name: "store", reason: () => undefined })).toThrow('"store"');
  for (const name of ["", "x".repeat(65)]) expect(() => readiness.add({ name, reason: () => undefined })).toThrow("1-64");
  remove();
  readiness.add({ name: "store", reason: () => undefined });
  remove();
  expect(await ask()).toEqual([200, { status: "ready" }]);
  expect(() => readiness.add({ name: "store", reason: () => undefined })).toThrow('"store"');
  await app.close();
});

it("a plugin can add checks, too", async () => {
  const picky = definePlugin({
    name: "picky",
    config: v.strictObject({}),
    needs: { readiness: ports.readiness },
    contract: {},
    setup({ readiness }) {
      readiness.add({ name: "picky", reason: () => "not today" });
      return {};
    },
  });
  await using app = await createApp({ name: "probed", plugins: [probes({ surface: "agent" }), picky({})] });
  const answer = await app.fetch(new Request("http://agent/readyz"));
  expect(await answer.json()).toEqual({ status: "service_not_ready", reason: "picky: not today" });
});

it("a check is not asked while the host itself is not ready", async () => {
  let asked = 0;
  await using app = await createApp({ name: "probed", plugins: [probes({ surface: "agent", isReady: () => "stopping" })] });
  app.port(ports.readiness).add({
    name: "counted",
    reason() {
      asked++;
      return undefined;
    },
  });
  const answer = await app.fetch(new Request("http://agent/readyz"));
  expect([answer.status, await answer.json(), asked]).toEqual([503, { status: "service_not_ready", reason: "stopping" }, 0]);
});
