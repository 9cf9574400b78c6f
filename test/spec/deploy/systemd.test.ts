import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EXIT } from "../../../presets/cli/src/exit-codes.ts";
import { clusterPlace } from "../../harness/cluster.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { freePort } from "../../harness/ports.ts";
import { canRunSystemd, hasSystemd, startSystemd, type SystemdMachine } from "../../harness/systemd.ts";
import { root } from "../../rooms/repository.ts";
import { readPage } from "../docs/pages.ts";

const page = await readPage("docs/deploy/systemd.md");
const block = (words: string) => page.blocks.find(({ text }) => text.includes(words))!.text;
const unitText = (name: string) => readFileSync(join(root, "deploy/systemd", name), "utf8");
const units = ["portico.service", "portico-cluster@.service"];
/** For settings that have to be free ports here. */
const withFreePorts = async (text: string) => {
  let placed = text;
  for (const [port] of text.matchAll(/4915\d/g)) placed = placed.replace(port, String(await freePort()));
  return placed;
};

if (!hasSystemd()) console.warn("Tests of systemd's units are skipped: there is no systemd-analyze");
else if (!canRunSystemd()) console.warn("Tests that start systemd's units are skipped: only root can run a systemd of its own");

describe.skipIf(!hasSystemd())("the units of deploy/systemd", () => {
  it.each(units)("are valid: %s", (name) => {
    const folder = temporaryFolder();
    try {
      const file = join(folder.path, name.replace("@", "@1"));
      mkdirSync(folder.path, { recursive: true });
      writeFileSync(file, unitText(name).replaceAll("/opt/portico/", `${root}/`));
      const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", file], { encoding: "utf8" });
      // Units of this machine may have faults of their own.
      expect([status, stderr.split("\n").filter((line) => line.includes(basename(file)))]).toEqual([0, []]);
    } finally {
      folder.remove();
    }
  });

  it.each(units)("give a service few rights: %s", (name) => {
    const rate = ["security", "--offline=true", "--threshold=15", "--no-pager", join(root, "deploy/systemd", name)];
    const { status, stdout } = spawnSync("systemd-analyze", rate, { encoding: "utf8" });
    expect(stdout).toContain("Overall exposure level");
    expect(status, stdout).toBe(0);
  });

  it.each(units)("are not started again after exit codes that a start cannot mend: %s", (name) => {
    const codes = /^RestartPreventExitStatus=(.*)$/m.exec(unitText(name))![1]!.split(" ").map(Number);
    const hopeless: number[] = [
      EXIT.usage,
      EXIT.noInput,
      ...(name === "portico.service" ? [EXIT.cannotCreate] : []),
      EXIT.config,
    ];
    expect(codes).toEqual(hopeless);
  });
});

describe.skipIf(!canRunSystemd())("portico.service under a systemd of its own", () => {
  let machine: SystemdMachine;
  let port: string;
  const logged = "StandardOutput=append:/run/portico.log\nStandardError=append:/run/portico.log\n";
  const log = async () => (await machine.run("cat", "/run/portico.log")).stdout;
  const shell = (script: string) => machine.run("sh", "-ec", script);
  const show = async (property: string) =>
    (await machine.run("systemctl", "show", "portico", "--value", "--property", property)).stdout.trim();
  const endpoint = async (path: string) => fetch(`http://127.0.0.1:${port}${path}`).then(({ status }) => status);
  const config = "/etc/portico/portico.config.yaml";

  beforeAll(async () => {
    const settings = await withFreePorts(block("instance: { mode: remote }"));
    port = /agent: \{ listen: \{ port: (\d+)/.exec(settings)![1]!;
    machine = await startSystemd({
      "/etc/systemd/system/portico.service.d/override.conf": block("LoadCredential=main-key"),
      "/etc/systemd/system/portico.service.d/log.conf": `[Service]\n${logged}RestartSec=100ms\n`,
      "/etc/portico/credentials/main-key": "sk-of-the-provider\n",
      "/srv/helper/agent.json": '{ "name": "Helper", "instructions": "Answer briefly." }',
      [config]: settings,
    });
    const { code, stderr } = await shell(block("enable --now"));
    expect([code, stderr], await log()).toEqual([0, expect.any(String)]);
  });
  afterAll(() => machine?.[Symbol.asyncDispose]());

  it("is ready when systemctl start returns", async () => {
    expect(await endpoint("/readyz")).toBe(200);
    expect(await show("ActiveState")).toBe("active");
  });

  it("runs without rights, on a read-only file system, as a user of its own", async () => {
    const pid = await show("MainPID");
    const status = (await machine.run("cat", `/proc/${pid}/status`)).stdout;
    expect(status).toMatch(/^CapBnd:\t0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^Seccomp:\t2$/m);
    expect(status).toMatch(/^Uid:\t6[1-5]\d\d\d\t/m);
    const { stdout } = await machine.run("nsenter", "--target", pid, "--mount", "grep", " / / ", `/proc/self/mountinfo`);
    expect(stdout).toMatch(/ \/ ro,/);
  });

  it("gets the key of a provider as a credential, and not through its environment", async () => {
    const { stdout } = await machine.run("portico", "config");
    expect([await log(), stdout].join()).not.toContain("sk-of-the-provider");
    expect(stdout).toMatch(/credential.*\*\*\*/);
    expect((await shell(`tr '\\0' '\\n' < /proc/${await show("MainPID")}/environ`)).stdout).not.toContain("sk-of");
  });

  it("lets root run commands with the user, folders, settings and credentials of the service", async () => {
    const [issue, list] = block("portico token issue").split("\n");
    const issued = await shell(issue!);
    expect(issued.stderr).toBe("");
    expect((await shell(list!)).stdout).toContain("main");
    const models = await fetch(
      `http://127.0.0.1:${/proxy: \{ listen: \{ port: (\d+)/.exec((await machine.run("cat", config)).stdout)![1]}/v1/models`,
      {
        headers: { authorization: `Bearer ${issued.stdout.trim()}` },
      },
    );
    expect(await models.text()).toContain("m-large");
    // It finds faults: api.example does not exist.
    expect((await machine.run("portico", "doctor")).code).toBe(EXIT.failed);
    expect((await shell("find /var/lib/private/portico ! -user portico")).stdout).toBe("");
  });

  it("reads agents that root adds, and writes their webhooks", async () => {
    expect(await shell(`cd /srv\n${block("cp -r helper")}`)).toMatchObject({ code: 0, stderr: "" });
    const credentials = (await machine.run("cat", "/var/lib/portico/.portico/credentials.json")).stdout;
    const { agentServiceToken } = JSON.parse(credentials) as { agentServiceToken: string };
    const { status } = await fetch(`http://127.0.0.1:${port}/api/agents/helper/webhooks/events/deploy`, {
      method: "PUT",
      headers: { "x-agent-service-token": agentServiceToken, "content-type": "application/json" },
      body: JSON.stringify({ promptTemplate: "Deployed.", toolIds: [], maxTurns: 5 }),
    });
    expect(status).toBe(200);
    expect((await machine.run("cat", "/var/lib/portico/agents/helper/agent.json")).stdout).toContain("deploy");
  });

  it("accepts a token that was added to its settings when it is reloaded, and stays the same process", async () => {
    const handshake = () =>
      fetch(`http://127.0.0.1:${port}/api/handshake`, { headers: { "x-agent-service-token": "member-token-0123456789" } });
    expect((await handshake()).status).toBe(401);
    const pid = await show("MainPID");
    const tokens = "tokens: [{ token: member-token-0123456789, userId: ada, role: member }],";
    await shell(`sed -i 's/^agent: {/& ${tokens}/' ${config}`);
    expect(await machine.run("systemctl", "reload", "portico")).toMatchObject({ code: 0, stderr: "" });
    await expect.poll(async () => (await handshake()).status).toBe(200);
    expect(await show("MainPID")).toBe(pid);
  });

  it("is started again after it was killed", async () => {
    const first = await show("MainPID");
    await machine.run("kill", "-KILL", first);
    await expect.poll(() => show("NRestarts")).toBe("1");
    await expect.poll(() => endpoint("/readyz").catch(() => 0)).toBe(200);
    expect(await show("MainPID")).not.toBe(first);
  });

  it("comes back with its data from a backup, which was made while it ran", async () => {
    const records = async () => (await machine.run("portico", "token", "list", "--json")).stdout;
    const before = await records();
    expect(before).toContain("main");
    const made = await shell(block("portico backup"));
    expect([made.code, made.stderr]).toEqual([0, ""]);
    await machine.run("mv", "/var/lib/portico/portico.tar", "/srv/portico.tar");
    await machine.run("cp", "/srv/portico.tar", "/var/lib/portico/portico.tar");
    const restored = await shell(block("portico restore"));
    expect([restored.code, restored.stderr]).toEqual([0, ""]);
    expect(await records()).toBe(before);
    expect(await endpoint("/readyz")).toBe(200);
  });

  it("ends with 0 when it is stopped", async () => {
    await machine.run("systemctl", "stop", "portico");
    expect([await show("Result"), await show("ExecMainStatus")]).toEqual(["success", "0"]);
    await expect(endpoint("/healthz")).rejects.toThrow("fetch failed");
  });

  it("stays stopped, and systemctl start fails, if the configuration is invalid", async () => {
    await shell(`cp ${config} /srv/kept; echo 'proxi: {}' >> ${config}`);
    expect((await machine.run("systemctl", "start", "portico")).code).not.toBe(0);
    expect([await show("ActiveState"), await show("ExecMainStatus")]).toEqual(["failed", String(EXIT.config)]);
    expect(await log()).toContain("proxi: expected no such key");
    await shell(`cp /srv/kept ${config}`);
  });
});

const place = canRunSystemd() ? await clusterPlace() : undefined;
describe.skipIf(!place)("portico-cluster@.service under a systemd of its own", () => {
  let machine: SystemdMachine;
  afterAll(async () => {
    await machine?.[Symbol.asyncDispose]();
    await place?.remove();
  });

  it("starts processes of one cluster, with ports of their own and the same credentials", async () => {
    const { env } = place!;
    const settings = block("cluster:").replace("  redis: {", `  redis: { prefix: ${env["PORTICO_REDIS_PREFIX"]},`);
    const credentials = {
      ...{ "instance-key": env["PORTICO_INSTANCE_KEY"]!, "postgres-url": env["PORTICO_POSTGRES_URL"]! },
      ...{ "redis-url": env["PORTICO_REDIS_URL"]!, "workflow-token": "workflow-token-01234", "agent-token": "agent-token-01234" },
      ...{ "s3-access-key-id": "id", "s3-secret-access-key": "secret" },
    };
    const blobs = settings.replace(/ {4}s3:\n(?: {6}.*\n)+/, "    directory: /tmp\n");
    const ports = [await withFreePorts(block("PORTICO_PROXY_PORT=")), await withFreePorts(block("PORTICO_PROXY_PORT="))];
    const files = Object.entries(credentials).map(([name, text]) => [`/etc/portico/credentials/${name}`, text]);
    machine = await startSystemd({
      ...Object.fromEntries(files),
      "/etc/portico/cluster.config.yaml": blobs,
      "/etc/portico/cluster-1.env": ports[0]!,
      "/etc/portico/cluster-2.env": ports[1]!,
      "/etc/systemd/system/portico-cluster@.service": unitText("portico-cluster@.service"),
    });
    const migrated = await machine.run("sh", "-ec", block("portico migrate"));
    expect([migrated.code, migrated.stderr]).toEqual([0, ""]);
    const started = await machine.run("systemctl", "start", "portico-cluster@1", "portico-cluster@2");
    expect([started.code, started.stderr]).toEqual([0, ""]);
    for (const each of ports) {
      const agent = `http://127.0.0.1:${/AGENT_PORT=(\d+)/.exec(each)![1]}`;
      expect((await fetch(`${agent}/readyz`)).status).toBe(200);
      const headers = { "x-agent-service-token": "agent-token-01234" };
      expect((await fetch(`${agent}/api/handshake`, { headers })).status).toBe(200);
    }
  });
});
