import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createApp } from "@portico/core";
import { type LocalConfig, local, readPlatformOptions } from "@portico/presets/local";
import { afterEach, beforeEach, expect, it } from "vitest";
import { temporaryFolder } from "../../harness/portico-process.ts";

const OWNER = "the-token-of-the-owner";

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
  mkdirSync(join(folder.path, "agents", "looper"), { recursive: true });
  const definition = { name: "Looper", tools: ["DelegateToAgent"], toolPolicy: { tools: { DelegateToAgent: "ask" } } };
  writeFileSync(join(folder.path, "agents", "looper", "agent.json"), JSON.stringify(definition));
});
afterEach(() => folder.remove());

async function open(agent: LocalConfig["agent"], more: LocalConfig = {}) {
  const options = await readPlatformOptions(
    {
      ...{ dataDir: folder.path, log: { level: "silent" }, autoProviders: false, ...more },
      agent: {
        ...{ agentsDir: join(folder.path, "agents"), tokens: [{ token: OWNER, userId: "ada", role: "owner" }] },
        ...agent,
      },
    },
    { env: {} },
  );
  return createApp(local({ ...options, listeners: () => ({ agent: "http://127.0.0.1:49154" }) }));
}

type App = Awaited<ReturnType<typeof open>>;

async function call(app: App, surface: string, path: string, token: string, body?: object): Promise<any> {
  const request = new Request(`http://127.0.0.1${path}`, {
    method: body ? "POST" : "GET",
    headers: { host: "127.0.0.1", "x-agent-service-token": token, "x-api-key": token, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  return (await app.surface(surface).fetch(request)).json();
}

it("agents are no models by default", async () => {
  await using app = await open({});
  const { providers } = await call(app, "agent", "/api/providers", OWNER);
  expect(providers.map(({ id }: any) => id)).toEqual(["demo"]);
});

it("agent.asModels.userId makes agents models, and says where a call that waits is decided", async () => {
  await using app = await open({ asModels: { userId: "bob" }, console: true });
  const { providers } = await call(app, "agent", "/api/providers", OWNER);
  const setting = { source: "options", setting: "agent.asModels.userId", env: "PORTICO_AGENT_AS_MODELS_USER" };
  expect(providers.at(-1)).toEqual({ id: "agents", type: "agents", protocol: "messages", models: ["looper"], ...setting });
  const { token } = await call(app, "agent", "/api/safe-tokens", OWNER, { providerId: "agents" });
  const answer = await call(app, "proxy", "/v1/messages", token, {
    ...{ model: "looper", max_tokens: 100 },
    messages: [{ role: "user", content: "use DelegateToAgent" }],
  });
  const [run] = (await call(app, "agent", "/api/runs", OWNER)).runs;
  expect(run).toMatchObject({ user_id: "bob", agent_id: "looper", status: "running" });
  expect(answer.content[0].text).toContain(`Decide here: http://127.0.0.1:49154/#/runs/${run.run_id}.`);
});

it("no other provider can have the ID of the provider of agents", async () => {
  const providers = [{ id: "agents", protocol: "messages" as const, baseUrl: "http://127.0.0.1:1/v1", models: ["x"] }];
  await expect(open({ asModels: { userId: "bob" } }, { providers })).rejects.toThrow(
    'providers: expected no provider with the ID "agents", which agent.asModels.userId uses',
  );
});
