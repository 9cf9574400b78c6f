import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { connectAgent } from "@portico/client";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLUSTER_OWNER, CLUSTER_WORKFLOW, clusterPlace, type RunningCluster, startCluster } from "../harness/cluster.ts";
import { startPortico } from "../harness/portico-process.ts";

const place = await clusterPlace();
const surfaces = ["proxy", "workflow", "agent"] as const;

describe.skipIf(!place)("three processes of a cluster behind balancers", () => {
  let cluster: RunningCluster;
  beforeAll(async () => {
    cluster = await startCluster(place!);
    write("documents/agents/helper/agent.json", { name: "Helper", provider: "demo", model: "demo" });
    write("documents/workflows/greet.json", {
      name: "Greet",
      nodes: { hello: { type: "transform", with: { value: "Hello" } } },
      outputs: { said: "${{ nodes.hello.output }}" },
    });
    write("documents/workflows/slow.json", {
      nodes: {
        first: { type: "transform", with: { value: 1 } },
        wait: { type: "wait", needs: ["first"], with: { for: "1s" } },
      },
      outputs: { waited: "${{ nodes.wait.output.waitedMs }}" },
    });
    write("documents/workflows/gated.json", {
      nodes: { ok: { type: "human_gate", with: { title: "Go on?" } } },
    });
    const pushed = await place!.run("documents", "push", "documents");
    expect([pushed.code, pushed.stderr]).toEqual([0, ""]);
  }, 120_000);
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  function write(name: string, content: object): void {
    const path = join(place!.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify(content));
  }
  /** A stream of a run's events that has begun: `rest` reads it to its end. */
  async function follow(url: string, runId: string) {
    const answer = await fetch(`${url}/api/workflow/events?runId=${runId}`, {
      headers: { "x-workflow-service-token": CLUSTER_WORKFLOW },
    });
    expect(answer.status).toBe(200);
    const stream = answer.body!.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    const reader = stream.values();
    const events: (string | undefined)[] = [(await reader.next()).value?.event];
    const rest = async () => {
      for await (const { event } of reader) if (event !== undefined) events.push(event);
      return events;
    };
    return { rest };
  }
  const call = async (method: string, path: string, body?: object): Promise<any> => {
    const answer = await fetch(cluster.url("workflow") + path, {
      method,
      headers: { "x-workflow-service-token": CLUSTER_WORKFLOW, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: await answer.json() };
  };

  it("say in their ready lines which surfaces they serve", () => {
    for (const { ready } of cluster.processes) expect(Object.keys(ready.listeners)).toEqual(["proxy", "workflow", "agent"]);
  });

  it("show the public addresses of all surfaces, not their own, to callers and to the console", async () => {
    const headers = { "x-agent-service-token": CLUSTER_OWNER };
    const listeners = Object.fromEntries(surfaces.map((name) => [name, { url: cluster.url(name) }]));
    for (const each of cluster.processes) {
      const answer = await fetch(`${each.url("agent")}/api/listeners`, { headers });
      expect([answer.status, await answer.json()]).toEqual([200, { listeners }]);
    }
    const page = await fetch(cluster.url("agent"));
    const policy = page.headers.get("content-security-policy");
    expect([page.status, /connect-src ([^;]*)/.exec(policy ?? "")?.[1]?.split(" ")]).toEqual([
      200,
      ["'self'", ...surfaces.map((name) => new URL(cluster.url(name)).origin)],
    ]);
  });

  it("show the surfaces that other processes serve, too", async () => {
    const publicUrls = Object.fromEntries(
      surfaces.map((name) => [`PORTICO_${name.toUpperCase()}_PUBLIC_URL`, cluster.url(name)]),
    );
    const env = { ...place!.env, ...publicUrls, PORTICO_CLUSTER_SURFACES: '["agent"]' };
    await using agents = await startPortico({ cwd: place!.folder, args: ["cluster"], env });
    expect(Object.keys(agents.ready.listeners)).toEqual(["agent"]);
    const answer = await fetch(`${agents.url("agent")}/api/listeners`, { headers: { "x-agent-service-token": CLUSTER_OWNER } });
    const listeners = Object.fromEntries(surfaces.map((name) => [name, { url: cluster.url(name) }]));
    expect(await answer.json()).toEqual({ listeners });
  });

  it("use the same documents, within a second of a change", async () => {
    await expect.poll(async () => (await call("GET", "/api/workflows")).body.workflows.length).toBe(3);
    const all = await Promise.all(
      cluster.processes.map(async (each) => {
        const answer = await fetch(`${each.url("workflow")}/api/workflows`, {
          headers: { "x-workflow-service-token": CLUSTER_WORKFLOW },
        });
        return ((await answer.json()) as { workflows: unknown[] }).workflows.length;
      }),
    );
    expect(all).toEqual([3, 3, 3]);
  });

  it("run what any of them accepts, and any of them shows it", async () => {
    const started = await Promise.all(Array.from({ length: 30 }, () => call("POST", "/api/workflow/webhook?id=greet", {})));
    expect(new Set(started.map(({ status }) => status))).toEqual(new Set([200]));
    for (const { body } of started) {
      const detail = async () => (await call("GET", `/api/workflow/greet/runs/${body.runId}`)).body;
      await expect.poll(async () => (await detail()).status).toBe("completed");
      expect((await detail()).finalOutputs).toEqual({ said: "Hello" });
    }
  });

  it.each([0, 1, 2])(
    "tell the events of a run once and in order, wherever it executes, to the last reader: process %i",
    async (last) => {
      const { body } = await call("POST", "/api/workflow/webhook?id=gated", {});
      const statusOf = async () => (await call("GET", `/api/workflow/gated/runs/${body.runId}`)).body.status;
      await expect.poll(statusOf).toBe("waiting_human");
      const others = cluster.processes.filter((_, index) => index !== last);
      const earlier = await Promise.all(others.map((each) => follow(each.url("workflow"), body.runId)));
      const latest = await follow(cluster.processes[last]!.url("workflow"), body.runId);
      // One reader at a time: the earlier streams end before the run does.
      for (const { rest } of earlier) expect(await rest()).not.toContain("workflow:complete");
      const decided = await place!.run("workflow", "approve", body.runId, "--url", cluster.url("workflow"));
      expect(decided.stderr).toBe("");
      expect(await latest.rest()).toEqual([
        "workflow:started",
        "workflow:node_start",
        "workflow:human_gate",
        "workflow:node_complete",
        "workflow:complete",
      ]);
    },
  );

  it("decide a gate that another process opened", async () => {
    const { body } = await call("POST", "/api/workflow/webhook?id=gated", {});
    const detail = async () => (await call("GET", `/api/workflow/gated/runs/${body.runId}`)).body;
    await expect.poll(async () => (await detail()).status).toBe("waiting_human");
    const decided = await place!.run("workflow", "approve", body.runId, "--url", cluster.url("workflow"));
    expect([decided.code, decided.stderr]).toEqual([0, ""]);
    await expect.poll(async () => (await detail()).status).toBe("completed");
  });

  it("bring a client every event of its turns, in order, whichever process executes them", async () => {
    await using client = connectAgent({ baseURL: cluster.url("agent"), token: CLUSTER_OWNER });
    const prompts = Array.from({ length: 12 }, (_, index) => `Say number ${index}`);
    const told = await Promise.all(
      prompts.map(async (prompt) => {
        const query = client.submit({ agentId: "helper", prompt });
        let text = "";
        for await (const { delta } of query) text += delta ?? "";
        return { status: (await query.ended).status, text };
      }),
    );
    expect(told.map(({ status }) => status)).toEqual(prompts.map(() => "completed"));
    for (const [index, prompt] of prompts.entries()) expect(told[index]!.text).toContain(prompt);
  });

  it("accept safe tokens of each other", async () => {
    const issued = await fetch(`${cluster.url("agent")}/api/safe-tokens`, {
      method: "POST",
      headers: { "x-agent-service-token": CLUSTER_OWNER, "content-type": "application/json" },
      body: JSON.stringify({ providerId: "demo" }),
    });
    const { token } = (await issued.json()) as { token: string };
    for (let at = 0; at < 3; at++) {
      const answer = await fetch(`${cluster.url("proxy")}/models`, { headers: { authorization: `Bearer ${token}` } });
      expect(answer.status).toBe(200);
    }
  });

  it("continue the runs of a process that was killed, and answer all the while", async () => {
    const started = await Promise.all(Array.from({ length: 12 }, () => call("POST", "/api/workflow/webhook?id=slow", {})));
    cluster.processes[0]!.signal("SIGKILL");
    await cluster.processes[0]!.exited;
    for (const { status, body } of started) {
      expect(status).toBe(200);
      const detail = async () => (await call("GET", `/api/workflow/slow/runs/${body.runId}`)).body;
      await expect.poll(async () => (await detail()).status).toBe("completed");
      expect((await detail()).finalOutputs).toEqual({ waited: 1000 });
    }
  });
});
