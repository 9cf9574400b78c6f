import { type ports, Secret } from "@portico/core";
import { chooseProviders } from "@portico/presets/platform/provider-choice";
import { type PlatformSettings, platformSchema } from "@portico/presets/settings/platform";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { PROVIDER_KEY } from "../../harness/proxy-app.ts";

const PROVIDER = {
  id: "sdk",
  protocol: "ai-sdk",
  package: "@ai-sdk/anthropic",
  create: "createAnthropic",
  models: ["echo-large"],
};

function faultsOf(more: object): readonly string[] {
  const { issues = [] } = v.safeParse(platformSchema, { providers: [{ ...PROVIDER, ...more }] });
  return issues.map((issue) => v.getDotPath(issue) ?? "");
}

describe("a configured provider of the protocol ai-sdk", () => {
  it("calls the upstream through the installed package", async () => {
    await using upstream = await startFakeUpstream();
    const provider = { ...PROVIDER, options: { baseURL: upstream.baseUrl } };
    const { providers } = v.parse(platformSchema, { providers: [provider] }) as PlatformSettings;
    const configured = providers.map((each) => ({ ...each, credential: new Secret(PROVIDER_KEY) }));
    const [chosen] = await chooseProviders({ providers: configured, autoProviders: false }, { env: {} });
    expect(chosen).toMatchObject({ id: "sdk", protocol: "messages", models: ["echo-large"] });
    const { port, close } = await openAdapter(chosen!.adapter);
    const model = port as ports.ModelProvider;
    const body = Buffer.from('{"model":"echo-large","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}');
    const answer = await model.send({ headers: {}, query: "", body }, new AbortController().signal);
    expect([answer.status, (await upstream.request()).headers["x-api-key"]]).toEqual([200, PROVIDER_KEY]);
    await close();
  });

  it.each([
    ["providers.0.package", { package: undefined }],
    ["providers.0.package", { package: "../secret" }],
    ["providers.0.models", { models: "discover" }],
    ["providers.0.baseUrl", { baseUrl: "https://api.example/v1" }],
    ["providers.0.headers", { headers: { "x-team": "a" } }],
    ["providers.0.retry", { retry: {} }],
    ["providers.0.dialect", { dialect: { stop: false } }],
    ["providers.0.keys", { keys: ["key-1", "key-2"] }],
    ["providers.0.credential", { credential: { command: ["print-token"] } }],
    ["providers.0.baseUrl", { protocol: "messages", package: undefined, create: undefined }],
    ["providers.0.create", { protocol: "messages", baseUrl: "https://api.example/v1", package: undefined }],
  ])("is refused at %s with %j", (path, more) => {
    expect(faultsOf(more)).toContain(path);
  });

  it("takes its own keys", () => {
    expect(faultsOf({ options: { name: "a" }, providerOptions: { anthropic: { a: 1 } } })).toEqual([]);
  });
});
