import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { io } from "socket.io-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PorticoProcess, runCommand, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

const LINK = /^(https?:\/\/\S+)\/#\/sign-in\/(signin_[\w-]{43})$/;

function signIn(url: string, link: string): Promise<Response> {
  const code = LINK.exec(link)![2];
  return fetch(`${url}/api/sign-in`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
}

describe("portico console", () => {
  let service: PorticoProcess;
  beforeAll(async () => {
    service = await startPortico({ args: ["local"], config: { agent: { publicUrl: "https://agents.example/desk/" } } });
  });
  afterAll(() => service[Symbol.asyncDispose]());
  const tokens = () =>
    JSON.parse(service.read("credentials.json")) as { agentServiceToken: string; workflowServiceToken: string };
  const session = async () => {
    const link = (await service.run("console")).stdout.trim();
    return ((await (await signIn(service.url("agent"), link)).json()) as { token: string }).token;
  };
  const status = async (surface: string, path: string, headers: Record<string, string>, method = "GET") =>
    (await fetch(service.url(surface) + path, { method, headers })).status;

  it("prints a link alone, at the public address, that signs in once", async () => {
    const { code, stdout, stderr } = await service.run("console");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^\S+\n$/);
    expect(LINK.exec(stdout.trim())![1]).toBe("https://agents.example/desk");
    const answer = await signIn(service.url("agent"), stdout.trim());
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const { token } = (await answer.json()) as { token: string };
    expect(token).not.toContain(tokens().agentServiceToken);
    const handshake = await fetch(`${service.url("agent")}/api/handshake`, { headers: { "x-agent-service-token": token } });
    expect(await handshake.json()).toMatchObject({ identity: { userId: "owner", role: "owner" } });
    expect((await signIn(service.url("agent"), stdout.trim())).status).toBe(401);
  });

  it("prints the link and its end as JSON", async () => {
    const { stdout } = await service.run("console", "--json");
    const { url, expiresAt, ...more } = JSON.parse(stdout) as Record<string, string>;
    expect([url, expiresAt, more]).toEqual([expect.stringMatching(LINK), expect.stringMatching(/^\d{4}-.*Z$/), {}]);
  });

  it("takes another address of the service, and prints links for it", async () => {
    const { stdout } = await service.run("console", "--url", service.url("agent"));
    expect(LINK.exec(stdout.trim())![1]).toBe(service.url("agent"));
  });

  it("leaves no code in the data directory", async () => {
    const { stdout } = await service.run("console");
    const code = LINK.exec(stdout.trim())![2]!;
    for (const file of readdirSync(service.dataDir, { withFileTypes: true }).filter((each) => each.isFile()))
      expect([file.name, readFileSync(join(service.dataDir, file.name)).includes(code)]).toEqual([file.name, false]);
  });

  it("gives a session that is no credential of other areas, and no instance access token", async () => {
    const token = await session();
    expect(await status("workflow", "/api/workflows", { "x-workflow-service-token": token })).toBe(401);
    expect(await status("proxy", "/models", { authorization: `Bearer ${token}` })).toBe(401);
    expect(await status("agent", "/api/sign-in-links", { "x-agent-service-token": token }, "POST")).toBe(403);
    expect(await status("agent", "/metrics", { "x-agent-service-token": token })).toBe(200);
  });

  it("gives a session whose realtime connections end when it is signed out", async () => {
    const token = await session();
    const auth = { token, clientInstanceId: `signed-in-${randomUUID()}` };
    const socket = io(service.url("agent"), { auth, reconnection: false, forceNew: true });
    try {
      await new Promise<void>((resolve, reject) => socket.on("connect", resolve).on("connect_error", reject));
      const gone = new Promise((resolve) => socket.on("disconnect", resolve));
      expect(await status("agent", "/api/session", { "x-agent-service-token": token }, "DELETE")).toBe(204);
      await gone;
    } finally {
      socket.disconnect();
    }
  });

  it("gives a session whose user gets short-lived tokens of the workflow service, which the agent service refuses", async () => {
    const headers = { "x-agent-service-token": await session() };
    const issued = await fetch(`${service.url("agent")}/api/service-tokens`, { method: "POST", headers });
    expect(issued.status).toBe(201);
    const { token, expiresAt } = (await issued.json()) as { token: string; expiresAt: string };
    const lifetimeMs = Date.parse(expiresAt) - Date.now();
    expect(lifetimeMs).toBeGreaterThan(0);
    expect(lifetimeMs).toBeLessThanOrEqual(600_000);
    expect(await status("workflow", "/api/workflows", { "x-workflow-service-token": token })).toBe(200);
    expect(await status("workflow", "/metrics", { "x-workflow-service-token": token })).toBe(200);
    for (const [surface, name] of [
      ["agent", "x-agent-service-token"],
      ["workflow", "x-agent-service-token"],
      ["proxy", "x-api-key"],
    ] as const)
      expect([surface, await status(surface, surface === "proxy" ? "/models" : "/metrics", { [name]: token })]).toEqual([
        surface,
        401,
      ]);
    const { agentServiceToken, workflowServiceToken } = tokens();
    expect(await status("workflow", "/api/workflows", { "x-workflow-service-token": agentServiceToken })).toBe(401);
    expect(await status("agent", "/api/service-tokens", { "x-agent-service-token": workflowServiceToken }, "POST")).toBe(401);
  });

  it("says so in one line if no service runs, and if the service has no console", async () => {
    const folder = temporaryFolder();
    try {
      const { code, stdout, stderr } = await runCommand(["console"], { cwd: folder.path });
      expect([code, stdout]).toEqual([69, ""]);
      expect(stderr).toMatch(/^No agent service runs with the data directory \S+: start it, or give its address with --url\n$/);
    } finally {
      folder.remove();
    }
    await using bare = await startPortico({ args: ["agent"] });
    expect(await bare.run("console")).toEqual({
      code: 1,
      stdout: "",
      stderr: "The agent service has no web console: set agent.console to true, and start it again\n",
    });
    expect((await bare.run("console", "--url", "http://127.0.0.1:1")).code).toBe(69);
    expect((await bare.run("console", "--url", "agents.example")).code).toBe(64);
  });
});

describe("short-lived tokens of the workflow service", () => {
  const config = {
    agent: {
      tokens: [
        { token: "owner-token-0123456789", userId: "owner", role: "owner" },
        { token: "member-token-0123456789", userId: "ada", role: "member" },
        { token: "service-token-0123456789", role: "service" },
      ],
    },
    workflow: { token: "workflow-token-0123456789" },
  };
  const issue = (url: string, token: string) =>
    fetch(`${url}/api/service-tokens`, { method: "POST", headers: { "x-agent-service-token": token } });

  it("are for owners, and end with the instance access token", async () => {
    const folder = temporaryFolder();
    try {
      const around = { cwd: folder.path, args: ["local"] };
      let token: string;
      {
        await using service = await startPortico({ ...around, config });
        for (const other of ["member", "service"])
          expect((await issue(service.url("agent"), `${other}-token-0123456789`)).status).toBe(403);
        token = ((await (await issue(service.url("agent"), "owner-token-0123456789")).json()) as { token: string }).token;
        await service.stop();
      }
      const list = async (url: string) =>
        (await fetch(`${url}/api/workflows`, { headers: { "x-workflow-service-token": token } })).status;
      {
        // Other processes with the same key accept them, also with the workflow service alone.
        await using service = await startPortico({ ...around, args: ["workflow"], config });
        expect(await list(service.url("workflow"))).toBe(200);
        await service.stop();
      }
      const rotated = { ...config, agent: { tokens: [{ token: "another-token-0123456789", userId: "owner", role: "owner" }] } };
      await using service = await startPortico({ ...around, config: rotated });
      expect(await list(service.url("workflow"))).toBe(401);
    } finally {
      folder.remove();
    }
  });

  it("are unknown to an agent service alone, whose handshake says so", async () => {
    await using service = await startPortico({ args: ["agent"], config });
    const url = service.url("agent");
    expect((await issue(url, "owner-token-0123456789")).status).toBe(404);
    const headers = { "x-agent-service-token": "owner-token-0123456789" };
    const { capabilities } = (await (await fetch(`${url}/api/handshake`, { headers })).json()) as any;
    expect(capabilities.serviceTokens ?? false).toBe(false);
  });
});

describe("a start", () => {
  /** It asks itself to stop once it has said that it runs. */
  const untilReady = `const write = process.stdout.write;
    process.stdout.write = (...all) => {
      setImmediate(() => process.emit("SIGINT"));
      return write.apply(process.stdout, all);
    };`;

  it("prints a link that signs in to the console, on a terminal alone", async () => {
    const terminal = await runPortico(["start"], { before: `process.stdout.isTTY = true;${untilReady}` });
    expect(terminal.stdout).toMatch(/^Console, signed in: http:\/\/127\.0\.0\.1:\d+\/#\/sign-in\/signin_[\w-]{43}$/m);
    expect(terminal.stdout).toMatch(/ console --data-dir \S+ prints another link|console prints another link/);
    const elsewhere = await runPortico(["start"], { before: untilReady });
    expect(elsewhere.stdout).toMatch(/^Console: http:\/\/127\.0\.0\.1:\d+\/ \(.* console prints a link that signs in\)$/m);
    expect(elsewhere.stdout + elsewhere.stderr).not.toContain("sign-in/");
  });

  it("prints no link with --json, nor without a console", async () => {
    const json = await runPortico(["start", "--json"], { before: `process.stdout.isTTY = true;${untilReady}` });
    expect(json.stdout).toMatch(/^\{"event":"ready",.*\}\n$/);
    expect(json.stdout).not.toContain("sign-in");
    const bare = await runPortico(["start", "agent"], { before: `process.stdout.isTTY = true;${untilReady}` });
    expect(bare.stdout).not.toContain("Console");
  });
});
