import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PorticoProcess, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

describe("portico start local --json (open points 1)", () => {
  let service: PorticoProcess;
  beforeAll(async () => {
    service = await startPortico({ hasOwnProcess: true });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it("standard output carries exactly one line when everything listens, and nothing else", async () => {
    const agent = await fetch(`${service.url("agent")}/readyz`);
    const proxy = await fetch(`${service.url("proxy")}/models`);

    expect([agent.status, proxy.status]).toEqual([200, 401]);
    expect(service.stdout()).toBe(`${JSON.stringify(service.ready)}\n`);
  });

  it("the line names the process and the preset's own listeners, each on 127.0.0.1 with a port of its own; the proxy's URL ends in /v1", () => {
    const { event, pid, listeners } = service.ready;

    expect(event).toBe("ready");
    expect(() => process.kill(pid, 0)).not.toThrow();
    expect(Object.keys(listeners)).toEqual(["proxy", "workflow", "agent"]);
    expect(listeners["proxy"]?.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/);
    expect(listeners["agent"]?.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(new URL(service.url("proxy")).port).not.toBe(new URL(service.url("agent")).port);
  });

  it("the same object, without event, is in endpoints.json with mode 0600", () => {
    const { event: _, ...endpoints } = service.ready;

    expect(JSON.parse(service.read("endpoints.json"))).toEqual(endpoints);
    expect(modeOf(join(service.dataDir, "endpoints.json"))).toBe("600");
  });

  it("the data directory and everything in it is for its owner alone", () => {
    expect(modeOf(service.dataDir)).toBe("700");
    for (const name of ["credentials.json", "lock", "records.sqlite"])
      expect(modeOf(join(service.dataDir, name)), name).toBe("600");
  });

  it("logs go to standard error", async () => {
    await fetch(`${service.url("agent")}/healthz`);

    await expect.poll(() => service.stderr()).toContain("probes-agent.alive");
  });

  it("a token that no setting gives is made, kept in credentials.json, good for the agent service, and never logged", async () => {
    const { agentServiceToken } = JSON.parse(service.read("credentials.json")) as { agentServiceToken: string };

    const answer = await fetch(`${service.url("agent")}/api/safe-tokens`, {
      headers: { "x-agent-service-token": agentServiceToken },
    });

    expect(answer.status).toBe(200);
    expect(service.stdout() + service.stderr()).not.toContain(agentServiceToken);
  });

  it("healthz and readyz are open on every listener but the proxy (4)", async () => {
    const statuses = async (url: string) =>
      Promise.all(["/healthz", "/readyz"].map(async (path) => (await fetch(new URL(path, url))).status));

    expect(await statuses(service.url("agent"))).toEqual([200, 200]);
    expect(await statuses(service.url("proxy"))).toEqual([404, 404]);
  });

  it("a second process on the same data directory is refused with one clear line and exit code 75; nothing is harmed", async () => {
    const endpoints = service.read("endpoints.json");

    const second = await service.run("start", "--json");

    expect(second).toEqual({
      code: 75,
      stdout: "",
      stderr: `The data directory ${service.dataDir} is in use by the running process ${service.pid}: stop it, or give this one another --data-dir\n`,
    });
    expect(service.read("endpoints.json")).toBe(endpoints);
    expect((await fetch(`${service.url("agent")}/readyz`)).status).toBe(200);
  });

  it("token issue prints the token alone; issue, list and revoke work beside the running service, at once (2)", async () => {
    const ask = async (token: string) =>
      (await fetch(`${service.url("proxy")}/models`, { headers: { authorization: `Bearer ${token}` } })).status;

    const issued = await service.run("token", "issue", "--provider", "demo", "--label", "my laptop");
    const token = issued.stdout.trim();
    expect(issued).toEqual({ code: 0, stdout: `${token}\n`, stderr: "" });
    expect(token).toMatch(/^service_[\w-]{43}$/);
    expect(await ask(token)).toBe(200);

    const listed = await service.run("token", "list", "--json");
    const [entry] = JSON.parse(listed.stdout) as { tokenId: string; providerId: string; label: string }[];
    expect(entry).toMatchObject({ providerId: "demo", label: "my laptop" });
    expect(listed.stdout).not.toContain(token);
    expect((await service.run("token", "list")).stdout).toContain("my laptop");

    expect(await service.run("token", "revoke", entry!.tokenId)).toMatchObject({ code: 0 });
    expect(await ask(token)).toBe(401);
    expect(await service.run("token", "revoke", entry!.tokenId)).toMatchObject({
      code: 1,
      stderr: "No safe token has this id\n",
    });
  });

  it("token revoke --all revokes every token at once", async () => {
    const token = await service.token("demo");

    expect(await service.run("token", "revoke", "--all")).toMatchObject({ code: 0, stdout: "Revoked 1 safe token.\n" });
    expect((await fetch(`${service.url("proxy")}/models`, { headers: { "x-api-key": token } })).status).toBe(401);
  });

  it("no token is issued for a provider that is not there", async () => {
    const result = await service.run("token", "issue", "--provider", "dmeo");

    expect(result).toMatchObject({
      code: 64,
      stdout: "",
      stderr: 'No enabled provider has the id "dmeo". Enabled providers: demo\n',
    });
  });

  // Last in this file: it stops the service.
  it("SIGTERM stops it with exit code 0, and endpoints.json is gone", async () => {
    expect(await service.stop()).toBe(0);
    expect(existsSync(join(service.dataDir, "endpoints.json"))).toBe(false);
    expect(readFileSync(join(service.dataDir, "credentials.json"), "utf8")).toContain("agentServiceToken");
    expect(service.stdout()).toBe(`${JSON.stringify(service.ready)}\n`);
  });
});

describe("portico start, for a person", () => {
  it("the tokens that were made are shown once, on a terminal, and the start says where things are", async () => {
    const terminal = "process.stderr.isTTY = true;";
    // It asks itself to stop once it has said that it runs.
    const untilReady = `const write = process.stdout.write;
      process.stdout.write = (...all) => {
        setImmediate(() => process.emit("SIGINT"));
        return write.apply(process.stdout, all);
      };`;
    const folder = temporaryFolder();
    try {
      const first = await runPortico(["start"], { cwd: folder.path, before: terminal + untilReady });
      const second = await runPortico(["start"], { cwd: folder.path, before: terminal + untilReady });

      const credentials = readFileSync(join(folder.path, ".portico/credentials.json"), "utf8");
      const tokens = JSON.parse(credentials) as { agentServiceToken: string; workflowServiceToken: string };
      expect([first.code, second.code]).toEqual([0, 0]);
      for (const [name, token] of [
        ["Agent service token", tokens.agentServiceToken],
        ["Workflow service token", tokens.workflowServiceToken],
      ] as const) {
        expect(first.stderr.split(token)).toHaveLength(2);
        expect(first.stderr).toMatch(new RegExp(`^${name}, shown only once .*: ${token}$`, "m"));
        expect(second.stderr).not.toContain(token);
        expect(first.stdout).not.toContain(token);
      }
      expect(first.stdout).toMatch(/proxy {5}http:\/\/127\.0\.0\.1:\d+\/v1/);
      expect(first.stdout).toContain('the offline model "demo" is available');
      expect(first.stdout).toMatch(/portico\S* token issue --provider demo/);
    } finally {
      folder.remove();
    }
  });
});
