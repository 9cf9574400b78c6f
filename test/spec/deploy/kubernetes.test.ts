import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "@portico/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { EXIT } from "../../../presets/cli/src/exit-codes.ts";
import { platformSchema } from "../../../presets/src/settings/platform.ts";
import { clusterProblems } from "../../../presets/src/cluster/problems.ts";
import { clusterPlace } from "../../harness/cluster.ts";
import { hasKustomize, kubectlKustomize, type Manifest, renderKustomization } from "../../harness/kustomization.ts";
import { httpCall } from "../../harness/http-call.ts";
import { type PorticoProcess, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { startS3Store, type S3Store } from "../../harness/s3-store.ts";
import { readPage } from "../docs/pages.ts";
import { root } from "../../rooms/repository.ts";

if (!hasKustomize())
  console.warn("kubectl does not render the manifests of Kubernetes: there is no kubectl of version 1.26 or newer");

const folder = temporaryFolder();
afterAll(folder.remove);
const OWNER = "owner-token-0123456789";
const WORKFLOW = "workflow-token-0123456789";

/** What a user writes: a copy of the example with settings and secrets of their own. */
function overlay(settings: Readonly<Record<string, string>>, secrets: Readonly<Record<string, string>>): string {
  const copy = join(folder.path, randomBytes(4).toString("hex"));
  cpSync(join(root, "deploy/kubernetes"), copy, { recursive: true });
  const example = join(copy, "overlays/example");
  const change = (name: string, from: string, values: Readonly<Record<string, string>>) => {
    const lines = readFileSync(join(example, from), "utf8").trimEnd().split("\n");
    const changed = lines.map((line) => {
      const [key = ""] = line.split("=");
      return key in values ? `${key}=${values[key]}` : line;
    });
    const added = Object.entries(values).filter(([key]) => !lines.some((line) => line.startsWith(`${key}=`)));
    writeFileSync(join(example, name), [...changed, ...added.map(([key, value]) => `${key}=${value}`), ""].join("\n"));
  };
  change("settings.env", "settings.env", settings);
  change("secrets.env", "secrets.env.example", secrets);
  return example;
}
const SECRETS = {
  "instance-key": randomBytes(32).toString("base64url"),
  "agent-token": OWNER,
  "workflow-token": WORKFLOW,
  "s3-access-key-id": "id",
  "s3-secret-access-key": "secret",
  "main-key": "sk-of-the-provider",
};
const manifests = renderKustomization(overlay({}, SECRETS));
const named = (kind: string, name: string, all: readonly Manifest[] = manifests): Manifest =>
  all.find((each) => each.kind === kind && each.metadata.name === name)!;
const pods = manifests.flatMap(({ metadata, spec }) => (spec?.template ? [[metadata.name, spec.template] as const] : []));
const labelsOf = (name: string): Record<string, string> => pods.find(([each]) => each === name)![1].metadata.labels;
const matches = (labels: Record<string, string>, selector: Record<string, string>) =>
  Object.entries(selector).every(([key, value]) => labels[key] === value);

/** The environment, the files and the arguments of a pod, with its folders in `place`. */
function podOf(template: any, all: readonly Manifest[], place: string) {
  const [container] = template.spec.containers;
  const configMap = (name: string) => all.find((each) => each.kind === "ConfigMap" && each.metadata.name === name)!["data"];
  const env: Record<string, string> = {};
  for (const { configMapRef } of container.envFrom) Object.assign(env, configMap(configMapRef.name));
  for (const { name, value } of container.env) env[name] = value;
  const mounted = new Map<string, string>();
  for (const { name, mountPath } of container.volumeMounts) {
    const volume = template.spec.volumes.find((each: any) => each.name === name);
    const path = join(place, mountPath);
    mkdirSync(path, { recursive: true });
    mounted.set(mountPath, path);
    const data: Record<string, string> = volume.configMap ? configMap(volume.configMap.name) : {};
    for (const [file, text] of Object.entries(data)) writeFileSync(join(path, file), text);
    if (!volume.secret) continue;
    const secret = all.find((each) => each.kind === "Secret" && each.metadata.name === volume.secret.secretName)!["data"];
    for (const [file, text] of Object.entries(secret as Record<string, string>))
      writeFileSync(join(path, file), Buffer.from(text, "base64"));
  }
  const moved = (text: string) => {
    const [from, to] = [...mounted].find(([path]) => text.startsWith(path)) ?? ["", ""];
    return text.replace(from, to);
  };
  return {
    args: (container.args as string[]).map(moved),
    env: { ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, moved(value)])), TMPDIR: moved("/tmp") },
  };
}

describe("the manifests of deploy/kubernetes", () => {
  it.skipIf(!hasKustomize())("are rendered by kubectl as this test renders them", () => {
    const example = overlay({}, SECRETS);
    const sorted = (all: readonly Manifest[]) =>
      all.toSorted((a, b) => `${a.kind} ${a.metadata.name}`.localeCompare(`${b.kind} ${b.metadata.name}`));
    expect(sorted(kubectlKustomize(example))).toEqual(sorted(renderKustomization(example)));
  });

  it("have the folders and objects that commands of docs/deploy/kubernetes.md name", async () => {
    const { blocks } = await readPage("docs/deploy/kubernetes.md");
    const commands = blocks.filter(({ language }) => language === "sh").flatMap(({ text }) => text.trim().split("\n"));
    expect(commands.length).toBeGreaterThan(5);
    for (const command of commands) {
      const [, kind, name] = / (job|deployment)\/(\S+)/.exec(command) ?? [];
      const [, path] = /(?:-k|kustomize) (\S+)$/.exec(command) ?? [];
      expect(command).toMatch(/^kubectl /);
      if (command.includes(" -n ")) expect(command).toContain(` -n ${named("Job", "portico-migrate").metadata.namespace} `);
      if (path === undefined) expect(named(kind === "job" ? "Job" : "Deployment", name!), command).toBeDefined();
      else expect(existsSync(join(root, path, "kustomization.yaml"))).toBe(true);
    }
  });

  it("have the fields, and no others, that Kubernetes knows", () => {
    const types: Readonly<Record<string, string>> = {
      ...{ Namespace: "core/v1", ConfigMap: "core/v1", Secret: "core/v1", Service: "core/v1", Deployment: "apps/v1" },
      ...{ Job: "batch/v1", PodDisruptionBudget: "policy/v1", NetworkPolicy: "networking/v1", Ingress: "networking/v1" },
    };
    const lines = manifests.map((object, index) => {
      const [group = "", version = ""] = types[object.kind]!.split("/");
      return `export const m${index}: import("kubernetes-types/${group}/${version}").${object.kind} = ${JSON.stringify(object)};`;
    });
    const path = join(folder.path, "types");
    mkdirSync(path);
    writeFileSync(join(path, "manifests.ts"), lines.join("\n"));
    const compilerOptions = {
      ...{ noEmit: true, strict: true, types: [], skipLibCheck: true, module: "esnext", moduleResolution: "bundler" },
      paths: { "kubernetes-types/*": [`${root}/test/oracles/node_modules/kubernetes-types/*`] },
    };
    writeFileSync(join(path, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["manifests.ts"] }));
    const tsc = join(root, "node_modules/.bin/tsc");
    const { stdout, status } = spawnSync(tsc, ["-p", path], { encoding: "utf8" });
    expect([status, stdout]).toEqual([0, ""]);
  });

  it("name their objects: services, budgets, policies and spreads select pods that exist, ports have names", () => {
    const surfaces = labelsOf("portico-surfaces");
    const ports = new Set(pods.flatMap(([, { spec }]) => (spec.containers[0].ports ?? []).map(({ name }: any) => name)));
    const services = manifests.filter(({ kind }) => kind === "Service");
    expect(services).toHaveLength(3);
    for (const { spec } of services) {
      expect(matches(surfaces, spec.selector)).toBe(true);
      expect(ports).toContain(spec.ports[0].targetPort);
    }
    for (const name of ["portico-surfaces", "portico-work"]) {
      const { spec } = named("Deployment", name);
      expect(matches(labelsOf(name), spec.selector.matchLabels)).toBe(true);
      expect(spec.replicas).toBe(3);
      expect(named("PodDisruptionBudget", name)["spec"].selector).toEqual(spec.selector);
      for (const { labelSelector } of spec.template.spec.topologySpreadConstraints) expect(labelSelector).toEqual(spec.selector);
    }
    expect(matches(labelsOf("portico-surfaces"), labelsOf("portico-work"))).toBe(false);
    const policies = manifests.filter(({ kind }) => kind === "NetworkPolicy");
    for (const [, { metadata }] of pods)
      expect(
        policies.some(({ spec }) => matches(metadata.labels, spec.podSelector.matchLabels) && spec.policyTypes.length === 2),
      ).toBe(true);
    const backends = named("Ingress", "portico")["spec"].rules.flatMap(({ http }: any) =>
      http.paths.map((each: any) => each.backend.service.name),
    );
    expect(backends.map((name: string) => named("Service", name) !== undefined)).toEqual([true, true, true, true]);
  });

  it("let pods reach stores only inside, and HTTPS only outside or in labelled namespaces", () => {
    const { egress } = named("NetworkPolicy", "portico")["spec"];
    const rulesOf = (port: number) => egress.filter(({ ports }: any) => ports.some((each: any) => each.port === port));
    const targets = egress.flatMap(({ to }: any) => to);
    for (const { namespaceSelector } of targets.filter((each: any) => each.namespaceSelector))
      expect(Object.keys(namespaceSelector.matchLabels)).toHaveLength(1);
    const isPrivate = /^(?:10|100\.64|172\.16|192\.168|fc00:)/;
    for (const port of [5432, 6379])
      for (const { ipBlock } of rulesOf(port).flatMap(({ to }: any) => to)) if (ipBlock) expect(ipBlock.cidr).toMatch(isPrivate);
    const [{ to }] = rulesOf(443);
    const [four, six] = to.flatMap(({ ipBlock }: any) => (ipBlock ? [ipBlock] : []));
    expect(four.except).toEqual(expect.arrayContaining(["10.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"]));
    expect(six.except).toEqual(expect.arrayContaining(["fc00::/7", "fe80::/10"]));
  });

  it.each(pods)("give pods few rights, as the standard `restricted` of Kubernetes demands: %s", (_name, { spec }) => {
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
    for (const { securityContext, resources } of spec.containers) {
      expect(securityContext).toEqual({
        ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
        capabilities: { drop: ["ALL"] },
      });
      expect(resources).toMatchObject({ requests: { cpu: expect.any(String) }, limits: { memory: expect.any(String) } });
    }
    for (const { configMap, secret, emptyDir } of spec.volumes) expect(configMap ?? secret ?? emptyDir).toBeDefined();
  });

  it("run the image of deploy/container as its own user, through its entry point", () => {
    const dockerfile = readFileSync(join(root, "deploy/container/Dockerfile"), "utf8");
    expect(dockerfile).toContain('ENTRYPOINT ["portico"]');
    const user = /^USER (\d+):(\d+)\n(?![\s\S]*^USER )/m.exec(dockerfile)!;
    for (const [, { spec }] of pods) {
      const { runAsUser, runAsGroup, fsGroup } = spec.securityContext;
      expect([runAsUser, runAsGroup, fsGroup].map(String)).toEqual([user[1], user[2], user[2]]);
      expect(
        spec.containers.every((each: any) => each.command === undefined && each.image === "registry.example/portico:0.0.0"),
      ).toBe(true);
    }
  });

  it("contain no secret, and ask for each that the settings read", () => {
    const base = renderKustomization(join(root, "deploy/kubernetes/base"));
    expect(base.filter(({ kind }) => kind === "Secret")).toEqual([]);
    const read = JSON.stringify(manifests.filter(({ kind }) => kind === "ConfigMap"));
    const wanted = [...read.matchAll(/\$CREDENTIALS_DIRECTORY\/([\w-]+)/g)].map(([, name]) => name);
    expect(Object.keys(named("Secret", "portico-secrets")["data"]).sort()).toEqual([...new Set(wanted)].sort());
  });

  it("have valid settings, and times in which a stop loses no request", () => {
    const template = named("Deployment", "portico-surfaces")["spec"].template;
    const { env, args } = podOf(template, manifests, join(folder.path, "settings"));
    const path = args[args.indexOf("--config") + 1]!;
    const { value: settings } = loadConfig(platformSchema, { file: { path, content: parse(readFileSync(path, "utf8")) }, env });
    expect(clusterProblems(settings)).toEqual([]);
    const [{ readinessProbe, ports }] = template.spec.containers;
    const listens = { proxy: settings.proxy, workflow: settings.workflow, agent: settings.agent, probes: settings.probes };
    for (const { name, containerPort } of ports as { name: keyof typeof listens; containerPort: number }[])
      expect(listens[name]?.listen).toEqual({ host: "0.0.0.0", port: containerPort });
    expect(settings.shutdownDelayMs).toBeGreaterThanOrEqual(
      2000 * readinessProbe.periodSeconds * readinessProbe.failureThreshold,
    );
    const stopMs = settings.shutdownDelayMs + settings.shutdownGraceMs + 5000;
    expect(template.spec.terminationGracePeriodSeconds * 1000).toBeGreaterThan(stopMs);
    const { rules } = named("Job", "portico-migrate")["spec"].podFailurePolicy;
    expect(rules[0].onExitCodes.values).toEqual([EXIT.usage, EXIT.noInput, EXIT.config]);
  });
});

const place = await clusterPlace();
describe.skipIf(!place)("pods of deploy/kubernetes, as processes of this machine", () => {
  let store: S3Store;
  let all: readonly Manifest[];
  const processes: PorticoProcess[] = [];
  // The ports of the manifests may be taken here, and the grace of a stop is long.
  const here = {
    ...Object.fromEntries(["PROXY", "WORKFLOW", "AGENT", "PROBES"].map((name) => [`PORTICO_${name}_PORT`, "0"])),
    PORTICO_SHUTDOWN_DELAY_MS: "100",
  };
  const pod = (kind: string, name: string) => podOf(named(kind, name, all)["spec"].template, all, join(place!.folder, name));
  const begin = async (name: string): Promise<PorticoProcess> => {
    const { args, env } = pod("Deployment", name);
    expect(args[0]).toBe("start");
    const options = { args: args.slice(1), env: { ...env, ...here }, cwd: place!.folder, hasOwnProcess: true };
    const started = await startPortico(options);
    processes.push(started);
    return started;
  };
  const call = async (service: PorticoProcess, path: string, init: RequestInit = {}) => {
    const headers = { "x-workflow-service-token": WORKFLOW, "x-agent-service-token": OWNER };
    const answer = await fetch(service.url(path.startsWith("/api/workflow") ? "workflow" : "agent") + path, { headers, ...init });
    return { status: answer.status, body: (await answer.json()) as any };
  };

  beforeAll(async () => {
    store = await startS3Store();
    const { options } = store.makeBucket();
    const settings = {
      PORTICO_S3_ENDPOINT: store.endpoint,
      PORTICO_S3_BUCKET: options.bucket,
      PORTICO_S3_REGION: options.region!,
      PORTICO_REDIS_PREFIX: place!.env["PORTICO_REDIS_PREFIX"]!,
    };
    const secrets = {
      ...SECRETS,
      "postgres-url": place!.env["PORTICO_POSTGRES_URL"]!,
      "redis-url": place!.env["PORTICO_REDIS_URL"]!,
      "s3-access-key-id": options.accessKeyId.reveal(),
      "s3-secret-access-key": options.secretAccessKey.reveal(),
    };
    all = (hasKustomize() ? kubectlKustomize : renderKustomization)(overlay(settings, secrets));
  });
  afterAll(async () => {
    for (const each of processes) await each[Symbol.asyncDispose]();
    await store?.close();
    await place?.remove();
  });

  it("do not start before the job has made the tables", async () => {
    const { args, env } = pod("Deployment", "portico-surfaces");
    expect(await runPortico(args, { env: { ...env, ...here } })).toMatchObject({
      code: EXIT.config,
      stderr: expect.stringContaining("portico migrate"),
    });
    const job = pod("Job", "portico-migrate");
    expect(await runPortico(job.args, { env: job.env })).toMatchObject({ code: 0, stderr: "" });
    // A second run changes nothing: every upgrade runs it.
    expect(await runPortico(job.args, { env: job.env })).toMatchObject({ code: 0, stderr: "" });
  });

  it("serve callers in one deployment and only work in the other, and what a pod leaves when it stops the others continue", async () => {
    const documents = join(place!.folder, "documents/workflows");
    mkdirSync(documents, { recursive: true });
    writeFileSync(join(documents, "slow.json"), JSON.stringify({ nodes: { wait: { type: "wait", with: { for: "3s" } } } }));
    const surfaces = await begin("portico-surfaces");
    const work = await begin("portico-work");
    expect(Object.keys(surfaces.ready.listeners).sort()).toEqual(["agent", "probes", "proxy", "workflow"]);
    expect(Object.keys(work.ready.listeners)).toEqual(["probes"]);
    for (const each of [surfaces, work]) {
      // A probe calls the address of its pod.
      for (const path of ["/healthz", "/readyz"])
        expect((await httpCall(each.url("probes"), { path, headers: { host: "10.1.2.3:9464" } })).status).toBe(200);
      const metrics = await fetch(`${each.url("probes")}/metrics`, { headers: { authorization: `Bearer ${OWNER}` } });
      expect(await metrics.text()).toContain("portico_engine_waiting_seconds");
    }
    // Hosts: the service's name for the model proxy, and the public address that the ingress controller passes on.
    const statusFor = async (surface: string, path: string, host: string) =>
      (await httpCall(surfaces.url(surface), { path, headers: { host } })).status;
    expect(await statusFor("proxy", "/v1/models", "portico-proxy")).toBe(401);
    expect(await statusFor("proxy", "/v1/models", "portico-proxy.portico.svc")).toBe(421);
    expect(await statusFor("agent", "/api/handshake", "agents.example")).toBe(401);
    // The ingress has no rule for workflows at the agent service's address, because it knows none.
    expect(await statusFor("agent", "/api/workflow/webhook?id=slow", "agents.example")).toBe(404);
    const { env } = pod("Deployment", "portico-work");
    const config = pod("Deployment", "portico-work").args.at(-1)!;
    const pushed = await runPortico(["documents", "push", join(place!.folder, "documents"), "--config", config], { env });
    expect([pushed.code, pushed.stderr]).toEqual([0, ""]);

    const form = new FormData();
    form.append("file", new Blob(["a text"], { type: "text/plain" }), "a.txt");
    expect((await call(surfaces, "/api/attachments", { method: "POST", body: form })).status).toBe(201);
    let runId: string | undefined;
    await expect
      .poll(async () => {
        const { status, body } = await call(surfaces, "/api/workflow/webhook?id=slow", { method: "POST" });
        runId = body.runId;
        return status;
      })
      .toBe(200);
    expect(await surfaces.stop()).toBe(0);
    const next = await begin("portico-surfaces");
    await expect.poll(async () => (await call(next, `/api/workflow/slow/runs/${runId}`)).body.status).toBe("completed");
    expect(await work.stop()).toBe(0);
  });
});
