import { createApp, defineContract, definePlugin, reply } from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { deepList } from "../../harness/deep-json.ts";
import { type HostKind, hostKinds, openHost } from "../../harness/hosts.ts";

const echo = reply.json(v.unknown());
const contract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code, ...error.details }) },
  {
    named: {
      method: "GET",
      path: "/named/:name/:other",
      summary: "",
      params: v.strictObject({ name: v.string(), other: v.string() }),
      success: echo,
    },
    whole: {
      method: "GET",
      path: "/whole/:n",
      summary: "",
      params: v.object({ n: v.pipe(v.string(), v.toNumber(), v.integer()) }),
      success: echo,
    },
    found: {
      method: "GET",
      path: "/found",
      summary: "",
      query: v.strictObject({ limit: v.optional(v.pipe(v.string(), v.digits()), "50"), tag: v.optional(v.array(v.string())) }),
      success: echo,
    },
    loose: {
      method: "GET",
      path: "/loose",
      summary: "",
      query: v.record(v.string(), v.union([v.string(), v.array(v.string())])),
      success: echo,
    },
    plain: { method: "GET", path: "/plain", summary: "No query is declared", success: echo },
    strict: {
      method: "POST",
      path: "/strict",
      summary: "",
      body: v.strictObject({ n: v.number() }),
      bodyLimit: 100,
      success: echo,
    },
    maybe: { method: "POST", path: "/maybe", summary: "", body: v.optional(v.strictObject({ n: v.number() })), success: echo },
    empty: { method: "DELETE", path: "/empty", summary: "", success: reply.empty() },
    bytes: { method: "POST", path: "/bytes", summary: "", accepts: ["text/plain"], success: reply.bytes() },
    borrowed: { method: "GET", path: "/borrowed", summary: "", success: reply.bytes(302) },
  },
);

const echoes = definePlugin({
  name: "echoes",
  config: v.strictObject({}),
  needs: {},
  contract,
  setup: () => ({
    named: ({ params, head }) => ({ params, head: head.params }),
    whole: ({ params }) => params,
    found: ({ query }) => query,
    loose: ({ query }) => query,
    plain: ({ query }) => ({ query: query === undefined ? "undefined" : "given" }),
    strict: ({ body }) => body,
    maybe: ({ body }) => ({ body: body ?? "none" }),
    empty() {},
    bytes: async ({ request }) => new Response(`${await request.text()}!`, { headers: { "set-cookie": "a=1" } }),
    borrowed: () => Response.redirect("http://elsewhere.test/", 302),
  }),
});

const JSON_TYPE = { "content-type": "application/json" };

describe.each(hostKinds)("input on a %s host", (kind) => {
  it("gives parameters decoded once, to the handler and in the head", async () => {
    await using service = await open(kind);
    const params = { name: "a b/c", other: "100%25" };
    expect(await service.json("/named/a%20b%2Fc/100%2525")).toEqual([200, { params, head: params }]);
    expect(await service.json("/named/%C3%A9/__proto__")).toMatchObject([200, { params: { name: "é", other: "__proto__" } }]);
  });

  it.each(["%", "%zz", "%E0%A4%A", "%ff"])("refuses the malformed percent-escape %s with 400", async (malformed) => {
    await using service = await open(kind);
    expect(await service.json(`/named/${malformed}/x`)).toEqual([400, { error: "invalid_request" }]);
  });

  it("parses parameters with their schema, which may transform them", async () => {
    await using service = await open(kind);
    expect(await service.json("/whole/41")).toEqual([200, { n: 41 }]);
    expect(await service.json("/whole/4.5")).toMatchObject([400, { error: "invalid_request" }]);
  });

  it("gives a query parameter that comes once as a text, one that comes again as a list", async () => {
    await using service = await open(kind);
    expect(await service.json("/loose?a=1&b=2&a=3&c=&d")).toEqual([200, { a: ["1", "3"], b: "2", c: "", d: "" }]);
    expect(await service.json("/found?tag=x&tag=y")).toEqual([200, { limit: "50", tag: ["x", "y"] }]);
    expect(await service.json("/found?limit=1&limit=2")).toEqual([
      400,
      { error: "invalid_request", issues: ["limit: expected string"] },
    ]);
  });

  it("refuses an undeclared query parameter; ignores all if the route declares no parameters", async () => {
    await using service = await open(kind);
    expect(await service.json("/found?limti=1")).toMatchObject([400, { error: "invalid_request" }]);
    expect(await service.json("/plain?x=1")).toEqual([200, { query: "undefined" }]);
  });

  it("takes a parameter named __proto__ for a name like any other, which a schema refuses or leaves out", async () => {
    await using service = await open(kind);
    expect(await service.json("/loose?__proto__=1&__proto__=2&a=3")).toEqual([200, { a: "3" }]);
    expect(await service.json("/found?__proto__=1")).toMatchObject([400, { error: "invalid_request" }]);
  });

  it("refuses a JSON body that nests deeper than 512 levels, before anything else looks at it", async () => {
    await using service = await open(kind);
    const post = (levels: number) =>
      service.json("/maybe", { method: "POST", headers: JSON_TYPE, body: `{"n":${deepList(levels - 1)}}` });
    expect(await post(512)).toEqual([400, { error: "invalid_request", issues: ["n: expected number"] }]);
    for (const levels of [513, 5_000, 500_000]) {
      const issues = ["body: expected at most 512 levels of lists and objects"];
      expect(await post(levels)).toEqual([400, { error: "invalid_request", issues }]);
    }
  });

  it("says which field was expected to be what, and never what came", async () => {
    await using service = await open(kind);
    const [status, body] = await service.json("/strict", { method: "POST", headers: JSON_TYPE, body: '{"n":"hunter2"}' });
    expect([status, body]).toEqual([400, { error: "invalid_request", issues: ["n: expected number"] }]);
  });

  it.each([
    ["broken", "{", "invalid_json"],
    ["empty", "", "invalid_request"],
    ["a byte order mark", '\ufeff{"n":1}', "invalid_json"],
    ["trailing text", '{"n":1}x', "invalid_json"],
    ["an undeclared field", '{"n":1,"m":2}', "invalid_request"],
    ["null", "null", "invalid_request"],
  ])("refuses a body that is %s with 400", async (_what, body, error) => {
    await using service = await open(kind);
    expect(await service.json("/strict", { method: "POST", headers: JSON_TYPE, body })).toMatchObject([400, { error }]);
  });

  it("refuses a body that is not UTF-8 with 400", async () => {
    await using service = await open(kind);
    const body = Buffer.concat([Buffer.from('{"n":1,"x":"'), Buffer.from([0xff]), Buffer.from('"}')]);
    expect(await service.json("/strict", { method: "POST", headers: JSON_TYPE, body })).toEqual([400, { error: "invalid_json" }]);
  });

  it("takes a body of exactly the limit and refuses one byte more, with and without a declared length", async () => {
    await using service = await open(kind);
    const exactly = JSON.stringify({ n: 1 }).padEnd(100);
    const streamed = (text: string) => ({ body: new Blob([text]).stream(), duplex: "half" }) as RequestInit;
    const post = (init: RequestInit) => service.json("/strict", { method: "POST", headers: JSON_TYPE, ...init });
    expect(await post({ body: exactly })).toEqual([200, { n: 1 }]);
    expect(await post(streamed(exactly))).toEqual([200, { n: 1 }]);
    expect(await post({ body: `${exactly} ` })).toEqual([413, { error: "body_too_large" }]);
    expect(await post(streamed(`${exactly} `))).toEqual([413, { error: "body_too_large" }]);
  });

  it("takes a body far larger than any stream's buffer", async () => {
    await using service = await open(kind);
    const body = JSON.stringify({ n: 1 }).padEnd(900_000);
    expect(await service.json("/maybe", { method: "POST", headers: JSON_TYPE, body })).toEqual([200, { body: { n: 1 } }]);
  });

  it("lets a body be left out where its schema does, and asks for the media type of one that is there", async () => {
    await using service = await open(kind);
    expect(await service.json("/maybe", { method: "POST" })).toEqual([200, { body: "none" }]);
    expect(await service.json("/maybe", { method: "POST", headers: JSON_TYPE, body: '{"n":2}' })).toEqual([
      200,
      { body: { n: 2 } },
    ]);
    expect(
      await service.json("/maybe", { method: "POST", headers: { "content-type": "text/plain" }, body: '{"n":2}' }),
    ).toMatchObject([415, {}]);
    expect(await service.json("/strict", { method: "POST" })).toMatchObject([415, {}]);
  });

  it("answers HEAD by the GET route, without the body", async () => {
    await using service = await open(kind);
    const head = await service.call("/named/a/b", { method: "HEAD" });
    expect([head.status, head.headers.get("content-type"), await head.text()]).toEqual([
      200,
      "application/json; charset=utf-8",
      "",
    ]);
    expect((await service.call("/nowhere", { method: "HEAD" })).status).toBe(404);
    expect((await service.call("/strict", { method: "HEAD" })).status).toBe(405);
    expect([(await service.call("/borrowed", { method: "HEAD", redirect: "manual" })).status]).toEqual([302]);
  });

  it("answers 204 with nothing where nothing is declared", async () => {
    await using service = await open(kind);
    const response = await service.call("/empty", { method: "DELETE" });
    expect([response.status, await response.text(), response.headers.get("content-type")]).toEqual([204, "", null]);
  });

  it("hands a bytes route the whole request, and its Response to the caller with the request's id", async () => {
    await using service = await open(kind);
    const response = await service.call("/bytes", { method: "POST", headers: { "content-type": "text/plain" }, body: "hello" });
    expect([response.status, await response.text(), response.headers.get("set-cookie")]).toEqual([200, "hello!", "a=1"]);
    expect(response.headers.get("x-portico-request-id")).toMatch(/^req_/);
  });

  it("sends a Response whose headers cannot be changed", async () => {
    await using service = await open(kind);
    const response = await service.call("/borrowed", { redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual([302, "http://elsewhere.test/"]);
    expect(response.headers.get("x-portico-request-id")).toMatch(/^req_/);
  });
});

async function open(kind: HostKind) {
  const app = await createApp({ name: "input", plugins: [echoes({})] });
  const host = await openHost(kind, app);
  return {
    call: host.call,
    async json(path: string, init?: RequestInit): Promise<[number, unknown]> {
      const response = await host.call(path, init);
      return [response.status, await response.json()];
    },
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
