import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { connect } from "node:tls";
import { Server } from "@modelcontextprotocol/server";
import { io, type Socket } from "socket.io-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { connectMcp, textOf } from "../../harness/mcp-client.ts";
import { listen, startMcpHttpServer } from "../../harness/mcp-http-server.ts";
import { hasOpenssl, makeCertificate, type OwnCertificate } from "../../harness/own-certificate.ts";
import { type PorticoProcess, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { after, json } from "../../harness/upstream-answers.ts";

const PATIENT = { timeout: 30_000, interval: 50 };
const HOUR_MS = 3_600_000;

let folder: ReturnType<typeof temporaryFolder>;
const sockets: Socket[] = [];
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.disconnect();
  folder.remove();
});

const secretFile = (name: string) => join(folder.path, name);
const write = (name: string, value: string) => writeFileSync(secretFile(name), value, { mode: 0o600 });

/** A service with an owner's token in the file `owner`, and a member's in `member`. */
function start(config: object = {}, rotation: object = {}): Promise<PorticoProcess> {
  const tokens = [
    { token: { file: "owner" }, userId: "owner", role: "owner" },
    { token: { file: "member" }, userId: "member", role: "member" },
  ];
  return startPortico({
    cwd: folder.path,
    hasOwnProcess: true,
    config: {
      shutdownGraceMs: 100,
      rotation: { overlapMs: HOUR_MS, watchMs: 0, ...rotation },
      agent: { tokens },
      ...config,
    },
  });
}

const ask = async (service: PorticoProcess, token: string) =>
  (await fetch(`${service.url("agent")}/api/agents`, { headers: { "x-agent-service-token": token } })).status;

async function connected(service: PorticoProcess, token: string): Promise<Socket> {
  const auth = { token, clientInstanceId: "rotation-test-client" };
  const socket = io(service.url("agent"), { auth, transports: ["websocket"], reconnection: false });
  sockets.push(socket);
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("connect_error", reject);
  });
  return socket;
}

/** Read the secrets again, and wait until that is logged. */
async function hangUp(service: PorticoProcess, said: "were read again" | "could not be read again" = "were read again") {
  const count = () => service.stderr().split(`Secrets ${said}`).length;
  const before = count();
  service.signal("SIGHUP");
  await expect.poll(count, PATIENT).toBeGreaterThan(before);
}

describe("tokens in files", () => {
  beforeEach(() => {
    write("owner", "owner-1\n");
    write("member", "member-1\n");
  });

  it("are read again on SIGHUP: the new one and the earlier one are valid side by side, and no connection is cut", async () => {
    await using service = await start();
    const socket = await connected(service, "member-1");
    write("member", "member-2\n");
    expect(await ask(service, "member-2")).toBe(401);
    await hangUp(service);
    expect([await ask(service, "member-1"), await ask(service, "member-2"), await ask(service, "owner-1")]).toEqual([
      200, 200, 200,
    ]);
    expect(socket.connected).toBe(true);
    expect(service.stderr()).not.toMatch(/member-[12]/);
  });

  it("end with the overlap, and so do the realtime connections of ended tokens, but no others", async () => {
    await using service = await start({}, { overlapMs: 500 });
    const [ending, staying] = [await connected(service, "member-1"), await connected(service, "owner-1")];
    write("member", "member-2\n");
    await hangUp(service);
    await expect.poll(() => ask(service, "member-1"), PATIENT).toBe(401);
    await expect.poll(() => ending.connected, PATIENT).toBe(false);
    expect([await ask(service, "member-2"), await ask(service, "owner-1"), staying.connected]).toEqual([200, 200, true]);
    await expect(connected(service, "member-1")).rejects.toThrow();
  });

  it("end with the overlap, and so does a log that is followed with one of them", async () => {
    await using service = await start({}, { overlapMs: 500 });
    const follow = (token: string) => fetch(`${service.url("agent")}/api/log`, { headers: { "x-agent-service-token": token } });
    const followed = await follow("owner-1");
    write("owner", "owner-2\n");
    await hangUp(service);
    expect(await followed.text()).toContain("event: log:opened");
    expect((await follow("owner-1")).status).toBe(401);
  });

  it("end with the overlap, and a call of a workflow or an agent over MCP that has begun goes on to its end", async () => {
    const called: (() => void)[] = [];
    const waiting = await startMcpHttpServer(() => {
      const server = new Server({ name: "waiting", version: "1" }, { capabilities: { tools: {} } });
      const wait = { name: "wait", description: "Waits", inputSchema: { type: "object" as const } };
      server.setRequestHandler("tools/list", () => ({ tools: [wait] }));
      server.setRequestHandler("tools/call", async () => {
        await new Promise<void>((resolve) => called.push(resolve));
        return { content: [{ type: "text" as const, text: "waited" }] };
      });
      return server;
    });
    write("flow", "flow-1");
    for (const each of ["agents", "agents/waiter", "workflows"]) mkdirSync(join(folder.path, each));
    write("agents/waiter/agent.json", JSON.stringify({ name: "Waiter", mcp: true, tools: ["shop/wait"] }));
    const node = { type: "tool", with: { tool: "shop/wait" } };
    write("workflows/waits.json", JSON.stringify({ mcp: true, nodes: { a: node }, outputs: { said: "done" } }));
    const tokens = [{ token: { file: "member" }, userId: "member", role: "member" }];
    const more = { agent: { tokens, mcp: true }, workflow: { token: { file: "flow" }, mcp: true } };
    await using service = await start({ ...more, mcpServers: { shop: { url: waiting.url } } }, { overlapMs: 500 });
    const agents = await connectMcp(service.url("agent"), "member-1");
    const flows = await connectMcp(service.url("workflow"), "flow-1");
    const answers = [
      agents.callTool({ name: "waiter", arguments: { message: "Use shop_wait" } }),
      flows.callTool({ name: "waits" }),
    ];
    await expect.poll(() => called.length, PATIENT).toBe(2);
    write("member", "member-2\n");
    write("flow", "flow-2\n");
    await hangUp(service);
    await expect.poll(() => ask(service, "member-1"), PATIENT).toBe(401);
    const refused = () => flows.listTools().then(String, (error: Error) => error.message);
    await expect.poll(refused, PATIENT).toContain("unauthorized");
    for (const end of called) end();
    const [said, outputs] = await Promise.all(answers);
    expect([textOf(said!), textOf(outputs!)]).toEqual([expect.stringContaining("waited"), '{"said":"done"}']);
    await expect(agents.callTool({ name: "waiter", arguments: { message: "Again" } })).rejects.toThrow("unauthorized");
    await Promise.all([agents.close(), flows.close()]);
    await waiting.close();
  });

  it("are read again when a file changes", async () => {
    await using service = await start({}, { watchMs: 20 });
    write("member", "member-2\n");
    await expect.poll(() => ask(service, "member-2"), PATIENT).toBe(200);
    // Each change counts, also one of the same length soon after another.
    write("member", "member-3\n");
    write("owner", "owner-2\n");
    await expect.poll(() => ask(service, "member-3"), PATIENT).toBe(200);
    await expect.poll(() => ask(service, "owner-2"), PATIENT).toBe(200);
  });

  it("are read again when a link to their folder leads to another folder, as Kubernetes changes secrets", async () => {
    const lay = (version: string, value: string) => {
      mkdirSync(join(folder.path, version));
      write(`${version}/token`, value);
      symlinkSync(version, secretFile("..data_tmp"));
      renameSync(secretFile("..data_tmp"), secretFile("..data"));
    };
    lay("..first", "owner-1");
    rmSync(secretFile("owner"));
    symlinkSync("..data/token", secretFile("owner"));
    await using service = await start({}, { watchMs: 20 });
    lay("..second", "owner-2");
    rmSync(secretFile("..first"), { recursive: true });
    await expect.poll(() => ask(service, "owner-2"), PATIENT).toBe(200);
    expect(await ask(service, "owner-1")).toBe(200);
  });

  it.each<[string, () => void]>([
    ["an empty file", () => write("member", "")],
    ["a missing file", () => rmSync(secretFile("member"))],
    ["a file with an invalid token", () => write("member", "two words")],
    ["a token that another holder has", () => write("member", "owner-2")],
  ])("stay as they are with %s: one line without the token, and a metric", async (_what, spoil) => {
    await using service = await start();
    write("owner", "owner-2");
    spoil();
    await hangUp(service, "could not be read again");
    expect([await ask(service, "owner-1"), await ask(service, "member-1"), await ask(service, "owner-2")]).toEqual([
      200, 200, 401,
    ]);
    const lines = service
      .stderr()
      .split("\n")
      .filter((line) => line.includes("could not be read again"));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("agent.tokens");
    expect(service.stderr()).not.toMatch(/owner-[12]|member-1|two words/);
    const metrics = await fetch(`${service.url("agent")}/metrics`, { headers: { "x-agent-service-token": "owner-1" } });
    expect(await metrics.text()).toMatch(/^portico_secret_rotations\{outcome="refused"\} 1$/m);

    write("member", "member-2");
    await hangUp(service);
    expect([await ask(service, "owner-2"), await ask(service, "member-2")]).toEqual([200, 200]);
  });

  it("say a refused file once, while the file stays as it is", async () => {
    await using service = await start({}, { watchMs: 20 });
    write("member", "");
    await expect.poll(() => service.stderr(), PATIENT).toContain("could not be read again");
    write("owner", "owner-2");
    await expect.poll(() => service.stderr().split("could not be read again").length, PATIENT).toBe(3);
    write("member", "member-2");
    await expect.poll(() => ask(service, "owner-2"), PATIENT).toBe(200);
    expect(service.stderr().split("could not be read again")).toHaveLength(3);
  });

  it("of a configuration file are read again on SIGHUP: added ones, removed ones, and how long removed ones stay", async () => {
    await using service = await start();
    const owner = { token: { file: "owner" }, userId: "owner", role: "owner" };
    const scraper = { token: "scraper-1", role: "service" };
    const config = (tokens: readonly object[], overlapMs: number) =>
      write("portico.config.json", JSON.stringify({ rotation: { overlapMs, watchMs: 0 }, agent: { tokens } }));
    config([owner, scraper], HOUR_MS);
    await hangUp(service);
    expect([await ask(service, "scraper-1"), await ask(service, "member-1")]).toEqual([200, 200]);
    config([owner], 0);
    await hangUp(service);
    expect([await ask(service, "scraper-1"), await ask(service, "member-1"), await ask(service, "owner-1")]).toEqual([
      401, 401, 200,
    ]);
  });

  it("give the new holder's rights at once, if a token has another holder", async () => {
    await using service = await start();
    const socket = await connected(service, "member-1");
    const tokens = [
      { token: { file: "owner" }, userId: "owner", role: "owner" },
      { token: { file: "member" }, userId: "other", role: "member" },
    ];
    write("portico.config.json", JSON.stringify({ agent: { tokens } }));
    await hangUp(service);
    await expect.poll(() => socket.connected, PATIENT).toBe(false);
    const reply = await fetch(`${service.url("agent")}/api/handshake`, { headers: { "x-agent-service-token": "member-1" } });
    expect(await reply.json()).toMatchObject({ identity: { userId: "other" } });
  });
});

describe("the workflow service's token", () => {
  const askFlow = async (service: PorticoProcess, token: string) =>
    (await fetch(`${service.url("workflow")}/api/workflows`, { headers: { "x-workflow-service-token": token } })).status;

  it("is read again from its file, and the earlier one ends with the overlap", async () => {
    write("owner", "owner-1");
    write("member", "member-1");
    write("flow", "flow-1");
    await using service = await start({ workflow: { token: { file: "flow" } } }, { overlapMs: 500, watchMs: 20 });
    expect(await askFlow(service, "flow-1")).toBe(200);
    write("flow", "flow-2");
    await expect.poll(() => askFlow(service, "flow-2"), PATIENT).toBe(200);
    await expect.poll(() => askFlow(service, "flow-1"), PATIENT).toBe(401);
    expect(await askFlow(service, "flow-2")).toBe(200);
  });

  it("and the owner's token are rotated by a command, if the instance created them", async () => {
    await using service = await startPortico({
      cwd: folder.path,
      hasOwnProcess: true,
      config: { rotation: { watchMs: 20 }, shutdownGraceMs: 100 },
    });
    const before = JSON.parse(service.read("credentials.json")) as Record<string, string>;
    const flow = (await service.run("token", "rotate", "workflow")).stdout.trim();
    const owner = (await service.run("token", "rotate", "agent")).stdout.trim();
    expect([flow, owner]).toEqual([expect.stringMatching(/^workflow_/), expect.stringMatching(/^agent_/)]);
    await expect.poll(() => askFlow(service, flow), PATIENT).toBe(200);
    await expect.poll(() => ask(service, owner), PATIENT).toBe(200);
    expect(await ask(service, before["agentServiceToken"]!)).toBe(200);
    expect(await service.run("token", "rotate", "proxy")).toMatchObject({ code: 64, stdout: "" });
    expect(await service.stop()).toBe(0);
  });

  it("is not rotated by a command, if a setting gives it", async () => {
    write("owner", "owner-1");
    write("member", "member-1");
    await using service = await start();
    const { code, stderr } = await service.run("token", "rotate", "agent");
    expect([code, stderr]).toEqual([64, expect.stringContaining("agent.tokens")]);
  });
});

describe("a provider's key", () => {
  let upstream: FakeUpstream;
  beforeEach(async () => {
    write("owner", "owner-1");
    write("member", "member-1");
    upstream = await startFakeUpstream();
  });
  afterEach(() => upstream.close());

  it("and its headers are read again for the next call; a call in progress finishes", async () => {
    write("key", "key-1");
    write("extra", "extra-1");
    const { baseUrl } = upstream;
    const provider = { id: "main", protocol: "chat-completions", baseUrl, models: ["echo-large"] };
    const secrets = { credential: { file: "key" }, headers: { "x-extra-key": { file: "extra" } } };
    await using service = await start({ providers: [{ ...provider, ...secrets }] });
    const token = await service.token("main");
    const call = () =>
      fetch(`${service.url("proxy")}/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": token, "content-type": "application/json" },
        body: JSON.stringify({ model: "echo-large", messages: [{ role: "user", content: "Hello" }] }),
      });
    const gate = Promise.withResolvers<void>();
    upstream.answerNext(after(gate.promise, json(200, { choices: [] })));
    const open = call();
    await upstream.request(1);
    write("key", "key-2");
    write("extra", "extra-2");
    await hangUp(service);
    expect((await call()).status).toBe(200);
    gate.resolve();
    expect((await open).status).toBe(200);
    expect(upstream.requests.map(({ headers }) => [headers["authorization"], headers["x-extra-key"]])).toEqual([
      ["Bearer key-1", "extra-1"],
      ["Bearer key-2", "extra-2"],
    ]);
    expect(service.stderr()).not.toMatch(/key-[12]|extra-[12]/);
  });

  it("is refused if it is a token of this instance", async () => {
    write("key", "key-1");
    const provider = { id: "main", protocol: "chat-completions", baseUrl: upstream.baseUrl, models: ["echo-large"] };
    await using service = await start({ providers: [{ ...provider, credential: { file: "key" } }] });
    write("key", "owner-1");
    await hangUp(service, "could not be read again");
    expect(service.stderr()).toContain("a token of this instance");
  });
});

describe("secrets of workflows and of MCP servers", () => {
  beforeEach(() => {
    write("owner", "owner-1");
    write("member", "member-1");
    write("key", "first-secret");
  });

  it("are read again for the next node; earlier values stay masked", async () => {
    const seen: (string | undefined)[] = [];
    const gate = Promise.withResolvers<void>();
    const target = createServer(async (request, response) => {
      seen.push(request.headers.authorization);
      if (seen.length === 1) await gate.promise;
      response.setHeader("content-type", "application/json").end(JSON.stringify({ said: "first-secret, second-secret" }));
    });
    const url = `http://127.0.0.1:${await listen(target)}/`;
    const node = { type: "http", with: { method: "GET", url, headers: { authorization: "Bearer ${{ secrets.KEY }}" } } };
    mkdirSync(join(folder.path, "workflows"));
    const nodes = { one: node, two: { ...node, needs: ["one"] } };
    const outputs = { said: "${{ nodes.one.output.body.said + nodes.two.output.body.said }}" };
    writeFileSync(secretFile("workflows/call.json"), JSON.stringify({ nodes, outputs }));
    try {
      const workflow = { secrets: { KEY: { file: "key" } }, http: { allow: ["127.0.0.1"] }, token: "workflow-token-1" };
      await using service = await start({ workflow });
      const headers = { "x-workflow-service-token": "workflow-token-1", "content-type": "application/json" };
      const base = `${service.url("workflow")}/api/workflow`;
      const started = await fetch(`${base}/webhook?id=call`, { method: "POST", headers, body: "{}" });
      const { runId } = (await started.json()) as { runId: string };
      await expect.poll(() => seen, PATIENT).toHaveLength(1);
      write("key", "second-secret");
      await hangUp(service);
      gate.resolve();
      const runOf = async () => (await (await fetch(`${base}/call/runs/${runId}`, { headers })).json()) as any;
      await expect.poll(async () => (await runOf()).status, PATIENT).toBe("completed");
      expect(seen).toEqual(["Bearer first-secret", "Bearer second-secret"]);
      const text = JSON.stringify(await runOf());
      expect([text.includes("***, ***"), text.match(/(first|second)-secret/)]).toEqual([true, null]);
      expect(service.stderr()).not.toMatch(/(first|second)-secret/);
      const { stdout } = await service.run("audit", "--json", "--action", "secrets.rotate");
      expect(stdout).toContain('"object":"workflow.secrets"');
    } finally {
      target.closeAllConnections();
      target.close();
    }
  });

  it("are read again for the next call of a tool", async () => {
    const server = await startMcpHttpServer();
    try {
      const headers = { authorization: { file: "key" } };
      await using service = await start({ mcpServers: { shop: { url: server.url, headers } } }, { watchMs: 20 });
      await expect.poll(() => server.headers.at(-1)?.authorization, PATIENT).toBe("first-secret");
      write("key", "second-secret");
      await expect.poll(() => server.headers.at(-1)?.authorization, PATIENT).toBe("second-secret");
      expect(service.stderr()).not.toMatch(/(first|second)-secret/);
    } finally {
      await server.close();
    }
  });
});

describe.skipIf(!hasOpenssl())("the certificate of https.cert", () => {
  it("is shown to new connections when both files are replaced; open ones go on; a pair that does not fit is refused", async () => {
    write("owner", "owner-1");
    write("member", "member-1");
    const folders = [1, 2].map(() => temporaryFolder());
    const [first, second] = folders.map(({ path }) => makeCertificate(path, ["IP:127.0.0.1"])) as [
      OwnCertificate,
      OwnCertificate,
    ];
    write("tls.pem", first.certificate);
    write("tls.key", first.key);
    await using service = await start({ https: { cert: "tls.pem", key: "tls.key" } }, { watchMs: 20 });
    const { hostname, port } = new URL(service.url("agent"));
    const shown = async () => {
      const socket = connect({ host: hostname, port: Number(port), ca: [first.certificate, second.certificate] });
      await once(socket, "secureConnect");
      return { socket, fingerprint: socket.getPeerCertificate().fingerprint256 };
    };
    const fingerprintOf = (text: string) => new X509Certificate(text).fingerprint256;
    const open = await shown();
    expect(open.fingerprint).toBe(fingerprintOf(first.certificate));
    write("tls.pem", second.certificate);
    await expect.poll(() => service.stderr(), PATIENT).toContain("the key does not belong to the certificate");
    const still = await shown();
    expect(still.fingerprint).toBe(fingerprintOf(first.certificate));
    write("tls.key", second.key);
    await expect
      .poll(async () => {
        const { socket, fingerprint } = await shown();
        socket.destroy();
        return fingerprint;
      }, PATIENT)
      .toBe(fingerprintOf(second.certificate));
    open.socket.write(`GET /healthz HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n\r\n`);
    expect((await open.socket.toArray()).join("")).toMatch(/^HTTP\/1\.1 200/);
    still.socket.destroy();
    folders.forEach((each) => each.remove());
  });
});

it("SIGHUP during the start ends no service", async () => {
  write("owner", "owner-1");
  write("member", "member-1");
  await using service = await startPortico({
    cwd: folder.path,
    hasOwnProcess: true,
    before: "process.on('newListener', (name) => name === 'SIGHUP' && setImmediate(() => process.kill(process.pid, 'SIGHUP')))",
  });
  await expect.poll(() => service.stderr(), PATIENT).toContain("Secrets were read again");
});
