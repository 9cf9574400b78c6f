import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCommand, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

const write = (providers: readonly object[]) =>
  writeFileSync(join(folder.path, "portico.config.json"), JSON.stringify({ providers }));
const linesOf = (stderr: string) =>
  stderr
    .replaceAll(/ \(file [^)]*\)/g, "")
    .trimEnd()
    .split("\n");
const START = ["start", "proxy", "--json"];

const BEDROCK = { id: "cloud", protocol: "bedrock", region: "eu-central-1", models: ["a-model"] };
const VERTEX = { id: "cloud", protocol: "vertex", region: "us-east5", project: "my-project", models: ["a-model"] };
const AZURE = { id: "cloud", protocol: "azure", baseUrl: "https://my.openai.azure.com", models: ["a-model"] };
const MESSAGES = {
  id: "cloud",
  protocol: "messages",
  baseUrl: "https://my.services.ai.azure.com/anthropic/v1",
  models: ["a-model"],
};

describe("a provider in a cloud", () => {
  it("with a key that its protocol lacks, or without one that it needs, stops the start with one line per fault", async () => {
    const { region: _region, ...bedrock } = BEDROCK;
    const { region: _vertexRegion, project: _project, ...vertex } = VERTEX;
    const { baseUrl: _baseUrl, ...azure } = AZURE;
    write(
      [
        bedrock,
        { ...BEDROCK, project: "my-project", keyFile: "key.json", apiVersion: "2024-10-21", entra: true },
        { ...BEDROCK, models: "discover" },
        vertex,
        { ...VERTEX, credential: { env: "PATH" }, profile: "default", models: "discover" },
        azure,
        { ...AZURE, models: "discover", entra: true },
        { ...AZURE, region: "eu-central-1", credential: { env: "PATH" } },
        { ...AZURE, credential: { env: "PATH" }, entra: true },
        { ...BEDROCK, keys: [{ env: "PATH" }], profile: "default" },
        { ...MESSAGES, region: "eu-central-1", profile: "default" },
        { ...MESSAGES, credential: { env: "PATH" }, entra: true },
        { ...BEDROCK, region: "EU Central", project: "my project" },
      ].map((provider, index) => ({ ...provider, id: `cloud-${index}` })),
    );
    const { code, stdout, stderr } = await runCommand(START, { cwd: folder.path });
    expect([code, stdout]).toEqual([78, ""]);
    expect(linesOf(stderr)).toEqual([
      'providers.12.region: expected a region, such as eu-central-1, found "EU Central"',
      'providers.12.project: expected the id of a project, found "my project"',
      'providers.0.region: expected a value: a provider of the protocol "bedrock" needs it, found nothing',
      'providers.1.project: expected nothing: only providers of the protocol "vertex" have it, found "my-project"',
      `providers.1.keyFile: expected nothing: only providers of the protocol "vertex" have it, found "${join(folder.path, "key.json")}"`,
      'providers.1.apiVersion: expected nothing: only providers of the protocol "azure" have it, found "2024-10-21"',
      'providers.1.entra: expected nothing: only providers of the protocol "messages" or "chat-completions" or "responses" or "azure" have it, found true',
      'providers.2.models: expected a list of names: Bedrock lists models that an account cannot call, and needs other rights for it, found "discover"',
      'providers.3.region: expected a value: a provider of the protocol "vertex" needs it, found nothing',
      'providers.3.project: expected a value: a provider of the protocol "vertex" needs it, found nothing',
      'providers.4.profile: expected nothing: only providers of the protocol "bedrock" have it, found "default"',
      'providers.4.credential: expected nothing: only providers of the protocol "messages" or "chat-completions" or "responses" or "bedrock" or "azure" or "ai-sdk" have it, found an object',
      'providers.4.models: expected a list of names: Vertex AI lists models that a project has not enabled, found "discover"',
      'providers.5.baseUrl: expected a value: a provider of the protocol "azure" needs it, found nothing',
      "providers.5.credential: expected a key of the resource, or `entra: true`, found nothing",
      'providers.6.models: expected a list of names: Azure takes names of deployments, and lists other names, found "discover"',
      'providers.7.region: expected nothing: only providers of the protocol "bedrock" or "vertex" have it, found "eu-central-1"',
      "providers.8.credential: expected nothing: `entra` takes its place, found an object",
      "providers.9.keys: expected nothing: `profile` takes its place, found a list",
      'providers.10.region: expected nothing: only providers of the protocol "bedrock" or "vertex" have it, found "eu-central-1"',
      'providers.10.profile: expected nothing: only providers of the protocol "bedrock" have it, found "default"',
      "providers.11.credential: expected nothing: `entra` takes its place, found an object",
    ]);
  });

  it.each([
    { provider: BEDROCK, name: "@portico/clouds", needed: 'protocol: NAME, which the protocol "bedrock" needs' },
    { provider: VERTEX, name: "@portico/clouds", needed: 'protocol: NAME, which the protocol "vertex" needs' },
    { provider: { ...AZURE, entra: true }, name: "@portico/clouds", needed: "entra: NAME, which `entra` needs" },
    { provider: { ...MESSAGES, entra: true }, name: "@azure/identity", needed: "entra: NAME, which `entra` needs" },
  ])(
    "of the protocol $provider.protocol stops the start with one line that says what to install, without $name",
    async ({ provider, name, needed }) => {
      write([provider]);
      const { code, stdout, stderr } = await runPortico(START, { cwd: folder.path, before: without(name) });
      expect([code, stdout]).toEqual([78, ""]);
      const expected = needed.replace("NAME", `expected the installed package ${name}`);
      expect(linesOf(stderr)).toEqual([`providers (cloud).${expected}, found no such package; install it: npm install ${name}`]);
    },
  );

  it("starts without the packages of other clouds", async () => {
    write([{ ...AZURE, credential: { env: "KEY" } }]);
    await using service = await startPortico({
      cwd: folder.path,
      args: ["proxy"],
      env: { KEY: "a-key-of-the-test" },
      before: without("@portico/clouds"),
    });
    expect((await fetch(`${service.url("proxy")}/models`)).status).toBe(401);
  });
});

/** Imports of a package are looked up in a folder that has none. So its absence is told by the runtime itself. */
function without(name: string): string {
  return `
    import { registerHooks } from "node:module";
    registerHooks({ resolve(specifier, context, next) {
      const isMissing = specifier === ${JSON.stringify(name)} || specifier.startsWith(${JSON.stringify(`${name}/`)});
      return next(specifier, isMissing ? { ...context, parentURL: ${JSON.stringify(pathToFileURL(join(folder.path, "x.js")).href)} } : context);
    } });`;
}
