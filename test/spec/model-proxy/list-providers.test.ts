import { chatHttp } from "@portico/adapters/models/chat-http";
import { demo } from "@portico/adapters/models/demo";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { createApp, Secret } from "@portico/core";
import { createClient } from "@portico/core/client";
import { safeTokenManagement } from "@portico/plugins/model-proxy/management";
import { safeTokenContract } from "@portico/plugins/model-proxy/management-contract";
import { afterAll, expect, it } from "vitest";
import { startPortico } from "../../harness/portico-process.ts";

const KEY = "sk-provider-key-0123456789abcdef";
const app = await createApp({
  name: "providers-listed",
  adapters: [
    demo({ id: "offline" }),
    // Nothing listens at port 1: its upstream cannot be asked for models.
    messagesHttp({
      id: "away",
      type: "vendor",
      baseUrl: "http://127.0.0.1:1/v1",
      credential: new Secret(KEY),
      models: "discover",
    }),
    messagesHttp({
      id: "main",
      type: "vendor",
      baseUrl: "http://127.0.0.1:1/v1",
      credential: new Secret(KEY),
      models: ["m-1", "m-2"],
    }),
    chatHttp({ id: "chat", type: "vendor", baseUrl: "http://127.0.0.1:1/v1", models: ["m-3"] }),
    chatHttp({
      id: "strict",
      type: "vendor",
      baseUrl: "http://127.0.0.1:1/v1",
      models: ["m-3"],
      dialect: { reasoningContent: false },
    }),
    memoryRecords(),
    memorySecrets(),
    systemClock(),
    randomIds(),
    tokenIdentity({
      tokens: [
        { token: new Secret("of-the-owner"), userId: "owner", role: "owner" },
        { token: new Secret("of-a-member"), userId: "member", role: "member" },
      ],
    }),
  ],
  plugins: [safeTokenManagement({})],
});
afterAll(() => app.close());

const as = (token: string) =>
  createClient(safeTokenContract, {
    baseURL: "http://agent.test",
    headers: { "x-agent-service-token": token },
    fetch: (request) => app.surface("agent").fetch(request),
  });

it("GET /api/providers lists every enabled provider; one that cannot tell its models is there without them", async () => {
  const answer = await as("of-the-owner").providers();
  expect(answer).toEqual({
    providers: [
      { id: "offline", type: "demo", protocol: "messages", models: ["demo"] },
      { id: "away", type: "vendor", protocol: "messages" },
      { id: "main", type: "vendor", protocol: "messages", models: ["m-1", "m-2"] },
      { id: "chat", type: "vendor", protocol: "chat-completions", models: ["m-3"], takesReasoning: true },
      { id: "strict", type: "vendor", protocol: "chat-completions", models: ["m-3"] },
    ],
  });
  expect(JSON.stringify(answer)).not.toContain(KEY);
});

it("GET /api/providers is the owner's alone", async () => {
  await expect(as("of-a-member").providers()).rejects.toMatchObject({ status: 403, code: "owner_required" });
  await expect(as("of-nobody").providers()).rejects.toMatchObject({ status: 401, code: "unauthorized" });
});

it("GET /api/providers lists the present price of each model: the newest, and first those of the provider itself", async () => {
  const price = { model: "m-1", output: 4 };
  const prices = {
    currency: "EUR",
    models: [
      { ...price, from: "2020-01-01", input: 1 },
      { ...price, from: "2021-01-01", input: 2, cachedInput: 0.2, cacheWrite: 3 },
      { ...price, from: "9999-01-01", input: 5 },
      { ...price, provider: "main", from: "2020-01-01", input: 7 },
      { ...price, provider: "other", model: "m-2", from: "2020-01-01", input: 7 },
    ],
  };
  const provider = { protocol: "messages", baseUrl: "http://127.0.0.1:1/v1", models: ["m-1", "m-2"] };
  await using service = await startPortico({
    config: {
      prices,
      providers: [
        { ...provider, id: "main", credential: KEY },
        { ...provider, id: "second", credential: KEY },
      ],
    },
  });
  const { agentServiceToken } = JSON.parse(service.read("credentials.json")) as { agentServiceToken: string };
  const headers = { "x-agent-service-token": agentServiceToken };
  const answer = await createClient(safeTokenContract, { baseURL: service.url("agent"), headers }).providers();
  expect(answer.currency).toBe("EUR");
  expect(answer.providers.map((each) => [each.id, each.prices])).toEqual([
    ["main", [{ model: "m-1", input: 7, output: 4 }]],
    ["second", [{ model: "m-1", input: 2, output: 4, cachedInput: 0.2, cacheWrite: 3 }]],
  ]);
});
