import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, defineContract, definePlugin, JsonPieces, reply } from "@portico/core";
import * as v from "valibot";
import { expect, it } from "vitest";

const contract = defineContract(
  { surface: "open", auth: "open", envelope: (error) => ({ error: error.code }) },
  { list: { method: "GET", path: "/list", summary: "Numbers", success: reply.json(v.array(v.number())) } },
);

async function open(pieces: () => AsyncIterable<string>) {
  const telemetry = createMemoryTelemetry();
  const plugin = definePlugin({
    name: "pieces",
    config: v.strictObject({}),
    needs: {},
    contract,
    setup: () => ({ list: () => new JsonPieces(pieces()) }),
  });
  const app = await createApp({ name: "pieces", adapters: [memoryTelemetry({ telemetry })], plugins: [plugin({})] });
  return { app, telemetry, get: () => app.fetch(new Request("http://service/list")) };
}

it("a JSON answer in pieces reads like any other", async () => {
  const { app, get, telemetry } = await open(async function* () {
    yield "[1";
    yield ",2]";
  });
  await using _ = app;
  const answer = await get();
  expect(answer.headers.get("content-type")).toContain("application/json");
  expect(await answer.json()).toEqual([1, 2]);
  expect(telemetry.requests).toMatchObject([{ status: 200 }]);
});

it("its source is asked for no more than the reader takes, and told when the reader leaves", async () => {
  let made = 0;
  let isLeft = false;
  const { app, get } = await open(async function* () {
    try {
      for (;;) yield `${made++}`;
    } finally {
      isLeft = true;
    }
  });
  await using _ = app;
  const reader = (await get()).body!.getReader();
  await reader.read();
  await reader.cancel();
  expect(made).toBeLessThan(5);
  expect(isLeft).toBe(true);
});

it("a source that breaks breaks the answer, and is logged without its message", async () => {
  const { app, get, telemetry } = await open(async function* () {
    yield "[1";
    throw new RangeError("secret hunter2");
  });
  await using _ = app;
  await expect((await get()).text()).rejects.toThrow();
  expect(telemetry.requests).toMatchObject([{ status: 200, error: "internal_error" }]);
  expect(telemetry.lines).toMatchObject([{ level: "error", cause: { name: "RangeError" } }]);
  expect(JSON.stringify(telemetry.lines)).not.toContain("hunter2");
});
