import { ServerResponse } from "node:http";
import { createApp, defineContract, defineErrors, definePlugin, type RequestHead, reply } from "@portico/core";
import fc from "fast-check";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { openHost } from "../../harness/hosts.ts";
import { httpCall } from "../../harness/http-call.ts";

const errors = defineErrors({ locked: { status: 403 } });
const echo = reply.json(v.unknown());
const get = { method: "GET", summary: "" } as const;
const agent = v.strictObject({ agent: v.pipe(v.string(), v.maxLength(30)) });

const contract = defineContract(
  { surface: "agent", auth: "unlocked", envelope: (error) => ({ error: error.code }) },
  {
    list: { ...get, path: "/agents", success: echo },
    one: { ...get, path: "/agents/:agent", params: agent, success: echo, errors },
    send: {
      ...get,
      method: "POST",
      path: "/agents/:agent",
      params: agent,
      body: v.strictObject({ n: v.number() }),
      success: echo,
    },
    own: { ...get, path: "/agents/own", success: echo },
    key: { ...get, path: "/agents/:agent/keys/:key", success: echo },
    firstKey: { ...get, path: "/agents/:agent/keys/first", success: echo },
    forget: { ...get, method: "DELETE", path: "/agents/:agent/keys/:key", success: reply.empty() },
    raw: { ...get, path: "/agents/:agent/raw", success: reply.exchange(["text/plain"]) },
    feed: { ...get, path: "/feeds/:feed", success: echo },
    live: { ...get, path: "/feeds/live", success: reply.events({ tick: v.string() }) },
    file: { ...get, path: "/files/:file", success: reply.bytes() },
    files: { ...get, path: "/files/all", success: echo },
    read: { ...get, path: "/mixed/:name", success: echo },
    write: { ...get, method: "PUT", path: "/mixed/:name", success: reply.bytes() },
    slash: { ...get, path: "/slash/:name/", success: echo },
    tree: { ...get, path: "/tree/**", success: echo },
    leaf: { ...get, path: "/tree/leaves/:leaf", success: echo },
    number: { ...get, path: String.raw`/numbers/:n(\d+)` as `/${string}`, success: echo },
  },
);

const seen = (route: string, { params, head, who }: { params: unknown; head: RequestHead; who: unknown }) => ({
  route,
  // Declared parameters are parsed, others stand in the head alone.
  params: { ...head.params, ...(params as object | undefined) },
  path: head.path,
  search: head.search,
  who,
});
const agents = definePlugin({
  name: "agents",
  config: v.strictObject({}),
  needs: {},
  contract,
  guards: () => ({
    unlocked(head) {
      if (head.params["agent"] === "locked") throw errors.locked();
      return `asked for ${head.params["agent"] ?? "nobody"}`;
    },
  }),
  setup: () => ({
    list: (input) => seen("list", input),
    one: (input) => seen("one", input),
    send: (input) => ({ ...seen("send", input), body: input.body }),
    own: (input) => seen("own", input),
    key: (input) => seen("key", input),
    firstKey: (input) => seen("firstKey", input),
    forget() {},
    raw({ exchange }) {
      const answer = exchange.respond(200, { "content-type": "text/plain" });
      answer.end(answer instanceof ServerResponse ? "on Node's own" : "over a pass-through");
    },
    feed: (input) => seen("feed", input),
    async *live({ say }) {
      yield say.tick("live");
    },
    file: (input) => Response.json(seen("file", input)),
    files: (input) => seen("files", input),
    read: (input) => seen("read", input),
    write: (input) => Response.json(seen("write", input)),
    slash: (input) => seen("slash", input),
    tree: (input) => seen("tree", input),
    leaf: (input) => seen("leaf", input),
    number: (input) => seen("number", input),
  }),
});

/** A page's own origin changes no answer. */
const ways = ["a fetch host", "a Node host", "a Node host, from a page"] as const;

describe.each(ways)("a path with parameters, on %s", (way) => {
  it.each<[call: string, status: number, body: unknown]>([
    ["GET /agents/ada", 200, { route: "one", params: { agent: "ada" }, path: "/agents/ada", search: "", who: "asked for ada" }],
    ["GET /agents/ada?agent=eve", 200, { route: "one", params: { agent: "ada" }, search: "?agent=eve" }],
    ["POST /agents/ada", 200, { route: "send", params: { agent: "ada" }, body: { n: 1 } }],
    ["GET /agents/own", 200, { route: "own", params: {}, who: "asked for nobody" }],
    ["GET /agents/OWN", 200, { route: "one", params: { agent: "OWN" } }],
    ["GET /agents/:agent", 200, { route: "one", params: { agent: ":agent" } }],
    ["GET /agents/a.b~c-d_e!$&'()*+,;=:@", 200, { route: "one", params: { agent: "a.b~c-d_e!$&'()*+,;=:@" } }],
    ["GET /agents/__proto__", 200, { route: "one", params: { agent: "__proto__" } }],
    ["GET /agents/ada/keys/k1", 200, { route: "key", params: { agent: "ada", key: "k1" } }],
    ["GET /agents/own/keys/k1", 200, { route: "key", params: { agent: "own", key: "k1" } }],
    ["GET /agents/ada/keys/first", 200, { route: "firstKey", params: { agent: "ada" } }],
    ["DELETE /agents/ada/keys/k1", 204, ""],
    ["GET /feeds/ada", 200, { route: "feed", params: { feed: "ada" } }],
    ["GET /feeds/live", 200, 'event: tick\ndata: "live"\n\n'],
    ["GET /files/ada", 200, { route: "file", params: { file: "ada" } }],
    ["GET /files/all", 200, { route: "files", params: {} }],
    ["GET /mixed/ada", 200, { route: "read", params: { name: "ada" } }],
    ["PUT /mixed/ada", 200, { route: "write", params: { name: "ada" } }],
    ["GET /tree/a/b", 200, { route: "tree" }],
    ["GET /tree/leaves/l1", 200, { route: "leaf", params: { leaf: "l1" } }],
    ["GET /tree/leaves/l1/more", 200, { route: "tree" }],
    ["GET /tree/**", 200, { route: "tree", params: { 0: "**" } }],
    ["GET /numbers/41", 200, { route: "number", params: { n: "41" } }],
    ["GET /numbers/ada", 404, { error: "not_found" }],
  ])("goes to the most exact route, with its parameters: %s", async (call, status, body) => {
    await using service = await open(way);
    expect(await service.ask(call)).toMatchObject({ status, body });
  });

  it.each<[call: string, params: unknown]>([
    ["GET /agents/a%20b", { agent: "a b" }],
    ["GET /agents/a%2Fb", { agent: "a/b" }],
    ["GET /agents/%41da", { agent: "Ada" }],
    ["GET /agents/./ada", { agent: "ada" }],
    ["GET /nowhere/../agents/ada", { agent: "ada" }],
    ["GET /agents/100%2525", { agent: "100%25" }],
    ["GET /%61gents/ada", { agent: "ada" }],
  ])("is decoded once: %s", async (call, params) => {
    await using service = await open(way);
    expect(await service.ask(call)).toMatchObject({ status: 200, body: { route: "one", params } });
  });

  it.each([
    "/agents/",
    "/agents//",
    "/agents/ada/",
    "/agents/own/",
    "/agents//keys/k1",
    "/agents/ada/keys",
    "/agents/ada/keys/",
    "/agents/ada/keys/k1/more",
    "/slash/ada",
    "//agents/ada",
    "/agents/..",
    "/agents/.",
    "/nowhere/ada",
  ])("is not found when a segment is missing, too many, or a slash is not declared: %s", async (path) => {
    await using service = await open(way);
    expect(await service.ask(`GET ${path}`)).toMatchObject({ status: 404, body: { error: "not_found" } });
  });

  it("may be declared with a slash at its end", async () => {
    await using service = await open(way);
    expect(await service.ask("GET /slash/ada/")).toMatchObject({ status: 200, body: { params: { name: "ada" } } });
  });

  it("gives its parameters to the guard before the rest of the request is checked", async () => {
    await using service = await open(way);
    for (const call of ["GET /agents/locked", "GET /agents/l%6Fcked", "PUT /agents/locked", "GET /agents/locked/raw"])
      expect(await service.ask(call)).toMatchObject({ status: 403, body: { error: "locked" } });
  });

  it("has its parameters parsed by their schema", async () => {
    await using service = await open(way);
    const long = await service.ask(`GET /agents/${"x".repeat(31)}`);
    expect(long).toMatchObject({ status: 400, body: { error: "invalid_request" } });
  });

  it("answers HEAD by its GET route without a body, and a method that it has not with 405", async () => {
    await using service = await open(way);
    expect(await service.ask("HEAD /agents/ada")).toMatchObject({ status: 200, body: "" });
    expect(await service.ask("HEAD /agents/locked")).toMatchObject({ status: 403, body: "" });
    expect(await service.ask("PATCH /agents/ada")).toMatchObject({ status: 405, allow: "GET, POST, HEAD" });
    expect(await service.ask("POST /agents/ada/keys/k1")).toMatchObject({ status: 405, allow: "GET, DELETE, HEAD" });
  });
});

it("an exchange on a path with parameters runs on Node's own streams", async () => {
  await using service = await open("a Node host");
  expect(await service.ask("GET /agents/ada/raw")).toMatchObject({ status: 200, body: "on Node's own" });
});

it("a path that is declared with escapes is the same on every host", async () => {
  const odd = definePlugin({
    name: "odd",
    config: v.strictObject({}),
    needs: {},
    contract: defineContract(
      { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code }) },
      { odd: { ...get, path: "/agents/%6Fdd", success: echo } },
    ),
    setup: () => ({ odd: (input) => seen("odd", input) }),
  });
  for (const way of ways) {
    await using service = await open(way, odd({}));
    expect(await service.ask("GET /agents/odd")).toMatchObject({ status: 200, body: { route: "odd" } });
  }
});

it("any request is answered alike, whether it names an origin or not, and on every host", async () => {
  const declared = [
    "agents",
    "own",
    "keys",
    "first",
    "feeds",
    "live",
    "files",
    "all",
    "mixed",
    "slash",
    "tree",
    "leaves",
    "numbers",
  ];
  const odd = ["", ".", "..", ".a", "a.", "%61", "%2F", "%2e%2e", "%", "%zz", "%ff", "é", "**", ":agent", "a;b", "a+b"];
  const marks = ["\\", "|", "^", "[a]", "{a}", "`", '"', "<", "'", "~", "(1)", "$&", "@:", "#a", "a#b"];
  const segment = fc.oneof(
    { arbitrary: fc.constantFrom(...declared), weight: 4 },
    { arbitrary: fc.constantFrom("ada", "locked", "7", "raw"), weight: 2 },
    fc.constantFrom(...odd, ...marks),
  );
  const call = fc.record({
    method: fc.constantFrom("GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"),
    path: fc.array(segment, { minLength: 1, maxLength: 5 }).map((segments) => `/${segments.join("/")}`),
    query: fc.constantFrom(
      ...["", "", "", "?", "?a=/b", "?a=%20+b", "?a='b'", '?a="b"', "?<a>", "?a=é", "?a#b", "?a=b&a=c", "?{a}|`^\\[]"],
    ),
  });
  await using plain = await open("a Node host");
  await using fromPage = await open("a Node host, from a page");
  await fc.assert(
    fc.asyncProperty(call, async ({ method, path, query }) => {
      // Which stream it was is the one thing that may differ.
      fc.pre(!path.endsWith("/raw"));
      const asked = `${method} ${path}${query}`;
      expect(await plain.ask(asked)).toEqual(await fromPage.ask(asked));
    }),
    { numRuns: 500 },
  );
});

async function open(way: (typeof ways)[number], ...more: ReturnType<ReturnType<typeof definePlugin>>[]) {
  const app = await createApp({
    name: "parameters",
    plugins: [agents({}), ...more],
    surfaces: { agent: { allowedOrigins: [] } },
  });
  const host = await openHost(way === "a fetch host" ? "fetch" : "node", app);
  const { origin } = host;
  return {
    /** `METHOD /path`, sent unchanged; a POST has the body `{"n":1}`. */
    async ask(call: string) {
      const [method, path] = call.split(" ", 2) as [string, string];
      const given = method === "POST" ? { body: '{"n":1}', headers: { "content-type": "application/json" } } : {};
      if (origin === undefined) return answerOf(await host.call(path, { method, ...given }));
      const headers = { ...given.headers, ...(way === "a Node host, from a page" && { origin }) };
      const { status, headers: sent, ...reply } = await httpCall(origin, { ...given, method, path, headers });
      return answerOf(new Response(await reply.text().then((text) => text || null), { status, headers: sent }));
    },
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}

async function answerOf(response: Response) {
  const text = await response.text();
  const type = response.headers.get("content-type");
  return {
    status: response.status,
    type,
    allow: response.headers.get("allow"),
    body: type?.startsWith("application/json") && text !== "" ? (JSON.parse(text) as unknown) : text,
  };
}
