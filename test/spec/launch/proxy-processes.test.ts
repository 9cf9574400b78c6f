import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { chosenRuntime } from "../../harness/runtimes.ts";
import { type PorticoProcess, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

/** An upstream whose answers the test gives by hand, or that answers at once. */
const held: ServerResponse[] = [];
const keys = new Set<string>();
let isHolding = false;
let most = 0;
const upstream = createServer((request, response) => {
  request.resume();
  keys.add(String(request.headers.authorization));
  if (!isHolding) return void answer(response);
  held.push(response);
  response.once("close", () => held.splice(held.indexOf(response), 1));
  most = Math.max(most, held.length);
});
const CALL = { model: "m", messages: [{ role: "user", content: "Hello" }] };
const OWNER = "owner-token-of-processes-0123456789";

beforeAll(() => new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve)));
afterAll(() => {
  upstream.closeAllConnections();
  upstream.close();
});
beforeEach(() => {
  isHolding = false;
  most = 0;
  keys.clear();
});

function answer(response: ServerResponse): void {
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  const choices = [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }];
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ id: "c", object: "chat.completion", created: 1, model: "m", choices, usage }));
}

const event = (value: unknown) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
const chunk = (content: string) =>
  event({
    ...{ id: "c", object: "chat.completion.chunk", created: 1, model: "m" },
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
  });

function ownFolder(): Disposable & { readonly path: string } {
  const { path, remove } = temporaryFolder();
  return { path, [Symbol.dispose]: remove };
}

function provider(more: object = {}) {
  const baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  return { id: "main", protocol: "chat-completions", baseUrl, models: ["m"], ...more };
}

function start(
  config: object = {},
  { args = ["--processes", "2"], cwd }: { readonly args?: readonly string[]; readonly cwd?: string } = {},
) {
  const whole = { providers: [provider()], agent: { tokens: [{ token: OWNER, userId: "owner", role: "owner" }] }, ...config };
  return startPortico({ hasOwnProcess: true, config: whole, args: ["local", ...args], ...(cwd !== undefined && { cwd }) });
}

/** Sends a call over a connection of its own, which the system gives to one of the processes. */
async function send(service: PorticoProcess, token: string, more: object = {}): Promise<IncomingMessage> {
  const sent = request(`${service.url("proxy")}/chat/completions`, {
    method: "POST",
    agent: new Agent({ keepAlive: false }),
    headers: { "x-api-key": token, "content-type": "application/json" },
  });
  sent.end(JSON.stringify({ ...CALL, ...more }));
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return response;
}

async function call(service: PorticoProcess, token: string): Promise<number> {
  const response = await send(service, token);
  for await (const _ of response);
  return response.statusCode ?? 0;
}

const lines = (service: PorticoProcess) =>
  service
    .stderr()
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const requestLines = (service: PorticoProcess) => lines(service).filter(({ route }) => route === "model-proxy.chatCompletions");
/** The processes that have served the proxy beside the instance, the newest last. */
const further = (service: PorticoProcess) =>
  lines(service)
    .filter(({ msg }) => msg === "Another process serves the model proxy")
    .map(({ pid }) => Number(pid));

/** Calls until both processes have answered. Returns how many calls it were. */
async function callBoth(service: PorticoProcess, token: string): Promise<number> {
  const before = requestLines(service).length;
  for (let calls = 1; ; calls++) {
    expect(await call(service, token)).toBe(200);
    await expect.poll(() => requestLines(service).length).toBe(before + calls);
    const answered = new Set(
      requestLines(service)
        .slice(before)
        .map(({ proxyProcess }) => proxyProcess),
    );
    if (answered.size === 2) return calls;
  }
}

async function ask(service: PorticoProcess, path: string): Promise<Response> {
  return fetch(new URL(path, service.url("agent")), { headers: { "x-agent-service-token": OWNER } });
}

/** Calls of models that the instance has counted. */
async function counted(service: PorticoProcess): Promise<number> {
  const answered = (await (await ask(service, "/api/measurements?step=day")).json()) as {
    readonly series: readonly { readonly calls: readonly number[] }[];
  };
  return answered.series.flatMap(({ calls }) => calls).reduce((sum, each) => sum + each, 0);
}

/** The sum of a metric's series of the proxy. */
async function metric(service: PorticoProcess, name: string): Promise<number> {
  const text = await (await ask(service, "/metrics")).text();
  const series = text.split("\n").filter((line) => line.startsWith(`${name}{`) && line.includes("main"));
  return series.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

// Other runtimes and systems refuse several processes.
const isPossible = process.platform === "linux" && !chosenRuntime();

describe.runIf(isPossible)("several processes that serve one proxy", () => {
  it("share one address, and their usage, metrics, counters and log lines are those of the instance", async () => {
    await using service = await start();
    const token = await service.token("main");
    const calls = await callBoth(service, token);

    expect(lines(service).find(({ msg }) => msg === "Started")).toMatchObject({ processes: 2, proxyProcess: 1 });
    expect(new Set(requestLines(service).map(({ proxyProcess }) => proxyProcess))).toEqual(new Set([1, 2]));
    await expect.poll(() => counted(service)).toBe(calls);
    expect(await metric(service, "gen_ai_client_operation_duration_seconds_count")).toBe(calls);
    expect(await metric(service, "gen_ai_client_tokens_total")).toBe(5 * calls);
    expect(await (await ask(service, "/api/counters")).json()).toMatchObject({ modelCalls: calls, inputTokens: 3 * calls });
    const log = await ask(service, "/api/log?last=2000");
    let followed = "";
    for await (const part of log.body!.pipeThrough(new TextDecoderStream())) {
      followed += part;
      if ([...followed.matchAll(/"model-proxy\.chatCompletions"/g)].length === calls) break;
    }
    expect(followed).toContain('"proxyProcess":2');
  });

  it("keep the calls at once of a provider together", async () => {
    await using service = await start({ providers: [provider({ concurrency: { limit: 2, queue: 0 } })] });
    const token = await service.token("main");
    isHolding = true;
    const calls = Array.from({ length: 12 }, () => call(service, token));
    let refused = 0;
    for (const each of calls) void each.then((status) => (refused += Number(status === 429)));
    await expect.poll(() => refused + held.length).toBe(12);
    expect(most).toBeLessThanOrEqual(2);
    for (const response of [...held]) answer(response);
    const ended = await Promise.all(calls);
    expect(ended.filter((status) => status === 200).length).toBeGreaterThan(0);
  });

  it("read changed secrets again together", async () => {
    using folder = ownFolder();
    const file = join(folder.path, "key");
    writeFileSync(file, "sk-first");
    await using service = await start({
      rotation: { watchMs: 0 },
      providers: [provider({ credential: { file } })],
    });
    const token = await service.token("main");
    await callBoth(service, token);
    expect([...keys]).toEqual(["Bearer sk-first"]);
    writeFileSync(file, "sk-second");
    service.signal("SIGHUP");
    await expect
      .poll(() => lines(service).filter(({ msg }) => msg === "Secrets were read again").length)
      .toBeGreaterThanOrEqual(2);
    keys.clear();
    await callBoth(service, token);
    expect([...keys]).toEqual(["Bearer sk-second"]);
  });

  it("have the changed secrets also in a process that replaces another one later", async () => {
    using folder = ownFolder();
    const config = { rotation: { watchMs: 0 }, providers: [provider({ credential: "sk-first" })] };
    await using service = await start(config, { cwd: folder.path });
    const token = await service.token("main");
    const file = join(folder.path, "portico.config.json");
    writeFileSync(file, readFileSync(file, "utf8").replace("sk-first", "sk-second"));
    service.signal("SIGHUP");
    await expect.poll(() => lines(service).filter(({ msg }) => msg === "Secrets were read again").length).toBe(2);
    process.kill(further(service).at(-1)!, "SIGKILL");
    await expect.poll(() => further(service).length).toBe(2);
    await callBoth(service, token);
    expect([...keys]).toEqual(["Bearer sk-second"]);
  });
});

describe.runIf(isPossible)("a process of the proxy that is killed", () => {
  it("breaks its own streams only, is replaced, and loses no usage that was stored", async () => {
    await using service = await start();
    const token = await service.token("main");
    const calls = await callBoth(service, token);
    await expect.poll(() => counted(service)).toBe(calls);
    expect(await metric(service, "gen_ai_client_operation_duration_seconds_count")).toBe(calls);

    isHolding = true;
    const streams = Array.from({ length: 16 }, () => send(service, token, { stream: true }));
    await expect.poll(() => held.length).toBe(16);
    for (const response of held) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(chunk("begins "));
    }
    const opened = await Promise.all(streams);
    const ends = opened.map(async (stream) => {
      let text = "";
      try {
        for await (const part of stream.setEncoding("utf8")) text += String(part);
      } catch {
        return "cut";
      }
      return text;
    });
    const [killed] = further(service);
    process.kill(killed!, "SIGKILL");
    await expect.poll(() => further(service).length).toBe(2);
    // The upstream loses the connections of the killed process.
    await expect.poll(() => held.length).toBeLessThan(16);
    const kept = held.length;
    expect(kept).toBeGreaterThan(0);
    for (const response of [...held]) response.end(chunk("ends") + event("[DONE]"));
    const texts = await Promise.all(ends);
    expect(texts.filter((text) => text.includes("begins ") && text.includes("ends") && text.includes("[DONE]"))).toHaveLength(
      kept,
    );
    expect(texts.filter((text) => text === "cut")).toHaveLength(16 - kept);

    isHolding = false;
    await expect.poll(() => requestLines(service).length).toBe(calls + kept);
    const more = await callBoth(service, token);
    // Calls that the kill cut were stored within a second of their beginning, or are lost with the process.
    await expect.poll(() => counted(service)).toBeGreaterThanOrEqual(calls + kept + more);
    expect(await metric(service, "gen_ai_client_operation_duration_seconds_count")).toBe(calls + kept + more);
    expect(lines(service)).toContainEqual(
      expect.objectContaining({
        msg: "A process of the model proxy ended: another one replaces it",
        signal: "SIGKILL",
        number: 2,
      }),
    );
  });

  it("again and again ends the service with an error", async () => {
    await using service = await start();
    for (let starts = 1; starts <= 5; starts++) {
      await expect.poll(() => further(service).length).toBe(starts);
      process.kill(further(service).at(-1)!, "SIGKILL");
    }
    expect((await service.exited).code).toBe(70);
    expect(service.stderr()).toContain("Processes of the model proxy end again and again: stopping");
  });
});

describe.runIf(isPossible)("the process of the instance", () => {
  it("takes the others with it when it is killed, and the next start serves at the same address", async () => {
    using folder = ownFolder();
    const service = await start({}, { cwd: folder.path });
    const [other] = further(service);
    service.signal("SIGKILL");
    await service.exited;
    await expect.poll(() => isAlive(other!)).toBe(false);
    await using next = await start({}, { cwd: folder.path });
    expect(next.url("proxy")).toBe(service.url("proxy"));
    await callBoth(next, await next.token("main"));
  });

  it("lets the calls of all processes end when it is stopped", async () => {
    await using service = await start({ shutdownGraceMs: 60_000 });
    const token = await service.token("main");
    isHolding = true;
    const calls = Array.from({ length: 12 }, () => call(service, token));
    await expect.poll(() => held.length).toBe(12);
    service.signal("SIGTERM");
    await expect.poll(() => lines(service).filter(({ msg }) => msg === "Stopping").length).toBe(2);
    for (const response of [...held]) answer(response);
    expect(await Promise.all(calls)).toEqual(calls.map(() => 200));
    expect((await service.exited).code).toBe(0);
    expect(further(service).filter(isAlive)).toEqual([]);
  });

  it("does not start at an address that another instance shares", async () => {
    await using service = await start();
    const { port } = new URL(service.url("proxy"));
    const config = JSON.stringify({ proxy: { listen: { port: Number(port) }, processes: 2 } });
    using folder = ownFolder();
    writeFileSync(join(folder.path, "portico.config.json"), config);
    const second = await runPortico(["start", "proxy"], { cwd: folder.path });
    expect([second.code, second.stderr]).toEqual([69, expect.stringContaining(`port ${port} on 127.0.0.1 is already in use`)]);
  });
});

describe.runIf(isPossible)("settings that several processes cannot have", () => {
  it.each([
    [
      "a provider with fewer calls at once",
      ["local"],
      { providers: [{ id: "p", protocol: "messages", baseUrl: "http://127.0.0.1:1", models: ["m"], concurrency: { limit: 1 } }] },
      78,
      "cannot share the 1 calls",
    ],
    ["agents as models", ["local"], { agent: { asModels: { userId: "owner" } } }, 78, "agent.asModels.userId needs one process"],
    ["a cluster", ["cluster"], {}, 78, "cluster"],
    ["a preset without a proxy", ["workflow"], {}, 64, "has none"],
    ["none at all", ["local", "--processes", "0"], {}, 78, "proxy.processes"],
  ] as const)("%s stops the start", async (_what, [preset, ...more], config, code, words) => {
    using folder = ownFolder();
    writeFileSync(join(folder.path, "portico.config.json"), JSON.stringify(config));
    const args = ["start", preset, ...(more.length > 0 ? more : ["--processes", "2"])];
    const ended = await runPortico(args, { cwd: folder.path });
    expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining(words)]);
  });
});
