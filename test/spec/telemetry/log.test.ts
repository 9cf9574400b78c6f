import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { createRecentLines, type RecentLines } from "@portico/adapters/telemetry/recent-lines";
import { createManualClock } from "@portico/adapters/clock/manual";
import { ports } from "@portico/core";
import { logPage } from "@portico/operator/log";
import { createParser } from "eventsource-parser";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AgentService, type AgentServiceOptions, startAgentService, TOKENS } from "../../harness/agent-app.ts";
import { guardedRoutes, routesOf } from "../../harness/guarded-routes.ts";
import { httpCall } from "../../harness/http-call.ts";
import { startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { root } from "../../rooms/repository.ts";
import { readPage } from "../docs/pages.ts";

const PROCESS = { host: "desk", pid: 7 };
const KEPT_LINES = 2_000;
const KEPT_CHARACTERS = 1_048_576;

/** A service that logs, with its page. */
async function start(options: AgentServiceOptions = {}) {
  const lines = createRecentLines();
  const service = await startAgentService({
    telemetry: openTelemetry({ level: "debug", format: "text", destination: { write() {} }, recentLines: lines }),
    plugins: [logPage({ lines, process: PROCESS })],
    ...options,
  });
  const { log } = service.app.port(ports.telemetry);
  return { service, lines, log, [Symbol.asyncDispose]: () => service.close() };
}

interface Heard {
  readonly event: string;
  readonly data: any;
  readonly id: string | undefined;
}

/** A reader of the log. Everything that it received so far is in its lists. */
async function follow(service: Pick<AgentService, "url">, query = "", headers: Record<string, string> = {}) {
  const reply = await httpCall(service.url, {
    path: `/api/log?${query}`,
    headers: { "x-agent-service-token": TOKENS.owner, ...headers },
  });
  const heard: Heard[] = [];
  let text = "";
  const parser = createParser({ onEvent: ({ event, data, id }) => heard.push({ event: event!, data: JSON.parse(data), id }) });
  const messages = () => heard.filter(({ event }) => event === "log:line").map(({ data }) => data.msg as string);
  const read = async () => {
    for (let piece = await reply.read(); piece !== undefined; piece = await reply.read()) {
      text += piece.toString();
      parser.feed(piece.toString());
    }
  };
  return {
    ...{ reply, heard, messages },
    text: () => text,
    /** Resolves at the good end of the stream. */
    read,
    /** Reads in the background until the reader leaves. */
    begin: () => void read().catch(() => {}),
    leave: () => reply.leave(),
  };
}

async function reading(...given: Parameters<typeof follow>) {
  const reader = await follow(...given);
  reader.begin();
  return reader;
}

describe("GET /api/log is guarded", () => {
  const { contract } = logPage({ lines: createRecentLines(), process: PROCESS }).spec;
  guardedRoutes({
    ...{ contract, parameters: {} },
    guard: "owner",
    unauthorized: { error: "unauthorized", code: "unauthorized" },
    start: async () => (await start()).service,
  });

  it("on every route", () => {
    expect(routesOf({ contract, parameters: {} }).map(({ auth }) => auth)).toEqual(["owner"]);
  });

  it.each(["member", "service"] as const)("403 owner_required for a %s", async (holder) => {
    await using given = await start();
    const { status, body } = await given.service.call(holder, "GET", "/api/log");
    expect([status, body.code]).toEqual([403, "owner_required"]);
  });
});

describe("a reader of the log", () => {
  let given: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    given = await start();
  });
  afterAll(() => given.service.close());

  it("gets earlier lines and then each new line as it is written, and is told the process", async () => {
    const { service, log } = given;
    log.info("before one", { agent: "helper" });
    log.info("before two");
    const reader = await reading(service, "last=2");
    await expect.poll(reader.messages).toEqual(["before one", "before two"]);
    log.warn("after", { count: 3 }, new RangeError("never a message"));
    await expect.poll(reader.messages).toEqual(["before one", "before two", "after"]);
    expect(reader.heard[0]).toMatchObject({ event: "log:opened", data: { process: PROCESS, isResumed: false } });
    expect(reader.heard.at(-1)!.data).toMatchObject({ level: "warn", msg: "after", count: 3, cause: { name: "RangeError" } });
    expect(reader.text()).toMatch(/^(?::.*\n\n)?retry: 3000\n\n/);
    expect(reader.text()).not.toContain("never a message");
    reader.leave();
  });

  it.each([
    ["level=warn", ["quiet failure", "loud failure"]],
    ["level=error", ["loud failure"]],
    ["area=kitchen", ["quiet failure"]],
    ["id=run-17", ["of a run"]],
    ["id=turn-4", ["of a turn"]],
    ["text=FAILURE", ["quiet failure", "loud failure"]],
    ["text=helper-9", ["of a turn"]],
    ["level=info&text=of%20a&id=run-17", ["of a run"]],
  ])("gets only the lines that %s allows", async (query, expected) => {
    await using own = await start();
    own.log.debug("detail");
    own.log.warn("quiet failure", { area: "kitchen" });
    own.log.error("loud failure", { area: "kitchens" });
    own.log.info("of a run", { runId: "run-17" });
    own.log.info("of a turn", { turn: "turn-4", agent: "helper-9" });
    const earlier = await reading(own.service, query);
    await expect.poll(earlier.messages).toEqual(expected);
    own.log.error("of a failure in the end", { area: "kitchen", runId: "run-17", turn: "turn-4", agent: "helper-9" });
    await expect.poll(earlier.messages).toEqual([...expected, "of a failure in the end"]);
  });

  it("chooses the ends of requests, or everything else", async () => {
    await using own = await start();
    const requests = await reading(own.service, "kind=request");
    const others = await reading(own.service, "kind=message");
    const { headers } = await own.service.call("owner", "GET", "/api/nothing");
    own.log.info("request");
    own.log.info("last");
    await expect.poll(others.messages).toEqual(["request", "last"]);
    const ended = () => requests.heard.filter(({ event }) => event === "log:line").map(({ data }) => data.request as string);
    await expect.poll(ended).toEqual([headers["x-portico-request-id"]]);
    const byId = await reading(own.service, `id=${headers["x-portico-request-id"]}`);
    await expect.poll(() => byId.heard.at(-1)?.data).toMatchObject({ msg: "request", status: 404 });
  });

  it.each(["level=loud", "kind=x", "last=-1", "last=2001", "last=1.5", "text=", `text=${"x".repeat(201)}`, "area=", "unknown=1"])(
    "400 invalid_request for %s",
    async (query) => {
      const { status, body } = await given.service.call("owner", "GET", `/api/log?${query}`);
      expect([status, body.code]).toEqual([400, "invalid_request"]);
    },
  );

  it("that connects again with the last id continues after it: no line is lost or sent twice", async () => {
    await using own = await start();
    own.log.info("one");
    const first = await reading(own.service, "kind=message");
    await expect.poll(first.messages).toEqual(["one"]);
    first.leave();
    own.log.info("two");
    own.log.info("three");
    const again = await reading(own.service, "kind=message&last=0", { "last-event-id": first.heard.at(-1)!.id! });
    await expect.poll(again.messages).toEqual(["two", "three"]);
    expect(again.heard[0]!.data.isResumed).toBe(true);
  });

  it.each(["", "x", "other-process:3", ":1", "own:1000000", "own:-1", "own:01"])(
    "with the id %j, which this process has not sent, begins anew",
    async (id) => {
      await using own = await start();
      own.log.info("one");
      const known = await reading(own.service, "kind=message");
      await expect.poll(known.messages).toEqual(["one"]);
      const process = known.heard[0]!.data.process.id as string;
      const reader = await reading(own.service, "kind=message", { "last-event-id": id.replace("own", process) });
      await expect.poll(reader.messages).toEqual(["one"]);
      expect(reader.heard[0]!.data.isResumed).toBe(false);
    },
  );

  it("is told how many lines were dropped before it came back", async () => {
    await using own = await start();
    own.log.info("one");
    const first = await reading(own.service, "kind=message");
    await expect.poll(first.messages).toEqual(["one"]);
    first.leave();
    for (let n = 0; n < KEPT_LINES + 50; n++) own.log.info("more");
    const again = await reading(own.service, "kind=message", { "last-event-id": first.heard.at(-1)!.id! });
    await expect.poll(() => again.messages().length).toBeGreaterThanOrEqual(KEPT_LINES - 1);
    const { oldest } = own.lines;
    expect(again.heard[1]).toMatchObject({ event: "log:missed", data: { lines: oldest - 2 } });
  });

  it("that reads slowly is told how many lines it missed, and the log does not wait for it", async () => {
    await using own = await start();
    const slow = await follow(own.service, "kind=message&text=flood");
    const written = 60_000;
    for (let n = 0; n < written; n++) {
      own.log.info("flood", { filling: "x".repeat(190), count: n });
      // Lets the answer write: the reader's buffers fill, and then it falls behind.
      if (n % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(own.lines.newest).toBeGreaterThanOrEqual(written);
    slow.begin();
    await expect.poll(() => slow.heard.at(-1)?.data.count).toBe(written - 1);
    const missed = slow.heard.filter(({ event }) => event === "log:missed").map(({ data }) => data.lines as number);
    expect(missed.length).toBeGreaterThan(0);
    // Nothing is lost in silence, apart from the lines that are not of this test.
    const known = slow.messages().length + missed.reduce((sum, each) => sum + each, 0);
    expect(known).toBeGreaterThanOrEqual(written);
    expect(known).toBeLessThanOrEqual(own.lines.newest);
    slow.leave();
  });
});

describe("the readers of one process", () => {
  it("are eight at most: the next is 429 too_many_readers, until one of them leaves; HEAD is no reader", async () => {
    await using own = await start();
    const readers: Awaited<ReturnType<typeof follow>>[] = [];
    const headers = { "x-agent-service-token": TOKENS.owner };
    const head = async () => {
      const reply = await httpCall(own.service.url, { method: "HEAD", path: "/api/log", headers });
      return [reply.status, reply.headers["content-type"], await reply.text()];
    };
    for (let n = 0; n < 8; n++) {
      expect(await head()).toEqual([200, "text/event-stream", ""]);
      readers.push(await reading(own.service));
      expect(readers[n]!.reply.status).toBe(200);
    }
    expect(await head()).toEqual([200, "text/event-stream", ""]);
    const refused = await own.service.call("owner", "GET", "/api/log");
    expect([refused.status, refused.body.code]).toEqual([429, "too_many_readers"]);
    readers[3]!.leave();
    const status = async () => {
      const next = await follow(own.service);
      if (next.reply.status === 200) next.begin();
      return next.reply.status;
    };
    await expect.poll(status).toBe(200);
  });

  it("get a comment in silence, which keeps the connection", async () => {
    const clock = createManualClock();
    await using own = await start({ clock });
    const reader = await reading(own.service, "last=0");
    await expect.poll(() => reader.heard.length).toBe(1);
    await expect
      .poll(async () => {
        await clock.advance(15_000);
        return reader.text();
      })
      .toContain(": keep-alive\n\n");
  });

  it("see the good end of the stream when the service stops", async () => {
    const own = await start();
    const reader = await follow(own.service);
    const whole = reader.read();
    await expect.poll(() => reader.heard.length).toBeGreaterThan(0);
    await own.service.app.close();
    await expect(whole).resolves.toBeUndefined();
    await own.service.close();
  });
});

describe("the kept lines", () => {
  const keptOf = (lines: RecentLines) => lines.newest - lines.oldest + 1;

  it("are the newest 2,000", async () => {
    await using own = await start();
    for (let n = 0; n < 5_000; n++) own.log.info("line", { count: n });
    expect(keptOf(own.lines)).toBe(KEPT_LINES);
    const reader = await reading(own.service, "last=2000&kind=message");
    await expect.poll(() => reader.heard.at(-1)?.data.count).toBe(4_999);
    expect(reader.messages().length).toBeLessThanOrEqual(KEPT_LINES);
    expect(reader.heard.filter(({ event }) => event === "log:missed")).toEqual([]);
  });

  it("are fewer if they are long: 1,048,576 characters at most", () => {
    const lines = createRecentLines();
    for (let n = 0; n < 300; n++) lines.add("x".repeat(10_000));
    expect(keptOf(lines)).toBe(Math.floor(KEPT_CHARACTERS / 10_000));
    lines.add("y".repeat(KEPT_CHARACTERS + 1));
    expect([keptOf(lines), lines.at(lines.newest)]).toEqual([0, undefined]);
    lines.add("z");
    expect([keptOf(lines), lines.at(lines.newest)]).toEqual([1, "z"]);
  });
});

it("a started service sends its own log, also the lines of its start, as the command of docs/observability.md shows", async () => {
  await using service = await startPortico({ config: { log: { format: "text" } } });
  const page = await readPage("docs/observability.md");
  const [command] = page.blocks.filter(({ mark }) => mark?.of === "test/spec/telemetry/log.test.ts");
  const placed = command!.text.replace("npx portico", `${process.execPath} ${resolve(root, "presets/cli/portico.mjs")}`);
  const shell = spawn("bash", ["-ec", placed.replace("curl", "exec curl")], {
    cwd: service.cwd,
    stdio: ["ignore", "pipe", "ignore"],
  });
  let printed = "";
  shell.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  try {
    await expect.poll(() => printed).toContain('"msg":"Started"');
    expect(printed).toMatch(
      /^event: log:opened\ndata: \{"process":\{"id":"[^"]+","host":"[^"]+","pid":\d+\},"isResumed":false,"areas":\[[^\]]*"model-proxy"[^\]]*\]\}$/m,
    );
  } finally {
    shell.kill();
  }
});

it("the log tells the life of turns and of workflow runs, with their area and ids", async () => {
  const folder = temporaryFolder();
  const files = {
    "agents/helper/agent.json": {
      ...{ name: "Helper", provider: "demo" },
      webhooks: { enabled: true, events: { deploy: { promptTemplate: "a hidden prompt", toolIds: [] } } },
    },
    "workflows/fails.json": { nodes: { stop: { type: "fail", with: { message: "a hidden reason" } } } },
    "workflows/asks.json": { nodes: { ask: { type: "human_gate", with: { title: "Go on?" } } } },
  };
  for (const [name, value] of Object.entries(files)) {
    mkdirSync(dirname(join(folder.path, name)), { recursive: true });
    writeFileSync(join(folder.path, name), JSON.stringify(value));
  }
  await using service = await startPortico({ cwd: folder.path });
  const tokens = JSON.parse(service.read("credentials.json")) as Record<string, string>;
  const send = async (url: string, headers: Record<string, string>, body: object) => {
    const answer = await fetch(url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(answer.ok, await answer.text()).toBe(true);
  };
  const owner = { "x-agent-service-token": tokens["agentServiceToken"]! };
  const reader = await reading({ url: service.url("agent") }, "kind=message", owner);
  await send(
    `${service.url("agent")}/api/webhook/helper`,
    { authorization: `Bearer ${tokens["agentServiceToken"]}` },
    { event: "deploy" },
  );
  const workflow = { "x-workflow-service-token": tokens["workflowServiceToken"]! };
  for (const id of ["asks", "fails"]) await send(`${service.url("workflow")}/api/workflow/webhook?id=${id}`, workflow, {});
  const lineOf = (msg: string) => reader.heard.find(({ data }) => data.msg === msg)?.data as Record<string, unknown> | undefined;
  const turn = { area: "conversations-runs", agent: "helper", turn: expect.any(String), run: expect.any(String) };
  const run = { area: "workflow-service", workflow: expect.any(String), runId: expect.any(String) };
  for (const [msg, fields] of [
    ["An event of a webhook was accepted", { area: "agent-webhook", agent: "helper", event: "deploy" }],
    ["A turn began", turn],
    ["A turn ended", { ...turn, outcome: "completed" }],
    ["A workflow run began", run],
    ["A workflow run waits for a person", { ...run, workflow: "asks", nodeId: "ask" }],
    [
      "A workflow run ended",
      { ...run, workflow: "fails", level: "warn", outcome: "failed", nodeId: "stop", code: expect.any(String) },
    ],
  ] as const)
    await expect.poll(() => lineOf(msg), { message: msg }).toMatchObject(fields);
  const { run: runId } = lineOf("A turn began")!;
  expect(lineOf("An event of a webhook was accepted")!["run"]).toBe(runId);
  const ofRun = await reading({ url: service.url("agent") }, `id=${String(runId)}`, owner);
  await expect
    .poll(ofRun.messages)
    .toEqual(["An event of a webhook was accepted", "A turn began", "A turn ended"].toSorted(inOrderOf(reader.messages())));
  expect(reader.text()).not.toContain("hidden");
  reader.leave();
  ofRun.leave();
  folder.remove();
});

/** The turn may begin before its acceptance is told. */
function inOrderOf(messages: readonly string[]) {
  return (one: string, other: string) => messages.indexOf(one) - messages.indexOf(other);
}
