import { type App, createApp, Secret } from "@portico/core";
import { type Client, createClient } from "@portico/core/client";
import { pluginConformance } from "@portico/test/conformance/plugin";
import { testing } from "@portico/presets/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sampleNameContract } from "../src/contract.ts";
import { sampleNamePlugin } from "../src/plugin.ts";

const TOKEN = "a-token-for-the-tests";
const plugin = () => sampleNamePlugin({ token: new Secret(TOKEN) });

// The rules of every plugin: guards, error responses, strict schemas, streams that end.
pluginConformance("sample-name", plugin, {
  extends: testing({}),
  credentials: { holder: { authorization: `Bearer ${TOKEN}` } },
  params: { name: "tea" },
});

describe("sample-name", () => {
  let app: App;
  let client: Client<typeof sampleNameContract>;
  beforeEach(async () => {
    app = await createApp({ name: "test", extends: testing({}), plugins: [plugin()] });
    client = createClient(sampleNameContract, {
      baseURL: "http://sample-name.test",
      headers: { authorization: `Bearer ${TOKEN}` },
      fetch: app.fetch,
    });
  });
  afterEach(() => app.close());

  it("stores added items, and lists them by name", async () => {
    for (const name of ["tea", "coffee"]) await client.add({ body: { name } });
    expect((await client.find({ params: { name: "tea" } })).name).toBe("tea");
    expect((await client.list()).items.map(({ name }) => name)).toEqual(["coffee", "tea"]);
  });

  it("refuses an existing name, and an unknown name", async () => {
    await client.add({ body: { name: "tea" } });
    await expect(client.add({ body: { name: "tea" } })).rejects.toMatchObject({ status: 409, code: "item_exists" });
    await expect(client.find({ params: { name: "milk" } })).rejects.toMatchObject({ status: 404, code: "item_unknown" });
  });

  it("streams items as they are added", async () => {
    const events = await client.watch();
    await client.add({ body: { name: "tea" } });
    for await (const { event, data } of events) {
      expect([event, data.name]).toEqual(["added", "tea"]);
      break;
    }
  });
});
