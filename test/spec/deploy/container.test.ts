import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join, resolve } from "node:path";
import { loadConfig } from "@portico/core";
import { afterAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { platformSchema } from "../../../presets/src/settings/platform.ts";
import { clusterProblems } from "../../../presets/src/cluster/problems.ts";
import { COMPOSE_FILES, compose, CONTAINER_FOLDER as FOLDER } from "../../harness/compose-files.ts";
import { hasNginx, startNginx } from "../../harness/nginx.ts";
import { shippedNginx } from "../../harness/shipped-nginx.ts";
import { freePort } from "../../harness/ports.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { readText, root } from "../../rooms/repository.ts";
import { readPage } from "../docs/pages.ts";
import { keepsTheRulesOfProxies } from "../docs/proxy-rules.ts";

const folder = temporaryFolder();
afterAll(folder.remove);

describe.each(COMPOSE_FILES)("deploy/container/%s", (name) => {
  it("mounts files of the repository, and volumes and secrets that it declares", async () => {
    const { services, volumes = {}, secrets = {} } = await compose(name);
    const ofReader = ["./service", "./certificates"];
    for (const service of Object.values<any>(services)) {
      for (const mount of service.volumes ?? []) {
        const [source] = mount.split(":");
        const isThere = source.startsWith("./") ? existsSync(resolve(root, FOLDER, source)) : source in volumes;
        expect([source, isThere || ofReader.includes(source)]).toEqual([source, true]);
      }
      for (const secret of service.secrets ?? []) expect(Object.keys(secrets)).toContain(secret);
      for (const before of Object.keys(service.depends_on ?? {})) expect(Object.keys(services)).toContain(before);
    }
  });

  it("gives the service and nginx few rights: no root, no capabilities, no new privileges, nothing to write but volumes", async () => {
    const { services } = await compose(name);
    for (const [which, service] of Object.entries<any>(services)) {
      if (!/^(?:portico|migrate|nginx)/.test(which)) continue;
      expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] });
      // The image of Portico has this user.
      expect(service.user ?? "of the image").toBe(which === "nginx" ? "1000:1000" : "of the image");
    }
  });

  it("names every image of others by its digest", async () => {
    const { services } = await compose(name);
    const images = Object.values<any>(services).map(({ image }) => image);
    expect(images.filter((image) => image !== "portico" && !/^[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}$/.test(image))).toEqual([]);
  });

  it("lets no address but those of nginx be reached from other machines", async () => {
    const { services } = await compose(name);
    const open = Object.entries<any>(services).flatMap(([which, { ports = [] }]) => ports.map((port: string) => [which, port]));
    expect(open.filter(([, port]) => !port.startsWith("127.0.0.1:"))).toEqual([
      ["nginx", "80:8080"],
      ["nginx", "443:8443"],
    ]);
  });

  it("names settings that exist", async () => {
    const { services } = await compose(name);
    for (const { environment = {}, image } of Object.values<any>(services)) {
      if (image !== "portico") continue;
      const { settings, unused } = settingsOf(environment, undefined);
      expect(unused).toEqual([]);
      expect([settings.agent.publicUrl, settings.workflow.publicUrl]).toEqual([
        "https://agents.example",
        "https://workflows.example",
      ]);
      expect(settings.agent.media.accelPrefix).toBe("/media-files");
    }
  });
});

it("the processes of compose.cluster.yaml have settings that suffice for a cluster, without a secret in them", async () => {
  const { services, secrets } = await compose("compose.cluster.yaml");
  const { environment } = services["portico-1"];
  expect(services["portico-2"]).toEqual(services["portico-1"]);
  const values: Record<string, string> = {
    "instance-key": Buffer.alloc(32, 1).toString("base64url"),
    "postgres-url": "postgres://portico:secret@postgres/portico",
    "redis-url": "redis://redis",
    "workflow-token": "workflow-token-0123456789",
    "agent-token": "owner-token-0123456789",
  };
  for (const [secret, value] of Object.entries(values)) writeFileSync(join(folder.path, secret), value);
  expect(Object.keys(secrets).toSorted()).toEqual([...Object.keys(values), "postgres-password"].toSorted());
  const text = await readText(`${FOLDER}/cluster/portico.config.yaml`);
  const { settings } = settingsOf(environment, parse(text.replaceAll("/run/secrets", folder.path)));
  expect(clusterProblems(settings)).toEqual([]);
  expect(settings.cluster.postgres.url?.reveal()).toBe(values["postgres-url"]);
});

const { blocks: blocksOfPage } = await readPage("docs/deploy/container.md");
const { services: containers } = await compose("compose.yaml");
const { PORTICO_AGENT_PUBLIC_URL: agentUrl, PORTICO_WORKFLOW_PUBLIC_URL: workflowUrl } = containers.portico.environment;
const configuration = await shippedNginx({ agents: ["http://127.0.0.1:49154"], workflows: ["http://127.0.0.1:49153"] });

describe.skipIf(!hasNginx())("the nginx of deploy/container (skipped where there is no nginx with openssl)", () => {
  const settings = {
    instance: { mode: containers.portico.environment.PORTICO_MODE },
    agent: { publicUrl: agentUrl, listen: { port: 49154 } },
    workflow: { publicUrl: workflowUrl, listen: { port: 49153 } },
  };
  keepsTheRulesOfProxies({ settings, configuration }, startNginx);

  it("writes neither approval links nor signatures of media into a log, also while the services do not answer, and asks for HTTPS", async () => {
    const port = await freePort();
    const away = await shippedNginx({ agents: [`http://127.0.0.1:${port}`], workflows: [`http://127.0.0.1:${port}`] });
    const logs = temporaryFolder();
    const access = join(logs.path, "access.log");
    await using nginx = await startNginx(away.replaceAll("access_log /dev/stdout portico", `access_log ${access} portico`));
    const call = (host: string, path: string) =>
      new Promise<readonly [number | undefined, string | undefined]>((resolve, reject) => {
        const to = { host: "127.0.0.1", port: nginx.port, servername: host, ca: nginx.certificate, headers: { host } };
        request({ ...to, path, agent: false }, (answer) => {
          answer.resume();
          answer.on("end", () => resolve([answer.statusCode, answer.headers["strict-transport-security"]]));
        })
          .on("error", reject)
          .end();
      });
    const paths = [
      ["workflows.example", "/approve/approval_the-token"],
      ["agents.example", "/approve/approval_the-token"],
      ["workflows.example", "/callback/callback_the-token"],
      ["agents.example", "/callback/callback_the-token"],
      ["agents.example", "/media/m?expires=1&signature=the-token"],
      ["agents.example", "/seen-in-the-logs"],
    ] as const;
    for (const [host, path] of paths) {
      const status = host === "agents.example" && /^\/(?:approve|callback)\//.test(path) ? 404 : 502;
      expect([path, await call(host, path)]).toEqual([path, [status, "max-age=31536000"]]);
    }
    const written = () => readFileSync(access, "utf8") + readFileSync(nginx.errorLog, "utf8");
    await expect.poll(() => written().match(/seen-in-the-logs/g)?.length).toBeGreaterThan(1);
    expect(written()).not.toContain("the-token");
    logs.remove();
  });
});

describe("docs/deploy/container.md", () => {
  const commands = blocksOfPage.filter(({ language }) => language === "sh").map(({ text }) => text);

  it("names files that exist, and services and volumes of the Compose files", async () => {
    const words = commands.join("\n").match(/(?<=--file )\S+/g) ?? [];
    expect(words.length).toBeGreaterThan(3);
    expect(words.filter((file) => !existsSync(resolve(root, file)))).toEqual([]);
    const text = readFileSync(join(root, FOLDER, "Dockerfile"), "utf8");
    expect(text).toContain(/^docker build .*$/m.exec(commands.join("\n"))![0]);
    const { services } = await compose("compose.yaml");
    for (const [, name] of commands.join("\n").matchAll(/compose\.yaml exec (\S+)/g))
      expect(Object.keys(services)).toContain(name);
  });

  it("creates the secrets that compose.cluster.yaml mounts, valid as settings", async () => {
    const script = commands.find((text) => text.includes("secrets"))!;
    execFileSync("sh", ["-e", "-c", script], { cwd: folder.path });
    const made = join(folder.path, FOLDER, "secrets");
    const { secrets, services } = await compose("compose.cluster.yaml");
    expect(readdirSync(made).toSorted()).toEqual(Object.keys(secrets).toSorted());
    const text = await readText(`${FOLDER}/cluster/portico.config.yaml`);
    const { settings } = settingsOf(services["portico-1"].environment, parse(text.replaceAll("/run/secrets", made)));
    expect(clusterProblems(settings)).toEqual([]);
  });
});

describe("deploy/container/Dockerfile", () => {
  const text = readFileSync(join(root, FOLDER, "Dockerfile"), "utf8");
  const lines = text
    .replaceAll(/\\\n/g, "")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  const last = lines.slice(lines.findLastIndex((line) => line.startsWith("FROM ")));

  it.each<[string, (line: string) => boolean]>([
    [
      "every base image has a version and a digest",
      (line) =>
        /^ARG NODE_IMAGE=node:\d+-[\w-]+@sha256:[0-9a-f]{64}$|^FROM (?:\$\{NODE_IMAGE\}|manifests)(?: AS \w+)?$/.test(line) ||
        !/^FROM|^ARG \w*IMAGE/.test(line),
    ],
    ["nothing is added from elsewhere", (line) => !line.startsWith("ADD ")],
    ["folders are absolute", (line) => !line.startsWith("WORKDIR ") || line.startsWith("WORKDIR /")],
    ["no shell stands between a signal and the service", (line) => !/^(?:CMD|ENTRYPOINT) (?!\[)/.test(line)],
    ["the shell changes no folder and no user", (line) => !/^RUN .*\b(?:cd|sudo|su) /.test(line)],
    ["packages come from the lock file", (line) => !/npm (?:install|i|update)\b/.test(line)],
    ["scripts of dependencies do not run", (line) => !line.includes("npm ci") || line.includes("--ignore-scripts")],
    ["no secret is in a layer", (line) => !/^(?:ARG|ENV) .*(?:TOKEN|PASSWORD|SECRET|KEY)/.test(line)],
  ])("%s", (_rule, keeps) => {
    expect(lines.filter((line) => !keeps(line))).toEqual([]);
  });

  it("ends with a user that is not root, one entry point and one check of its health", () => {
    const of = (word: string) => last.filter((line) => line.startsWith(`${word} `));
    expect(of("USER")).toEqual(["USER 1000:1000"]);
    expect([of("ENTRYPOINT"), of("CMD")]).toEqual([['ENTRYPOINT ["portico"]'], ['CMD ["start", "local"]']]);
    expect(of("HEALTHCHECK")).toHaveLength(1);
    expect(of("VOLUME")).toEqual(["VOLUME /data"]);
  });

  it("copies the package.json of every workspace, which the lock file is checked against", async () => {
    const { workspaces } = JSON.parse(await readText("package.json"));
    const copied = lines.flatMap((line) => /^COPY ([\w/-]+)\/package\.json \1\/$/.exec(line)?.[1] ?? []);
    expect(copied.toSorted()).toEqual(workspaces.toSorted());
  });

  it("sets settings that exist", () => {
    const [env = ""] = last.filter((line) => line.startsWith("ENV "));
    const set = Object.fromEntries(
      env
        .slice(4)
        .trim()
        .split(/\s+/)
        .map((each) => each.split("=")),
    );
    const { settings, unused } = settingsOf(set, undefined);
    expect(unused).toEqual([]);
    const { proxy, workflow, agent, probes } = settings;
    const everywhere = (port: number) => ({ host: "0.0.0.0", port });
    expect([proxy.listen, workflow.listen, agent.listen, probes?.listen]).toEqual([49152, 49153, 49154, 9464].map(everywhere));
  });
});

/** The settings, and variables that set nothing. */
function settingsOf(env: Record<string, string>, content: unknown) {
  const file = content === undefined ? undefined : { path: join(folder.path, "portico.config.yaml"), content };
  const load = (given: Record<string, string>) => loadConfig(platformSchema, { file, env: given }).value;
  const settings = load(env);
  const unused = Object.keys(env).filter((name) => {
    const { [name]: _left, ...others } = env;
    return JSON.stringify(load(others)) === JSON.stringify(settings);
  });
  return { settings, unused };
}
