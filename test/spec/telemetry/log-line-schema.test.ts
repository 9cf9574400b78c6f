import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { logLineSchema } from "@portico/adapters/telemetry/log-line-schema";
import { connectAgent } from "@portico/client";
import { io } from "socket.io-client";
import { expect, it } from "vitest";
import { publishedLogSchema } from "../../../release/references/log-lines.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { httpCall } from "../../harness/http-call.ts";
import { checkedLines } from "../../harness/log-line-check.ts";
import { loggedFields } from "../../harness/logged-fields.ts";
import { type PorticoProcess, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { connected } from "../../harness/socket-host.ts";

const docs = join(import.meta.dirname, "../../../docs");
const PROMPT = "a-prompt-that-no-log-may-have";
const OWNER = "owner-token-that-no-log-may-have";

const FILES = {
  "agents/helper/agent.json": { name: "Helper", provider: "gone", model: "m" },
  "workflows/fails.json": {
    nodes: { call: { type: "http", with: { url: "http://127.0.0.1:1/", method: "GET" } } },
  },
  "workflows/broken.json": { nodes: { call: { type: "unknown" } } },
};

it("the published schema is that of the code (`npm run docs:log`)", () => {
  expect(readFileSync(join(docs, "log-line.schema.json"), "utf8")).toBe(publishedLogSchema());
});

it("the schema describes every field that the code logs", () => {
  const fields = loggedFields(join(docs, ".."), ["core", "adapters", "adapters/*", "plugins", "presets", "presets/*"]);
  const { request, message } = logLineSchema.$defs;
  const isDescribed = (name: string) => name in request.properties || name in message.properties;
  expect([...fields].filter(([name]) => !isDescribed(name))).toEqual([]);
  expect(fields.size).toBeGreaterThan(25);
});

it("every line that a service writes fits the published schema: starts, requests, failures, warnings, stops", async () => {
  const folder = temporaryFolder();
  await using upstream = await startFakeUpstream();
  try {
    for (const [name, value] of Object.entries(FILES)) {
      mkdirSync(dirname(join(folder.path, name)), { recursive: true });
      writeFileSync(join(folder.path, name), JSON.stringify(value));
    }
    const config = {
      log: { level: "debug" },
      shutdownGraceMs: 200,
      providers: [
        { id: "main", protocol: "chat-completions", baseUrl: upstream.baseUrl, models: ["echo-large"] },
        { id: "gone", protocol: "messages", baseUrl: "http://127.0.0.1:1/v1", models: ["m"] },
        { id: "lost", protocol: "messages", baseUrl: "http://127.0.0.1:1/v1" },
      ],
      agent: { tokens: [{ token: OWNER, userId: "ada", role: "owner" }] },
      mcpServers: { away: { url: "http://127.0.0.1:1/mcp" } },
    };
    const start = () => startPortico({ cwd: folder.path, hasOwnProcess: true, config });
    let first: PorticoProcess | undefined;
    let ports: string;
    {
      await using service = await start();
      first = service;
      ports = service.read("ports.json");
      await useProxy(service);
      await leaveEarly(service, upstream);
      await useServices(service);
      // An answer that has not ended when the service stops.
      upstream.answerNext(({ over }) => over);
      const open = call(service, "main", "/chat/completions", question("echo-large")).catch(() => {});
      await expect.poll(() => upstream.openExchanges).toBeGreaterThan(0);
      expect(await service.stop()).toBe(0);
      await open;
    }
    const lines = checkedLines(first.stderr());
    const messages = new Set(lines.map(({ msg }) => msg));
    for (const expected of [
      "Started",
      "Serving a provider",
      "Stopping",
      "A workflow definition cannot be used",
      "A turn began",
      "A turn failed",
      "A turn ended",
      "The models of a provider could not be listed",
      "A realtime event that is not declared was dropped",
      "Some requests did not finish in time and were aborted",
    ]) {
      expect([...messages]).toContain(expected);
    }
    const requests = lines.filter(({ msg }) => msg === "request");
    expect(new Set(requests.map(({ level }) => level))).toEqual(new Set(["info", "warn", "error"]));
    expect(requests.map(({ status }) => status)).toEqual(expect.arrayContaining([200, 400, 401, 404, 405, 415, 421, 499, 502]));

    // The next start has lost its latest writes, and another program has its port.
    for (const name of ["records.sqlite", "records.sqlite-wal", "records.sqlite-shm"]) {
      rmSync(join(folder.path, ".portico", name), { force: true });
    }
    const { proxy } = JSON.parse(ports) as Record<string, number>;
    const taken = createServer().listen(proxy, "127.0.0.1");
    let second: PorticoProcess;
    {
      await using service = await start();
      second = service;
      await service.stop();
    }
    taken.close();
    const later = checkedLines(second.stderr());
    expect(later.map(({ msg }) => msg)).toEqual(
      expect.arrayContaining([
        expect.stringContaining("has lost its last writes"),
        "The proxy listener cannot use the port of earlier starts",
      ]),
    );
    for (const secret of [PROMPT, OWNER, "service_", "secret-query"]) {
      expect(first.stderr() + second.stderr()).not.toContain(secret);
    }
  } finally {
    folder.remove();
  }
});

async function useProxy(service: PorticoProcess): Promise<void> {
  const statuses: number[] = [];
  const ask = async (...args: Parameters<typeof call> extends [unknown, ...infer Rest] ? Rest : never) =>
    void statuses.push((await call(service, ...args)).status);
  await ask("main", "/chat/completions", question("echo-large"));
  await ask("main", "/chat/completions", { ...question("echo-large"), stream: true });
  // Converted.
  await ask("main", "/messages", { ...question("echo-large"), max_tokens: 10 });
  await ask("main", "/chat/completions", question("unknown-model"));
  await ask("main", "/chat/completions", "{");
  await ask("gone", "/messages", { ...question("m"), max_tokens: 10 });
  await ask("lost", "/messages", { ...question("m"), max_tokens: 10 });
  await ask("main", `/${PROMPT}?secret-query=1`, question("echo-large"));
  await ask("main", "/chat/completions", question("echo-large"), { "x-api-key": `wrong-${OWNER}` });
  await ask("main", "/chat/completions", question("echo-large"), { "content-type": "text/plain" });
  await ask("main", "/models", undefined, {}, "DELETE");
  await ask("main", "/models", undefined, {}, "GET");
  expect(new Set(statuses)).toEqual(new Set([200, 400, 401, 404, 405, 415, 502]));
  await expect
    .poll(() => checkedLines(service.stderr()).filter(({ area }) => area === "model-proxy").length)
    .toBeGreaterThanOrEqual(10);
}

/** A caller that does not wait for its answer. */
async function leaveEarly(service: PorticoProcess, upstream: FakeUpstream): Promise<void> {
  const leaving = new AbortController();
  upstream.answerNext(({ over }) => over);
  const open = call(service, "main", "/chat/completions", question("echo-large"), {}, "POST", leaving.signal).catch(() => {});
  await expect.poll(() => upstream.openExchanges).toBe(1);
  leaving.abort();
  await open;
  await expect.poll(() => service.stderr()).toContain('"status":499');
}

async function useServices(service: PorticoProcess): Promise<void> {
  const { workflowServiceToken } = JSON.parse(service.read("credentials.json")) as Record<string, string>;
  const workflow = { "x-workflow-service-token": workflowServiceToken!, "content-type": "application/json" };
  const owner = { "x-agent-service-token": OWNER, "content-type": "application/json" };
  const url = (surface: string, path: string) => `${service.url(surface)}${path}`;
  await fetch(url("workflow", "/api/workflow/webhook?id=fails"), { method: "POST", headers: workflow, body: "{}" });
  await fetch(url("agent", "/api/agents"), {
    headers: { ...owner, traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
  });
  await fetch(url("agent", "/api/agents"), { headers: { "x-agent-service-token": "wrong", "x-request-id": "from-a-proxy" } });
  await fetch(url("agent", "/healthz"), { headers: { "x-request-id": "not accepted" } });
  expect((await httpCall(service.url("agent"), { path: "/api/agents", headers: { host: "evil.example" } })).status).toBe(421);
  // An event stream that its reader leaves.
  const left = new AbortController();
  await fetch(url("workflow", "/api/workflow/events"), { headers: workflow, signal: left.signal });
  left.abort();

  const hello = { token: OWNER, clientInstanceId: "client-of-the-test" };
  const socket = io(service.url("agent"), { auth: hello, transports: ["websocket"], reconnection: false });
  try {
    await connected(socket);
    socket.emit("event-that-is-not-declared", { prompt: PROMPT });
    await using client = connectAgent({ baseURL: service.url("agent"), token: OWNER });
    expect((await client.submit({ agentId: "helper", prompt: PROMPT }).ended).status).toBe("failed");
    await expect.poll(() => service.stderr()).toContain("is not declared");
  } finally {
    socket.disconnect();
  }
}

function question(model: string): Record<string, unknown> {
  return { model, messages: [{ role: "user", content: PROMPT }] };
}

async function call(
  service: PorticoProcess,
  provider: string,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
  method = "POST",
  signal?: AbortSignal,
): Promise<Response> {
  const token = await service.token(provider);
  const answer = await fetch(`${service.url("proxy")}${path}`, {
    method,
    ...(signal && { signal }),
    headers: { "x-api-key": token, "content-type": "application/json", ...headers },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  await answer.text().catch(() => {});
  return answer;
}
