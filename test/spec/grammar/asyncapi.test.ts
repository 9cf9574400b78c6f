import { areaOf, defineChannel, definePlugin } from "@portico/core";
import { type AsyncAPIDocument, type DescribedArea, toAsyncAPI } from "@portico/core/asyncapi";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { guestContract } from "./derived-contract.ts";

interface Node {
  readonly children: readonly Node[];
}
const node: v.GenericSchema<Node> = v.object({ children: v.array(v.lazy(() => node)) });

const bell = defineChannel({
  surface: "agent",
  path: "/bell/",
  summary: "Who rings",
  hello: v.strictObject({ name: v.string() }),
  receives: { "bell:ring": v.strictObject({ times: v.pipe(v.number(), v.maxValue(3)) }) },
  sends: { "bell:rang": v.object({ by: v.string() }), "bell:tree": node },
});

const guests: DescribedArea = { name: "guests", summary: "Who comes and goes.", contract: guestContract, channels: { bell } };
const info = { title: "Guests", version: "1.2.3" };
const document = toAsyncAPI(info, [guests], {
  security: { "house-key": { type: "apiKey", in: "header", name: "X-Key" } },
  transport: "Over a string between two tins.",
});

describe("the AsyncAPI document", () => {
  it("has one channel per realtime channel and per route that answers with events, by area and key", () => {
    expect([document.asyncapi, document.info, document.defaultContentType]).toEqual(["3.0.0", info, "application/json"]);
    expect(Object.entries(document.channels).map(([id, { address, title }]) => [id, address, title])).toEqual([
      ["guests.bell", "/bell/", "Who rings"],
      ["guests.ticks", "/ticks/{count}", "Ticks"],
    ]);
    expect(document.components.tags).toEqual({ guests: { name: "guests", description: "Who comes and goes." } });
  });

  it("says of a realtime channel how it is connected to, and each event with its payload, in either direction", () => {
    const { description, messages } = document.channels["guests.bell"]!;
    expect(description).toBe("Over a string between two tins.");
    expect(Object.keys(messages)).toEqual(["connect", "bell:ring", "bell:rang", "bell:tree"]);
    expect(messages["bell:ring"]).toEqual({
      name: "bell:ring",
      payload: {
        type: "object",
        properties: { times: { type: "number", maximum: 3 } },
        required: ["times"],
        additionalProperties: false,
      },
    });
    expect(saidBy("guests.bell")).toEqual({
      "guests.bell.connect": ["receive", "connect"],
      "guests.bell.receive": ["receive", "bell:ring"],
      "guests.bell.send": ["send", "bell:rang", "bell:tree"],
    });
  });

  it("says of an event stream its path, method, query and credential, its events, and that it may break", () => {
    const { parameters, messages } = document.channels["guests.ticks"]!;
    expect([parameters, Object.keys(messages)]).toEqual([{ count: {} }, ["error", "tick", "done"]]);
    expect(messages["tick"]?.payload).toEqual({ type: "object", properties: { n: { type: "number" } }, required: ["n"] });
    expect(saidBy("guests.ticks")).toEqual({ "guests.ticks.send": ["send", "tick", "done", "error"] });
    expect(document.operations["guests.ticks.send"]).toMatchObject({ bindings: { http: { method: "GET" } } });
    expect(document.operations["guests.ticks.send"]).not.toHaveProperty("security");

    const kept = {
      ...guestContract,
      ticks: { ...guestContract.ticks, auth: "house-key", query: v.object({ from: v.string() }) },
    };
    const { operations, components } = toAsyncAPI(info, [{ ...guests, contract: kept }], {
      security: { "house-key": { type: "apiKey", in: "header", name: "X-Key" } },
    });
    expect(operations["guests.ticks.send"]).toMatchObject({
      security: [{ $ref: "#/components/securitySchemes/house-key" }],
      bindings: { http: { query: { type: "object", properties: { from: { type: "string" } }, required: ["from"] } } },
    });
    expect(components.securitySchemes).toEqual({ "house-key": { type: "httpApiKey", in: "header", name: "X-Key" } });
  });

  it("leads from every reference to something that is there", () => {
    const found = references(document);
    expect(found.length).toBeGreaterThan(8);
    expect(found.some((reference) => reference.startsWith("#/components/schemas/"))).toBe(true);
    for (const reference of found) expect(lookUp(reference), reference).toBeDefined();
  });

  it("is of one surface where one is named", () => {
    const elsewhere = { ...guests, channels: { bell: { ...bell, surface: "workflow" } } };
    expect(Object.keys(toAsyncAPI(info, [elsewhere], { surface: "workflow" }).channels)).toEqual(["guests.bell"]);
    expect(Object.keys(toAsyncAPI(info, [elsewhere], { surface: "agent" }).channels)).toEqual(["guests.ticks"]);
  });

  it("is made of what a plugin declares, without opening it", () => {
    const plugin = definePlugin({
      name: "door",
      summary: "A bell at a door.",
      config: v.strictObject({}),
      needs: {},
      contract: {},
      channels: { bell },
      setup: () => {
        throw new Error("nobody opens it");
      },
    });
    const { channels, components } = toAsyncAPI(info, [areaOf(plugin({}))]);
    expect([Object.keys(channels), components.tags["door"]?.description]).toEqual([["door.bell"], "A bell at a door."]);
  });
});

/** The operations of a channel: what the service does, and with which messages. */
function saidBy(channel: string): Record<string, string[]> {
  const own = Object.entries(document.operations).filter(([, operation]) => operation.channel.$ref === `#/channels/${channel}`);
  return Object.fromEntries(
    own.map(([id, { action, messages }]) => [id, [action, ...messages.map(({ $ref }) => $ref.split("/").at(-1)!)]]),
  );
}

function references(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => (key === "$ref" ? [String(each)] : references(each)));
}

function lookUp(reference: string): unknown {
  const [, ...keys] = reference.split("/");
  return keys.reduce<unknown>(
    (value, key) => (value as Record<string, unknown> | undefined)?.[key],
    document as AsyncAPIDocument as unknown,
  );
}
