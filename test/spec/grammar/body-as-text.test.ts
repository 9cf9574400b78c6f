import { createApp, defineContract, defineErrors, definePlugin, parseJsonBody, reply } from "@portico/core";
import { createClient } from "@portico/core/client";
import { toOpenAPI } from "@portico/core/openapi";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { type HostKind, hostKinds, openHost } from "../../harness/hosts.ts";

const shared = {
  method: "POST",
  summary: "",
  body: v.strictObject({ n: v.number() }),
  bodyLimit: 40,
  success: reply.json(v.unknown()),
} as const;

const contract = defineContract(
  {
    surface: "agent",
    auth: "open",
    envelope: (error) => ({ error: error.code, message: error.message, ...error.details }),
    faults: defineErrors({
      invalid_json: { status: 400, message: "That is no JSON" },
      invalid_request: { status: 422, message: "That does not fit" },
    }),
  },
  {
    parsed: { ...shared, path: "/parsed" },
    late: { ...shared, path: "/late/:agent", bodyAs: "text", errors: defineErrors({ wrong_key: { status: 401 } }) },
    shown: { ...shared, path: "/shown", bodyAs: "text" },
    maybe: { ...shared, path: "/maybe", body: v.optional(shared.body), bodyAs: "text" },
    told: { ...shared, path: "/told", bodyAs: "text", success: reply.events({ told: v.string() }) },
    plain: { ...shared, path: "/plain", body: v.string(), accepts: ["text/plain"], bodyAs: "text" },
  },
);

const plugin = definePlugin({
  name: "late",
  config: v.strictObject({}),
  needs: {},
  contract,
  setup: () => ({
    parsed: ({ body }) => body,
    late({ body, head, fail }) {
      if (head.header("x-key") !== "open sesame") throw fail.wrong_key();
      return parseJsonBody(contract.late, body);
    },
    shown: ({ body }) => ({ body }),
    maybe: ({ body }) => ({ body }),
    async *told({ body, say }) {
      yield say.told(body ?? "");
    },
    plain: ({ body }) => ({ body }),
  }),
});

const KEY = { "x-key": "open sesame" };
const JSON_TYPE = { "content-type": "application/json" };

describe.each(hostKinds)("a body that is given as text, on a %s host", (kind) => {
  const streamed = (text: string) => ({ body: new Blob([text]).stream(), duplex: "half" }) as RequestInit;
  const long = " ".repeat(41);

  // Each row mends what the row before was refused for.
  it.each<[rule: string, init: RequestInit, status: number, error?: string]>([
    ["405 comes first", { method: "PUT", body: long }, 405],
    ["then 415", { body: long, headers: { "content-type": "text/plain" } }, 415],
    ["then 413 for what is declared", { body: long, headers: JSON_TYPE }, 413],
    ["then 413 for what arrives", { ...streamed(long), headers: JSON_TYPE }, 413],
    ["then what the handler looks at", { body: "{", headers: JSON_TYPE }, 401],
    ["then 400 for what is no JSON", { body: "{", headers: { ...JSON_TYPE, ...KEY } }, 400],
    ["then what does not fit", { body: '{"n":"1"}', headers: { ...JSON_TYPE, ...KEY } }, 422],
    ["then all is well", { body: '{"n":1}', headers: { ...JSON_TYPE, ...KEY } }, 200],
  ])("may be judged after a look at more than the head: %s", async (_rule, init, status) => {
    await using service = await open(kind);
    expect((await service.call("/late/ada", init)).status).toBe(status);
  });

  it.each(["{", "", " \n", "\ufeff{}", '{"n":1,"m":2}', '"é"'])("comes as it was sent: %j", async (body) => {
    await using service = await open(kind);
    expect(await service.json("/shown", { body, headers: JSON_TYPE })).toEqual([200, { body }]);
    expect(await service.json("/shown", { ...streamed(body), headers: JSON_TYPE })).toEqual([200, { body }]);
  });

  it("is empty where its schema lets it be left out and it is, and has its media type otherwise", async () => {
    await using service = await open(kind);
    expect(await service.json("/maybe")).toEqual([200, { body: "" }]);
    expect(await service.json("/shown")).toMatchObject([415, {}]);
    const other = { body: '{"n":1}', headers: { "content-type": "text/plain" } };
    expect(await service.json("/maybe", other)).toMatchObject([415, {}]);
  });

  it("is undefined if it is not UTF-8: the handler's own checks still come before the 400 for invalid JSON", async () => {
    await using service = await open(kind);
    const body = new Uint8Array([0x22, 0xff, 0x22]);
    expect(await service.json("/shown", { body, headers: JSON_TYPE })).toEqual([200, {}]);
    expect(await service.json("/late/ada", { body, headers: JSON_TYPE })).toMatchObject([401, { error: "wrong_key" }]);
    const [status, answer] = await service.json("/late/ada", { body, headers: { ...JSON_TYPE, ...KEY } });
    expect([status, answer]).toMatchObject([400, { error: "invalid_json" }]);
  });

  it("need not be JSON at all", async () => {
    await using service = await open(kind);
    const headers = { "content-type": "text/plain; charset=utf-8" };
    expect(await service.json("/plain", { body: "a: b", headers })).toEqual([200, { body: "a: b" }]);
    expect(await service.json("/plain", { body: "a: b", headers: JSON_TYPE })).toMatchObject([415, {}]);
  });

  it("is there for routes that answer with events, too", async () => {
    await using service = await open(kind);
    const answer = await service.call("/told", { body: "{", headers: JSON_TYPE });
    expect(await answer.text()).toBe('event: told\ndata: "{"\n\n');
  });

  it.each(["{", "null", "[]", "{}", '{"n":"1"}', '{"n":1,"m":2}', '\ufeff{"n":1}', '{"n":1}x', '{"n":1}', ' {"n": 2} '])(
    "is parsed by its handler as any route's body is: %j",
    async (body) => {
      await using service = await open(kind);
      const late = await service.json("/late/ada", { body, headers: { ...JSON_TYPE, ...KEY } });
      expect(late).toEqual(await service.json("/parsed", { body, headers: JSON_TYPE }));
    },
  );

  it("an empty body is invalid JSON", async () => {
    await using service = await open(kind);
    const [status, body] = await service.json("/late/ada", { body: "", headers: { ...JSON_TYPE, ...KEY } });
    expect([status, body]).toEqual([400, { error: "invalid_json", message: "That is no JSON" }]);
  });

  it("is sent by a client as its schema says", async () => {
    await using service = await open(kind);
    const client = createClient(contract, { baseURL: service.origin ?? "http://test", fetch: service.fetch });
    expect(await client.shown({ body: { n: 1 } })).toEqual({ body: '{"n":1}' });
  });
});

it("a body that is given as text is described as any other", () => {
  const { paths } = toOpenAPI({ title: "Late", version: "1" }, { late: contract });
  expect(paths["/shown"]!["post"]!.requestBody).toEqual(paths["/parsed"]!["post"]!.requestBody);
  expect(Object.keys(paths["/shown"]!["post"]!.responses)).toEqual(Object.keys(paths["/parsed"]!["post"]!.responses));
});

async function open(kind: HostKind) {
  const app = await createApp({ name: "late", plugins: [plugin({})] });
  const host = await openHost(kind, app);
  const call = (path: string, init?: RequestInit) => host.call(path, { method: "POST", ...init });
  return {
    origin: host.origin,
    call,
    fetch: (request: Request) => (host.origin === undefined ? app.fetch(request) : fetch(request)),
    async json(path: string, init?: RequestInit): Promise<[number, unknown]> {
      const answer = await call(path, init);
      return [answer.status, await answer.json()];
    },
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
