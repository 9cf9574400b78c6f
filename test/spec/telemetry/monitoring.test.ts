import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { CLUSTER_OWNER, type ClusterPlace, clusterPlace, startCluster } from "../../harness/cluster.ts";
import { type Exposition, readExposition } from "../../harness/exposition.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type PorticoProcess, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { readExpression } from "../../harness/promql.ts";
import { chatEvents } from "../../harness/stream-scripts.ts";
import { CUT, events } from "../../harness/upstream-answers.ts";

const root = join(import.meta.dirname, "../../..");
const monitoring = join(root, "deploy/monitoring");
const read = (name: string) => readFileSync(join(monitoring, name), "utf8");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}
interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}
const rules = (parse(read("portico.rules.yaml")) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(read("portico-dashboard.json")) as {
  panels: Panel[];
  templating: { list: { name: string; definition?: string }[] };
};
const targets = dashboard.panels.flatMap(({ title, targets: shown = [] }) => shown.map((target) => ({ title, ...target })));
const OWNER = "owner-token-0123456789";
/** Prometheus adds these to every sample. */
const OF_TARGETS = new Set(["job", "instance"]);
/** Prometheus makes this metric itself. */
const OF_PROMETHEUS = new Set(["up"]);

const place: ClusterPlace | undefined = await clusterPlace();
if (!place) console.warn("Skipped: metrics of a cluster, because there is no PostgreSQL or no Redis");

describe("alert rules and dashboard", () => {
  let exposition: Exposition;
  beforeAll(async () => {
    const texts = [await ofLocal()];
    if (place) texts.push(await ofCluster(place));
    exposition = readExposition(...texts);
  }, 120_000);

  const isOfCluster = (expression: string) => /portico_(engine|postgres|redis)/.test(expression);
  const expressions = [
    ...rules.map(({ alert, expr }) => [alert, expr] as const),
    ...targets.map(({ title, expr }, at) => [`panel ${title} ${at}`, expr] as const),
  ].filter(([, expr]) => place || !isOfCluster(expr));

  it.each(expressions)("%s reads only metrics, labels and values that a service has", (_name, expr) => {
    const { selectors, grouped } = readExpression(expr);
    expect(selectors).not.toEqual([]);
    for (const { metric, labels } of selectors) {
      if (OF_PROMETHEUS.has(metric)) continue;
      const known = exposition.get(metric);
      expect(known, metric).toBeDefined();
      const has = (name: string) => OF_TARGETS.has(name) || known!.has(name) || (name === "le" && metric.endsWith("_bucket"));
      for (const { name, operator, value } of labels) {
        expect([metric, name, has(name)]).toEqual([metric, name, true]);
        const isFixed = !OF_TARGETS.has(name) && name !== "status" && (operator === "=" || operator === "!=") && value !== "";
        if (isFixed) expect([...known!.get(name)!]).toContain(value);
      }
      for (const name of grouped) expect([metric, name, has(name)]).toEqual([metric, name, true]);
      // Other programs have metrics of the same names.
      expect(labels.find(({ name }) => name === "job")?.value).toMatch(/^portico$|^\$job$/);
    }
  });

  it.each(targets.map(({ title, expr, legendFormat }) => [title, expr, legendFormat]))(
    "panel %s labels its lines with labels that its expression keeps",
    (_title, expr, legend) => {
      const { grouped } = readExpression(expr!);
      const kept = new Set([...grouped, ...(/\bby\b/.test(expr!) ? [] : OF_TARGETS)]);
      for (const [, name] of legend!.matchAll(/\{\{(\w+)\}\}/g)) expect([...kept]).toContain(name);
    },
  );
});

it("the dashboard's panels have ids of their own, do not overlap, and say what they show", () => {
  const { panels } = dashboard;
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
  for (const panel of panels)
    if (panel.type !== "row") expect([panel.title, panel.description]).toEqual([panel.title, expect.any(String)]);
  expect(dashboard.templating.list.map(({ name }) => name)).toEqual(["datasource", "job", "instance"]);
});

it("each alert has its line in docs/operations.md, and each line its alert", () => {
  const page = readFileSync(join(root, "docs/operations.md"), "utf8");
  const [, section = ""] = /^## Alerts$([\s\S]*?)^## /m.exec(page) ?? [];
  const named = [...section.matchAll(/^\| `(Portico\w+)` \|/gm)].map(([, name]) => name);
  expect(named).toEqual(rules.map(({ alert }) => alert));
  for (const { annotations } of rules) {
    expect(annotations).toEqual({
      summary: expect.any(String),
      description: expect.any(String),
      runbook: "docs/operations.md#alerts",
    });
  }
});

const hasPromtool = spawnSync("promtool", ["--version"]).error === undefined;
if (!hasPromtool && process.env["CI"]) throw new Error("CI has to have promtool");
if (!hasPromtool) console.warn("Skipped: checks by promtool, because it is not installed");

describe.skipIf(!hasPromtool)("promtool accepts", () => {
  const promtool = (args: readonly string[], input?: string) => {
    const { status, stdout, stderr } = spawnSync("promtool", args, { cwd: monitoring, encoding: "utf8", input });
    return { status, said: stdout + stderr };
  };

  it.each([
    ["the rules", ["check", "rules", "portico.rules.yaml"]],
    ["the scrape configuration", ["check", "config", "--syntax-only", "prometheus.yaml"]],
    ["the alerts, by their unit tests", ["test", "rules", "portico.rules.test.yaml"]],
  ])("%s", (_what, args) => {
    expect(promtool(args)).toMatchObject({ status: 0, said: expect.stringContaining("SUCCESS") });
  });

  it("nothing else: each alert has a unit test that sees it fire", () => {
    const tests = read("portico.rules.test.yaml");
    for (const { alert } of rules) expect(tests).toContain(alert);
  });

  it("the text of a service's /metrics", async () => {
    expect(promtool(["check", "metrics"], await ofLocal())).toEqual({ status: 0, said: "" });
  });
});

/** The metrics of a service that has served, refused, failed and broken off. */
let local: Promise<string> | undefined;
function ofLocal(): Promise<string> {
  return (local ??= measureLocal());
}

async function measureLocal(): Promise<string> {
  const folder = temporaryFolder();
  await using upstream = await startFakeUpstream();
  try {
    const file = join(folder.path, "agents/support/agent.json");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify({ name: "Support" }));
    await using service = await startPortico({
      cwd: folder.path,
      config: {
        providers: [
          { id: "main", protocol: "chat-completions", baseUrl: upstream.baseUrl, models: ["echo-large"] },
          {
            ...{ id: "limited", protocol: "chat-completions", baseUrl: upstream.baseUrl, models: ["echo-small"] },
            ...{ keys: ["sk-first-key-of-two", "sk-second-key-of-two"], retry: {}, concurrency: { limit: 8 } },
          },
        ],
        agent: { tokens: [{ token: OWNER, userId: "ada", role: "owner" }] },
        probes: { listen: {} },
        telemetry: { otlp: { endpoint: "http://127.0.0.1:1", metricsEveryMs: 100 } },
      },
    });
    const token = await service.token("main");
    const ask = async (stream: boolean) => {
      const answer = await fetch(`${service.url("proxy")}/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": token },
        body: JSON.stringify({ model: "echo-large", stream, messages: [{ role: "user", content: "Hello" }] }),
      });
      await answer.text().catch(() => {});
    };
    await ask(false);
    upstream.answerNext(events([chatEvents("Hello")[0]!, CUT]));
    await ask(true);
    await fetch(`${service.url("agent")}/api/agents`);
    return await scrape(service, OWNER, /error_type="upstream_broken"[^]*portico_telemetry_export_up\{/);
  } finally {
    folder.remove();
  }
}

async function ofCluster(at: ClusterPlace): Promise<string> {
  await using cluster = await startCluster(at, { count: 1, env: { PORTICO_PROBES_PORT: "0" } });
  return await scrape(cluster.processes[0]!, CLUSTER_OWNER, /portico_engine_waiting_seconds\{/);
}

async function scrape(service: PorticoProcess, token: string, until: RegExp): Promise<string> {
  for (;;) {
    const answer = await fetch(`${service.url("probes")}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    const text = await answer.text();
    if (until.test(text)) return text;
    await wait(50);
  }
}
