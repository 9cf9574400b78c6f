import { areaOf, createApp, defineContract, definePlugin, ports, reply } from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";

const contract = defineContract(
  { surface: "desk", auth: "open", envelope: ({ code }) => ({ error: code }) },
  { names: { method: "GET", path: "/names", summary: "Who is here", success: reply.json(v.array(v.unknown())) } },
);

const list = definePlugin({
  name: "list",
  config: v.strictObject({}),
  needs: { areas: ports.areas },
  contract,
  setup: ({ areas }) => ({ names: () => areas.map(({ name, summary, channels }) => [name, summary, Object.keys(channels)]) }),
});

const later = definePlugin({
  name: "later",
  summary: "What comes after it.",
  config: v.strictObject({}),
  needs: {},
  contract: {},
  channels: { talk: { surface: "desk", path: "/talk/", summary: "", hello: v.any(), receives: {}, sends: {} } },
  setup: () => ({}),
});

it("the port areas has what every plugin of the app shows, in their order, those that are set up later included", async () => {
  await using app = await createApp({ name: "desk", plugins: [list({}), later({})] });
  expect(await (await app.fetch(new Request("http://desk/names"))).json()).toEqual([
    ["list", null, []],
    ["later", "What comes after it.", ["talk"]],
  ]);
  expect(app.port(ports.areas)[0]?.contract).toBe(contract);
});

describe("an area declares", () => {
  const shop = definePlugin({
    name: "shop",
    config: v.strictObject({ refunds: v.optional(v.boolean(), true) }),
    needs: {},
    contract: {},
    security: { customer: { type: "http", scheme: "bearer" } },
    capabilities: ({ refunds }) => ["orders", ...(refunds ? ["refunds"] : [])],
    setup: () => ({}),
  });

  it("how its credentials are presented, and what clients can do by its options; nothing where it declares nothing", () => {
    expect(areaOf(shop({}))).toMatchObject({
      security: { customer: { type: "http", scheme: "bearer" } },
      capabilities: ["orders", "refunds"],
    });
    expect(areaOf(shop({ refunds: false })).capabilities).toEqual(["orders"]);
    expect(areaOf(later({}))).toMatchObject({ security: {}, capabilities: [] });
  });

  it("nothing by options that it does not take: the start fails with a sentence", async () => {
    const wrong = shop({ refunds: "yes" } as never);
    await expect(createApp({ name: "x", plugins: [wrong] })).rejects.toThrow(
      'Plugin "shop" was given options that it does not take',
    );
  });
});
