import { createApp, defineContract, defineErrors, definePlugin, type Exchange, type RequestHead, reply } from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { hostKinds, openHost } from "../../harness/hosts.ts";

const errors = defineErrors({ wrong_key: { status: 401 } });
const shared = {
  method: "POST",
  summary: "Takes a small JSON body",
  body: v.strictObject({ n: v.number() }),
  bodyLimit: 20,
  errors,
} as const;

const contract = defineContract(
  { surface: "agent", auth: "key", envelope: (error) => ({ error: error.code }) },
  {
    json: { ...shared, path: "/json", success: reply.json(v.object({ n: v.number() })) },
    exchange: { ...shared, path: "/exchange", success: reply.exchange(["application/json"]) },
    named: {
      method: "GET",
      path: "/named/:name",
      summary: "Has a parameter",
      params: v.object({ name: v.string() }),
      success: reply.empty(),
      errors,
    },
  },
);

const strict = definePlugin({
  name: "strict",
  config: v.strictObject({}),
  needs: {},
  contract,
  guards: () => ({
    key(head: RequestHead) {
      if (head.header("x-key") !== "open sesame") throw errors.wrong_key();
      return "owner";
    },
  }),
  setup: () => ({
    json: ({ body }) => body,
    async exchange({ exchange }: { exchange: Exchange }) {
      for await (const _chunk of exchange.body);
      exchange.respond(200, { "content-type": "application/json" }).end("{}");
    },
    named() {},
  }),
});

const KEY = { "x-key": "open sesame" };
const JSON_TYPE = { "content-type": "application/json" };
const LONG = JSON.stringify({ n: 1, text: "x".repeat(40) });

describe.each(hostKinds)("the checks on a %s host", (kind) => {
  // Each row mends what the row before was refused for.
  const rows = [
    ["401 comes first", { method: "DELETE", headers: {}, body: LONG }, 401],
    ["then 405", { method: "DELETE", headers: KEY, body: LONG }, 405],
    ["then 415", { method: "POST", headers: { ...KEY, "content-type": "text/plain" }, body: LONG }, 415],
    ["then 413", { method: "POST", headers: { ...KEY, ...JSON_TYPE }, body: LONG }, 413],
    ["then 400 for what is no JSON", { method: "POST", headers: { ...KEY, ...JSON_TYPE }, body: "{" }, 400],
    ["then 400 for what does not fit", { method: "POST", headers: { ...KEY, ...JSON_TYPE }, body: '{"n":"1"}' }, 400],
    ["then the handler", { method: "POST", headers: { ...KEY, ...JSON_TYPE }, body: '{"n":1}' }, 200],
  ] as const;

  it.each(rows)("of a JSON route: %s", async (_rule, init, status) => {
    await using service = await open(kind);
    expect((await service.call("/json", init)).status).toBe(status);
  });

  // Exchange routes read and judge their body themselves, and a body without a declared length is theirs to count.
  const heads = kind === "node" ? rows.slice(0, 4) : rows.slice(0, 3);
  it.each(heads)("of an exchange route: %s", async (_rule, init, status) => {
    await using service = await open(kind);
    expect((await service.call("/exchange", init)).status).toBe(status);
  });

  it("look at the credential before a malformed parameter", async () => {
    await using service = await open(kind);
    expect((await service.call("/named/%E0%A4%A")).status).toBe(401);
    expect((await service.call("/named/%E0%A4%A", { headers: KEY })).status).toBe(400);
    expect((await service.call("/named/x", { headers: KEY })).status).toBe(204);
  });

  it("answer 404 for an unmatched path with and without a credential", async () => {
    await using service = await open(kind);
    expect((await service.call("/nowhere")).status).toBe(404);
    expect((await service.call("/nowhere", { headers: KEY })).status).toBe(404);
  });

  it.each([
    ["application/json", 200],
    ["Application/JSON; charset=utf-8", 200],
    ["application/json ; x=1", 200],
    ["application/jsonp", 415],
    ["text/json", 415],
    ["application/json, text/plain", 415],
  ])("take the media type %o with %i", async (type, status) => {
    await using service = await open(kind);
    expect(
      (await service.call("/json", { method: "POST", headers: { ...KEY, "content-type": type }, body: '{"n":1}' })).status,
    ).toBe(status);
  });
});

async function open(kind: (typeof hostKinds)[number]) {
  const app = await createApp({ name: "checks", plugins: [strict({})] });
  const host = await openHost(kind, app);
  return {
    call: host.call,
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
