import { type App, createApp, defineContract, reply } from "@portico/core";
import { CallFailed, type Client, createClient, isCallFailed } from "@portico/core/client";
import * as v from "valibot";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Host, type HostKind, hostKinds, openHost } from "../../harness/hosts.ts";
import { guestContract, guestsPlugin, type Ticking } from "./derived-contract.ts";

describe.each(hostKinds)("a client of a %s host", (kind: HostKind) => {
  let app: App;
  let host: Host;
  let ticking: Ticking;
  let client: Client<typeof guestContract>;
  beforeEach(async () => {
    ticking = { made: 0, returned: 0 };
    app = await createApp({ name: "guests", plugins: [guestsPlugin(ticking)] });
    host = await openHost(kind, app);
    client = createClient(guestContract, {
      baseURL: host.origin ?? "http://test",
      headers: { "x-key": "open sesame" },
      ...(host.origin === undefined && { fetch: app.fetch }),
    });
  });
  afterEach(async () => {
    await host[Symbol.asyncDispose]();
    await app.close();
  });

  it("calls by parameters, query and body, and gives what the contract declares", async () => {
    expect(await client.greet({ params: { name: "A/b é%" }, query: { loud: "yes", tag: ["x", "y&z"] } })).toEqual({
      text: "HELLO A/b é%",
      tags: ["x", "y&z"],
    });
    expect(await client.save({ params: { name: "Ada" }, body: { title: "Lady", age: "36" } })).toEqual({ age: 36 });
    expect(await client.forget()).toBeUndefined();
  });

  it("sends any JSON, including a bare text, and no body if no value is given", async () => {
    expect(await client.say({ body: 'a "text"' })).toBe('a "text"');
    expect(await client.say()).toBe("nothing");
  });

  it("gives the whole Response of routes that move bytes", async () => {
    const picture = await client.picture();
    expect([picture.headers.get("content-type"), [...(await picture.bytes())]]).toEqual(["image/png", [1, 2, 3]]);
    const moved = await client.move({ body: "moved", headers: { "content-type": "text/plain" } });
    expect(await moved.text()).toBe("moved");
  });

  it("gives events one by one as they are asked for", async () => {
    const events = await client.ticks({ params: { count: "2" } });
    expect(await Array.fromAsync(events)).toEqual([
      { event: "tick", data: { n: 1 } },
      { event: "tick", data: { n: 2 } },
      { event: "done", data: null },
    ]);
  });

  it("ends the stream when its reader leaves the loop", async () => {
    for await (const { event } of await client.ticks({ params: { count: "1000000" } })) {
      expect(event).toBe("tick");
      break;
    }
    while (ticking.returned === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(ticking.made).toBeLessThan(1_000_000);
  });

  it("throws the error that a broken stream says last, with its code", async () => {
    const events = await client.ticks({ params: { count: "worn" } });
    await expect(Array.fromAsync(events)).rejects.toMatchObject({ name: "CallFailed", code: "guest_gone", status: 200 });
  });

  it.each([
    ["the code as a text", () => client.greet({ params: { name: "nobody" } }), 404, "guest_unknown", { error: "guest_unknown" }],
    [
      "the code as a type within",
      () => client.save({ params: { name: "x" }, body: { title: "", age: "1" }, headers: { "x-key": "no" } }),
      401,
      "wrong_key",
      { type: "error", error: { type: "wrong_key", message: "wrong_key" } },
    ],
    ["only a message", () => client.say({ body: "boo" }), 422, "rude", { error: "One does not say that" }],
    [
      "a fault of the grammar",
      () => client.say({ body: 1 as never }),
      400,
      "invalid_request",
      { error: "The request does not match its schema" },
    ],
  ])("throws an error whose body has %s, with status, code and body", async (_what, call, status, code, body) => {
    const failure = await call().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(CallFailed);
    expect(failure).toMatchObject({ status, code, body });
  });

  it("asks a function for the headers before each call", async () => {
    let asked = 0;
    const own = createClient(guestContract, {
      baseURL: host.origin ?? "http://test",
      headers: async () => ({ "x-key": ++asked > 1 ? "open sesame" : "not yet" }),
      ...(host.origin === undefined && { fetch: app.fetch }),
    });
    await expect(own.forget()).rejects.toMatchObject({ code: "unknown", status: 401 });
    expect(await own.forget()).toBeUndefined();
  });

  it("stops when its signal aborts", async () => {
    await expect(client.greet({ params: { name: "x" }, signal: AbortSignal.abort() })).rejects.toThrow();
  });
});

describe("a client", () => {
  const answering = (answer: () => Response) => createClient(guestContract, { baseURL: "http://test", fetch: answer });

  it.each(["", ".", ".."])("refuses the parameter %o, which would be another path", async (name) => {
    const calls: Request[] = [];
    const client = createClient(guestContract, {
      baseURL: "http://test",
      fetch(request) {
        calls.push(request);
        return new Response();
      },
    });
    await expect(client.greet({ params: { name } })).rejects.toThrow('Parameter "name" cannot be a segment of a path');
    expect(calls).toEqual([]);
  });

  it("sends one request, for every answer", async () => {
    let calls = 0;
    const client = answering(() => {
      calls++;
      return new Response("<html>Bad gateway</html>", { status: 502 });
    });
    const failure = await client.greet({ params: { name: "x" } }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ status: 502, code: "unknown", body: "<html>Bad gateway</html>" });
    expect((failure as Error).message).toBe("The call failed: unknown (502)");
    expect(calls).toBe(1);
  });

  it("makes only one call, even if no answer comes", async () => {
    let calls = 0;
    const client = answering(() => {
      calls++;
      throw new TypeError("connection refused");
    });
    await expect(client.greet({ params: { name: "x" } })).rejects.toThrow("connection refused");
    expect(calls).toBe(1);
  });

  it("knows its own failures from any other error", async () => {
    const failure: unknown = await answering(() => new Response("{}", { status: 500 }))
      .forget()
      .catch((error: unknown) => error);
    expect([isCallFailed(failure, guestContract.forget), isCallFailed(new Error("x"), guestContract.forget)]).toEqual([
      true,
      false,
    ]);
  });

  it("ignores unknown events, comments and pings", async () => {
    const text =
      ': hello\n\nevent: new\ndata: 1\n\nid: 7\nevent: tick\r\ndata: {\ndata: "n":1}\n\ndata: nameless\n\nevent: done\ndata: null\n\n';
    const client = answering(() => new Response(text, { headers: { "content-type": "text/event-stream" } }));
    expect(await Array.fromAsync(await client.ticks({ params: { count: "1" } }))).toEqual([
      { event: "tick", data: { n: 1 }, id: "7" },
      { event: "done", data: null },
    ]);
  });

  it("throws when the stream is cut", async () => {
    const cut = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('event: tick\ndata: {"n":1}\n\n')),
      pull: (controller) => controller.error(new Error("cut")),
    });
    const events = await answering(() => new Response(cut)).ticks({ params: { count: "1" } });
    await expect(Array.fromAsync(events)).rejects.toThrow("cut");
  });

  it("leaves a base path where it is", async () => {
    const seen: string[] = [];
    const only = defineContract(
      { surface: "a", auth: "open", envelope: () => null },
      { get: { method: "GET", path: "/x", summary: "", success: reply.json(v.number()) } },
    );
    const client = createClient(only, {
      baseURL: "http://test/base/",
      fetch({ url }) {
        seen.push(url);
        return Response.json(1);
      },
    });
    await client.get();
    expect(seen).toEqual(["http://test/base/x"]);
  });
});
