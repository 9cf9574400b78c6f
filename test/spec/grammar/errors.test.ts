import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, defineContract, defineErrors, definePlugin, ports, reply } from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { type HostKind, hostKinds, openHost } from "../../harness/hosts.ts";

const errors = defineErrors({
  guest_unknown: { status: 404, message: "No such guest" },
  house_full: { status: 503, message: "No bed is free", details: { beds: 0 } },
  wrong_key: { status: 401 },
  broken: { status: 500 },
});

const contract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code, message: error.message, ...error.details }) },
  {
    greet: {
      method: "GET",
      path: "/guests/:name",
      summary: "Greet a guest",
      params: v.strictObject({ name: v.string() }),
      success: reply.json(v.object({ text: v.string() })),
      errors,
    },
    typed: {
      method: "GET",
      path: "/typed",
      summary: "Has an envelope of its own",
      success: reply.empty(),
      errors,
      envelope: (error, at) => ({ type: "error", error: { type: error.code, at: `${at.method} ${at.path}` } }),
    },
    save: {
      method: "PUT",
      path: "/guests",
      summary: "Has faults of its own",
      body: v.strictObject({ name: v.string() }),
      success: reply.empty(),
      faults: defineErrors({
        invalid_request: { status: 422, message: "A guest has a name" },
        invalid_json: { status: 400, message: "Not JSON at all" },
      }),
    },
    fail: {
      method: "GET",
      path: "/fail/:how",
      summary: "Fails",
      params: v.object({ how: v.string() }),
      success: reply.empty(),
      errors,
    },
    own: {
      method: "GET",
      path: "/own/:how",
      summary: "Fails, and has a 500 of its own",
      params: v.object({ how: v.string() }),
      success: reply.empty(),
      faults: { internal_error: errors.broken },
    },
    crooked: {
      method: "GET",
      path: "/crooked",
      summary: "Its envelope fails",
      success: reply.empty(),
      errors,
      envelope: () => {
        throw new Error("envelope");
      },
    },
  },
);

const guests = definePlugin({
  name: "guests",
  config: v.strictObject({}),
  needs: {},
  contract,
  setup: () => ({
    greet({ params, fail }) {
      if (params.name === "full") throw fail.house_full("Tonight no bed is free", { until: "tomorrow" });
      throw fail.guest_unknown();
    },
    typed: ({ fail }) => {
      throw fail.guest_unknown();
    },
    save() {},
    fail({ params, fail }) {
      switch (params.how) {
        case "unknown":
          throw new TypeError("the database password is hunter2");
        case "text":
          throw "hunter2";
        case "nothing":
          throw undefined;
        case "full":
          throw new Error("hunter2", { cause: Object.assign(new Error("hunter2"), { code: "ENOSPC" }) });
        case "away":
          throw new ports.RecordsUnavailable("hunter2");
        case "files":
          throw fail.broken(undefined, {}, Object.assign(new Error("hunter2"), { code: "EMFILE" }));
        case "cause":
          throw fail.house_full(undefined, {}, new RangeError("hunter2"));
        default:
          throw fail.wrong_key(undefined, {}, new Error("everyday"));
      }
    },
    own() {
      throw new ports.RecordsUnavailable("hunter2");
    },
    crooked: ({ fail }) => {
      throw fail.guest_unknown();
    },
  }),
});

describe.each(hostKinds)("errors on a %s host", (kind) => {
  it("are rendered by the contract's envelope, with message and details", async () => {
    await using service = await open(kind);
    expect(await shown(service.call("/guests/bob"))).toEqual([404, { error: "guest_unknown", message: "No such guest" }]);
    expect(await shown(service.call("/guests/full"))).toEqual([
      503,
      { error: "house_full", message: "Tonight no bed is free", beds: 0, until: "tomorrow" },
    ]);
  });

  it("are rendered by the route's envelope where it has one, which knows the place", async () => {
    await using service = await open(kind);
    expect(await shown(service.call("/typed?x=1"))).toEqual([
      404,
      { type: "error", error: { type: "guest_unknown", at: "GET /typed" } },
    ]);
  });

  it("of the grammar are replaced by the area's own", async () => {
    await using service = await open(kind);
    const save = (body: string) =>
      service.call("/guests", { method: "PUT", body, headers: { "content-type": "application/json" } });
    expect(await shown(save('{"nam":"Ada"}'))).toEqual([
      422,
      expect.objectContaining({ error: "invalid_request", message: "A guest has a name" }),
    ]);
    expect(await shown(save("{"))).toEqual([400, { error: "invalid_json", message: "Not JSON at all" }]);
  });

  it("carry a JSON content type, a length and the request's id", async () => {
    await using service = await open(kind);
    const response = await service.call("/guests/bob");
    const body = await response.text();
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(response.headers.get("content-length")).toBe(String(body.length));
    expect(response.headers.get("x-portico-request-id")).toMatch(/^req_[A-Za-z0-9]+$/);
  });

  it("on an unmatched path are the surface's 404 in the first contract's envelope", async () => {
    await using service = await open(kind);
    for (const path of ["/nowhere", "/", "/guests/bob/more", "/guests/", "/GUESTS/bob", "/%67uests/bob/x"]) {
      expect([path, ...(await shown(service.call(path)))]).toEqual([path, 404, { error: "not_found", message: "Not found" }]);
    }
  });

  it("on a known path with another method are 405, with every method that is allowed", async () => {
    await using service = await open(kind);
    const response = await service.call("/guests/bob", { method: "DELETE" });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    expect(await response.json()).toMatchObject({ error: "method_not_allowed" });
    expect((await service.call("/guests", { method: "GET" })).headers.get("allow")).toBe("PUT");
    expect((await service.call("/guests", { method: "OPTIONS" })).status).toBe(405);
  });

  it.each(["unknown", "text", "nothing"])(
    "that nobody declared (%s) are hidden with 500, and logged with the request's id",
    async (how) => {
      await using service = await open(kind);
      const response = await service.call(`/fail/${how}`);
      expect([response.status, await response.json()]).toEqual([500, { error: "internal_error", message: "Internal error" }]);
      expect(service.telemetry.lines).toMatchObject([
        {
          level: "error",
          message: "guests.fail failed: internal_error",
          fields: { request: response.headers.get("x-portico-request-id") },
        },
      ]);
      expect(JSON.stringify(service.telemetry.lines)).not.toContain("hunter2");
    },
  );

  it("that a shortage caused are 503 and say of what, also where an area has a 500 of its own", async () => {
    await using service = await open(kind);
    expect(await shown(service.call("/fail/full"))).toEqual([503, { error: "storage_full", message: "The disk is full" }]);
    expect(await shown(service.call("/fail/files"))).toEqual([503, { error: "broken", message: "Too many files are open" }]);
    expect(JSON.stringify(service.telemetry.lines)).not.toContain("hunter2");
  });

  it("of a store that cannot be reached are 503, unless the area has a 500 of its own", async () => {
    await using service = await open(kind);
    expect(await shown(service.call("/fail/away"))).toEqual([
      503,
      { error: "store_unavailable", message: "The service cannot reach its store" },
    ]);
    expect(await shown(service.call("/own/away"))).toEqual([500, { error: "broken", message: "broken" }]);
    expect(JSON.stringify(service.telemetry.lines)).not.toContain("hunter2");
  });

  it("of 500 and more log their cause; what the caller did wrong is everyday life", async () => {
    await using service = await open(kind);
    await service.call("/fail/cause");
    await service.call("/fail/everyday");
    expect(service.telemetry.lines.map(({ cause }) => cause?.name)).toEqual(["RangeError"]);
  });

  it("whose envelope fails still are an answer", async () => {
    await using service = await open(kind);
    expect(await shown(service.call("/crooked"))).toEqual([404, { error: "guest_unknown" }]);
    expect(service.telemetry.lines).toMatchObject([{ message: "guests.crooked has an envelope that failed" }]);
  });

  it("end the request's trace with status and code, by area and route", async () => {
    await using service = await open(kind);
    for (const path of ["/guests/bob", "/nowhere"]) await (await service.call(path)).text();
    expect(service.telemetry.requests.map(({ id: _id, ...rest }) => rest)).toEqual([
      { area: "guests", route: "guests.greet", method: "GET", status: 404, error: "guest_unknown" },
      { area: "agent", route: "unmatched", method: "GET", status: 404, error: "not_found" },
    ]);
  });
});

async function shown(answer: Promise<Response>): Promise<[number, unknown]> {
  const response = await answer;
  return [response.status, await response.json()];
}

async function open(kind: HostKind) {
  const telemetry = createMemoryTelemetry();
  const app = await createApp({ name: "errors", adapters: [memoryTelemetry({ telemetry })], plugins: [guests({})] });
  const host = await openHost(kind, app);
  return {
    telemetry,
    call: host.call,
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
