import { limitsPage } from "@portico/operator/limits";
import { createApp } from "@portico/core";
import { agent, readPlatformOptions } from "@portico/presets/agent";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startAgentService } from "../../harness/agent-app.ts";
import { guardedRoutes } from "../../harness/guarded-routes.ts";
import { type PorticoProcess, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

const TOKENS = { owner: "owner-token-of-limits", member: "member-token-of-limits" };

guardedRoutes({
  contract: limitsPage({ limits: () => ({ limits: [] }) }).spec.contract,
  parameters: {},
  guard: "instance",
  unauthorized: { error: "unauthorized", code: "unauthorized" },
  start: () => startAgentService({ plugins: [limitsPage({ limits: () => ({ limits: [] }) })] }),
});

describe("GET /api/limits", () => {
  let service: PorticoProcess;
  beforeAll(async () => {
    service = await startPortico({
      config: {
        prices: { currency: "EUR", models: [] },
        limits: { user: { tokensPerDay: 1000, turnSeconds: 90 } },
        agent: {
          tokens: [
            { token: TOKENS.owner, userId: "ada", role: "owner" },
            { token: TOKENS.member, userId: "bob", role: "member" },
          ],
        },
      },
      env: { PORTICO_WORKFLOW_FILES_MAX_BYTES: "12345" },
    });
  });
  afterAll(() => service?.[Symbol.asyncDispose]());

  const read = async (token: string) => {
    const answer = await fetch(`${service.url("agent")}/api/limits`, { headers: { "x-agent-service-token": token } });
    expect(answer.status).toBe(200);
    return (await answer.json()) as { currency: string; limits: any[] };
  };
  const limit = async (id: string) => (await read(TOKENS.owner)).limits.find((each) => each.id === id);

  it("answers each limit with its value, its unit, and where it is set: in the file, the environment, or by default", async () => {
    expect(await limit("limits.user.tokensPerDay")).toEqual({
      ...{ id: "limits.user.tokensPerDay", group: "usage", appliesTo: "user", value: 1000, unit: "tokens" },
      ...{ about: "Input and output tokens of model calls per day.", setting: "limits.user.tokensPerDay", source: "file" },
    });
    expect(await limit("limits.user.turnSeconds")).toMatchObject({ value: 90_000, unit: "milliseconds", source: "file" });
    expect(await limit("workflow.files.maxBytes")).toMatchObject({
      ...{ value: 12_345, unit: "bytes", appliesTo: "file", source: "environment" },
      ...{ setting: "workflow.files.maxBytes", env: "PORTICO_WORKFLOW_FILES_MAX_BYTES" },
    });
    expect(await limit("workflow.files.maxRunBytes")).toMatchObject({ value: 2 ** 30, source: "default" });
    expect((await read(TOKENS.owner)).currency).toBe("EUR");
  });

  it("answers null for a limit that is not set, and names the key of an agent.json that can set it", async () => {
    expect(await limit("limits.agent.tokensPerDay")).toMatchObject({
      ...{ value: null, source: "default", agentKey: "limits.tokensPerDay" },
    });
  });

  it("answers limits that no setting changes, without a setting", async () => {
    const found = await limit("attachments.bytes");
    expect(found).toMatchObject({ value: 20 * 1024 * 1024, unit: "bytes", source: "fixed" });
    expect(found).not.toHaveProperty("setting");
  });

  it("answers the same to members, without paths of files", async () => {
    const [owners, members] = [await read(TOKENS.owner), await read(TOKENS.member)];
    expect(members).toEqual(owners);
    expect(JSON.stringify(members)).not.toContain(service.cwd);
  });

  it("has each limit once, and a variable for each setting that has one", async () => {
    const { limits } = await read(TOKENS.owner);
    const ids = limits.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const { stdout } = await service.run("config", "--json");
    const known = new Map((JSON.parse(stdout) as any[]).map(({ key, env }) => [key, env ?? undefined]));
    const settings = limits.filter(({ setting }) => setting !== undefined);
    expect(settings.length).toBeGreaterThan(10);
    expect(settings.filter(({ setting, env }) => !known.has(setting) || known.get(setting) !== env)).toEqual([]);
  });
});

describe("GET /api/providers", () => {
  it("says where each provider is set", async () => {
    const sources = async (config: object) => {
      await using service = await startPortico({
        config: { ...config, agent: { tokens: [{ token: TOKENS.owner, userId: "ada", role: "owner" }] } },
      });
      const answer = await fetch(`${service.url("agent")}/api/providers`, { headers: { "x-agent-service-token": TOKENS.owner } });
      return ((await answer.json()) as any).providers.map(({ id, source, setting, env }: any) => ({ id, source, setting, env }));
    };
    const provider = { id: "main", protocol: "messages", baseUrl: "http://127.0.0.1:1/v1", credential: "key", models: ["m"] };
    expect(await sources({ providers: [provider] })).toEqual([
      { id: "main", source: "file", setting: "providers", env: "PORTICO_PROVIDERS" },
    ]);
    expect(await sources({ autoProviders: false })).toEqual([{ id: "demo", source: "demo" }]);
  });
});

describe("GET /api/limits of an app with some areas", () => {
  it("leaves out the limits of areas that the app does not have, and says that the options set a limit", async () => {
    const folder = temporaryFolder();
    const options = await readPlatformOptions(
      {
        ...{ dataDir: `${folder.path}/data`, autoProviders: false, log: { level: "error" } },
        limits: { instance: { turnsAtOnce: 3 } },
        agent: { agentsDir: `${folder.path}/agents`, tokens: [{ token: TOKENS.owner, userId: "ada", role: "owner" }] },
      },
      { env: {} },
    );
    await using app = await createApp({ name: "some", extends: agent(options), without: ["attachments-media"] });
    const headers = { "x-agent-service-token": TOKENS.owner };
    const answer = await app.surface("agent").fetch(new Request("http://desk.test/api/limits", { headers }));
    const { limits } = (await answer.json()) as { limits: any[] };
    expect(limits.find(({ id }) => id === "limits.instance.turnsAtOnce")).toMatchObject({ value: 3, source: "options" });
    expect(limits.filter(({ id }) => /^(?:attachments|media|workflow|proxy)\./.test(id))).toEqual([]);
    await app.close();
    folder.remove();
  });
});
