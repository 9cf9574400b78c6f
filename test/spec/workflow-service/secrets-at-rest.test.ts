// What runs store and show of secrets: docs/security.md, and docs/areas/workflow-service.md, "Secrets".
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type WorkflowFolder, type WorkflowProcess, workflowFolder } from "../../harness/workflow-process.ts";

// A service is started three times.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

/** In the configuration, in the answer of a login, in those of other nodes, and what a person types. */
const SECRETS = {
  key: "k3y-S3cr3t/Value+1",
  token: "t0k-9f8e7d6c5b4a3210ab",
  pin: "48291357",
  minted: "ch1-0a1b2c3d4e5f",
  made: "m4d3-by-a-transform",
  password: "pw0-Zm9vYmFyYmF6",
};

const PARAMETERS = { type: "object", required: ["server"], properties: { server: { type: "string" } } };
const token = "nodes.login.output.body.token";
const shared = { key: "${{ secrets.KEY }}", token: `\${{ ${token} }}`, upper: "${{ nodes.derived.output.upper }}" };
const http = (path: string, more: object = {}) => ({ method: "GET", url: `\${{ parameters.server }}${path}`, ...more });
const said = (text: string) => ({ provider: "demo", prompt: text });

const everything = {
  parameters: PARAMETERS,
  nodes: {
    login: {
      type: "http",
      sensitive: ["body.token", "body.*.pin"],
      retry: { attempts: 2, delay: "1ms" },
      with: http("/login", { headers: { authorization: "Basic ${{ bytes('user:' + secrets.KEY).base64() }}" } }),
    },
    derived: {
      type: "transform",
      needs: ["login"],
      with: {
        value: {
          bearer: `\${{ 'Bearer ' + ${token} }}`,
          basic: `\${{ bytes('me:' + ${token}).base64() }}`,
          upper: `\${{ ${token}.upperAscii() }}`,
          pin: "${{ nodes.login.output.body.user.pin }}",
        },
      },
    },
    made: { type: "transform", sensitive: true, with: { value: "${{ 'm4d3-' + 'by-a-transform' }}" } },
    unknown: {
      type: "tool",
      onError: "continue",
      with: { tool: "RunWorkflow", arguments: { workflowId: "none-${{ secrets.KEY }}" } },
    },
    echo: {
      type: "http",
      needs: ["derived", "made"],
      with: http("/echo", {
        method: "POST",
        key: true,
        headers: { authorization: "${{ nodes.derived.output.bearer }}" },
        body: { all: "${{ nodes.derived.output }}", key: "${{ secrets.KEY }}", made: "${{ nodes.made.output }}" },
      }),
    },
    model: { type: "model", needs: ["derived"], with: said(`\${{ ${token} }} and \${{ secrets.KEY }}`) },
    code: { type: "code", needs: ["derived"], with: { source: "return { [input]: [input] }", input: `\${{ ${token} }}` } },
    map: {
      type: "map",
      needs: ["derived"],
      with: {
        items: `[secrets.KEY, ${token}, nodes.derived.output.upper]`,
        nodes: { each: { type: "model", with: said("${{ item }}") } },
        result: "nodes.each.output.text",
      },
    },
    loop: {
      type: "loop",
      needs: ["derived"],
      with: {
        nodes: { turn: { type: "model", with: said(`\${{ previous == null ? ${token} : previous }}`) } },
        until: "index == 1",
        result: "nodes.turn.output.text",
      },
    },
    child: {
      type: "workflow",
      needs: ["derived"],
      with: { workflow: "child", parameters: { server: "${{ parameters.server }}", ...shared } },
    },
    tool: {
      type: "tool",
      needs: ["derived"],
      with: {
        tool: "RunWorkflow",
        arguments: { workflowId: "child", parameters: { server: "${{ parameters.server }}", ...shared } },
      },
    },
    bot: {
      type: "agent",
      needs: ["child"],
      with: { agent: "helper", prompt: `Use \${{ ${token} }}, \${{ secrets.KEY }}, \${{ nodes.child.output.own }}` },
    },
    failing: {
      type: "fail",
      needs: ["child"],
      onError: "continue",
      with: { message: `No ${shared.token}, ${shared.key}, ${shared.upper}` },
    },
    ask: {
      type: "human_gate",
      needs: ["echo", "model", "code", "map", "loop", "bot", "failing", "tool", "unknown"],
      sensitive: ["values.password"],
      with: { title: shared.token, message: shared.key, form: { type: "object", properties: { password: { type: "string" } } } },
    },
    repeat: {
      type: "http",
      needs: ["ask"],
      with: http("/echo", { method: "POST", key: true, body: { password: "${{ nodes.ask.output.values.password }}" } }),
    },
    hang: { type: "http", needs: ["repeat"], with: http("/hang", { query: { token: `\${{ ${token} }}` } }) },
  },
  outputs: {
    ...shared,
    own: "${{ nodes.child.output.own }}",
    password: "${{ nodes.repeat.output.body.body }}",
    pin: "${{ nodes.derived.output.pin }}",
    hung: "${{ nodes.hang.output.body }}",
  },
};

const child = {
  parameters: PARAMETERS,
  nodes: {
    say: { type: "model", with: said("${{ parameters.token }} ${{ parameters.key }} ${{ parameters.upper }}") },
    mint: { type: "http", sensitive: true, with: http("/mint") },
    upper: { type: "transform", needs: ["mint"], with: { value: "${{ nodes.mint.output.body.token.upperAscii() }}" } },
  },
  outputs: { own: "${{ nodes.mint.output.body.token }}", said: "${{ nodes.say.output.text }}", token: "${{ parameters.token }}" },
};

const broken = {
  parameters: PARAMETERS,
  nodes: {
    mint: { type: "http", sensitive: ["body.token"], with: http("/mint") },
    refused: { type: "fail", needs: ["mint"], with: { message: "No ${{ nodes.mint.output.body.token }}" } },
  },
};

let folder: WorkflowFolder;
let upstream: Server;
let server: string;
/** What the upstream was sent. */
let received = "";
let release: () => void = () => {};
let isHanging: Promise<void>;
let logins = 0;

beforeAll(async () => {
  folder = workflowFolder();
  let hang: () => void;
  isHanging = new Promise((resolve) => (hang = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  upstream = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const { url = "", headers } = request;
    received += `${url} ${headers.authorization ?? ""} ${body}\n`;
    const answer = (status: number, value: unknown) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(value));
    };
    if (url === "/login" && ++logins === 1) return answer(503, { error: headers.authorization });
    if (url === "/login")
      return answer(200, {
        token: SECRETS.token,
        again: [`is ${SECRETS.token}`],
        user: { name: "Ada", pin: Number(SECRETS.pin) },
      });
    if (url === "/mint") return answer(200, { token: SECRETS.minted });
    if (url === "/echo") return answer(200, { body, authorization: headers.authorization });
    hang();
    await released;
    answer(200, { url });
  }).listen(0, "127.0.0.1");
  await once(upstream, "listening");
  server = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  folder.deploy("everything.json", everything);
  folder.deploy("child.json", child);
  folder.deploy("broken.json", broken);
  mkdirSync(join(folder.path, "agents", "helper"), { recursive: true });
  writeFileSync(join(folder.path, "agents", "helper", "agent.json"), JSON.stringify({ name: "Helper" }));
});
afterAll(() => {
  release();
  upstream.closeAllConnections();
  upstream.close();
  folder[Symbol.dispose]();
});

const start = () =>
  folder.start("local", {
    hasOwnProcess: true,
    config: { workflow: { secrets: { KEY: { env: "THE_KEY" } }, http: { allow: ["127.0.0.1"] } }, log: { level: "debug" } },
    env: { THE_KEY: SECRETS.key },
  });

/** Finds a secret as a reader of a store or of an answer would. */
function formsOf(secret: string): readonly string[] {
  const encoded = [0, 1, 2].map((offset) => {
    const text = Buffer.from("x".repeat(offset) + secret).toString("base64");
    return text.slice([0, 2, 3][offset], Math.floor(((offset + secret.length) * 8) / 6));
  });
  return [secret, secret.toUpperCase(), encodeURIComponent(secret), ...encoded];
}

/** Names of the secrets that stand in these bytes, in whatever form. */
function found(bytes: Buffer | string): readonly string[] {
  const text = Buffer.from(bytes).toString("latin1");
  return Object.entries(SECRETS).flatMap(([name, secret]) => (formsOf(secret).some((form) => text.includes(form)) ? [name] : []));
}

/** Files of the service's folder with secrets in them. */
function stored(): readonly string[] {
  const files = readdirSync(folder.path, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  return files.flatMap(({ parentPath, name }) =>
    found(readFileSync(join(parentPath, name))).map((secret) => `${name}: ${secret}`),
  );
}

/** Everything that the service shows of runs, with what it said on the way. */
async function shown(service: WorkflowProcess, events: string): Promise<string> {
  const headers = { "x-agent-service-token": service.token("agentServiceToken") };
  const ask = async (surface: string, path: string) =>
    (
      await fetch(service.url(surface) + path, {
        headers: { ...headers, "x-workflow-service-token": service.token("workflowServiceToken") },
      })
    ).text();
  const texts = [events, service.stdout(), service.stderr()];
  for (const workflow of ["everything", "child", "broken"]) {
    const list = await ask("workflow", `/api/workflow/${workflow}/runs`);
    texts.push(list, await ask("workflow", `/api/workflow/${workflow}/definition`));
    for (const { runId } of JSON.parse(list).runs) texts.push(await ask("workflow", `/api/workflow/${workflow}/runs/${runId}`));
  }
  const runs = await ask("agent", "/api/runs");
  texts.push(runs, await ask("workflow", "/metrics"), await ask("agent", "/metrics"), await ask("workflow", "/api/workflows"));
  for (const { run_id: runId } of JSON.parse(runs).runs) {
    for (const path of ["", "/receipts", "/runtime-state"]) texts.push(await ask("agent", `/api/runs/${runId}${path}`));
  }
  const conversations = await ask("agent", "/api/conversations");
  texts.push(conversations);
  for (const { id, conversationId = id } of JSON.parse(conversations).conversations)
    texts.push(await ask("agent", `/api/conversations/${conversationId}/messages`));
  return texts.join("\n");
}

/** The events of a run, as they come, to the stream's end. */
function follow(service: WorkflowProcess, runId: string): () => string {
  let text = "";
  void (async () => {
    const answer = await fetch(`${service.url("workflow")}/api/workflow/events?runId=${runId}`, {
      headers: { "x-workflow-service-token": service.token("workflowServiceToken") },
    });
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) text += chunk;
  })().catch(() => {});
  return () => text;
}

async function approve(service: WorkflowProcess, runId: string): Promise<void> {
  const { stdout } = await service.run("grant", "issue", "--workflow", "everything");
  const values = { password: SECRETS.password };
  const body = { decision: "approve", values };
  const path = `/api/workflow/everything/runs/${runId}/gate`;
  const { status } = await service.call("POST", path, body, { "x-execution-grant": stdout.trim() });
  expect(status).toBe(200);
}

describe("secrets of workflows", () => {
  it("appear unsealed in no store, answer, event, log or metric, with kills at all places", async () => {
    let runId: string;
    let events: () => string;
    {
      await using first = await start();
      const failed = await first.trigger("broken", { server });
      runId = await first.trigger("everything", { server, alsoSent: SECRETS.key });
      events = follow(first, runId);
      const waiting = await first.until("everything", runId, "waiting_human");
      expect(waiting.humanGate).toMatchObject({ title: "***", message: "***", sensitive: ["values.password"] });
      expect((await first.until("broken", failed, "failed")).error.message).toBe("No ***");
      expect(stored()).toEqual([]);
      expect(found(await shown(first, events()))).toEqual([]);
      first.signal("SIGKILL");
      await first.exited;
    }
    {
      await using second = await start();
      await approve(second, runId);
      await isHanging;
      expect(stored()).toEqual([]);
      second.signal("SIGKILL");
      await second.exited;
    }
    await using third = await start();
    release();
    const detail = await third.until("everything", runId, "completed");
    expect(detail.finalOutputs).toEqual({
      ...{ key: "***", token: "***", upper: "***", own: "***", pin: "***" },
      password: '{"password":"***"}',
      hung: { url: "/hang?token=***" },
    });
    expect(detail.nodeResults.login).toMatchObject({
      attempts: 2,
      inputs: { headers: { authorization: "Basic ***" } },
      outputs: { status: 200, body: { token: "***", again: ["is ***"], user: { name: "Ada", pin: "***" } } },
    });
    expect(detail.nodeResults.made.outputs).toBe("***");
    expect(detail.nodeResults.unknown.error.message).toContain("none-***");
    expect(detail.nodeResults["map"].outputs).toEqual(Array(3).fill(expect.stringContaining("You said: ***")));
    expect(found(await shown(third, events()))).toEqual([]);
    expect(events()).toContain("workflow:human_gate");
    await third.stop();
    expect(stored()).toEqual([]);
  });

  it("reach the nodes that need them, also those that began after the kills", () => {
    expect(found(received)).toEqual(Object.keys(SECRETS).filter((name) => name !== "minted"));
    for (const sent of [
      `/login Basic ${Buffer.from(`user:${SECRETS.key}`).toString("base64")}`,
      `/echo Bearer ${SECRETS.token}`,
      `"basic":"${Buffer.from(`me:${SECRETS.token}`).toString("base64")}"`,
      `"pin":${SECRETS.pin}`,
      `{"password":"${SECRETS.password}"}`,
      `/hang?token=${SECRETS.token}`,
    ])
      expect(received).toContain(sent);
  });
});
