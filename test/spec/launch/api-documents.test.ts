import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createApp, defineContract, definePlugin, reply } from "@portico/core";
import type { OpenAPIDocument } from "@portico/core/openapi";
import { asyncAPIOf, openAPIOf } from "@portico/operator/api-docs/documents";
import { agent } from "@portico/presets/agent";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { readSurface } from "../../../presets/cli/src/read-surface.ts";
import { describedSurface } from "../../../presets/src/platform/service-pages.ts";
import { platformSchema } from "../../../presets/src/settings/platform.ts";
import { lintDocument } from "../../harness/lint-document.ts";
import { hasTools } from "../../harness/oracle.ts";
import { runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

const SURFACES = [
  ["local", "proxy"],
  ["local", "workflow"],
  ["local", "agent"],
  ["proxy", "proxy"],
  ["workflow", "workflow"],
  ["agent", "agent"],
] as const;

async function describedOf(preset: string, surface: string) {
  const { areas } = await readSurface({}, { preset, surface });
  const described = describedSurface(surface);
  return { openapi: openAPIOf(areas, described), asyncapi: asyncAPIOf(areas, described) };
}

const isInstalled = hasTools("test/oracles", "Tests of the documents of surfaces with a linter");

describe("the documents of a surface", () => {
  it.skipIf(!isInstalled).each(SURFACES)("stand before a linter: preset %s, surface %s", async (preset, surface) => {
    for (const [kind, document] of Object.entries(await describedOf(preset, surface)))
      expect(await lintDocument(document), kind).toEqual([]);
  });

  it.skipIf(!isInstalled)("would not, if something were wrong with them", async () => {
    const document = { openapi: "3.1.1", info: { title: "x" }, paths: { "/a/{b}": { get: { summary: "x" } } } };
    expect(await lintDocument(document)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^struct .*`version`/),
        expect.stringMatching(/^path-parameters-defined/),
        expect.stringMatching(/^security-defined/),
      ]),
    );
    const stream = { asyncapi: "3.0.0", info: { title: "x", version: "1" }, operations: { a: { action: "shout" } } };
    expect(await lintDocument(stream)).toEqual(expect.arrayContaining([expect.stringMatching(/^struct #\/operations\/a/)]));
  });

  it.each(["openapi", "asyncapi"])("are printed of one: portico %s asks which, where a preset has several", async (command) => {
    expect(await runCommand([command])).toEqual({
      code: 64,
      stdout: "",
      stderr: 'The preset "local" has proxy and workflow and agent: name one with --surface\n',
    });
  });

  it("name the realtime channel and the event stream, and nothing if the surface has none", async () => {
    const channels = async (surface: string) => Object.keys((await describedOf("local", surface)).asyncapi.channels);
    expect(await channels("agent")).toEqual([
      "conversations-runs.queries",
      "conversations-runs.approvalChanges",
      "conversations-runs.events",
      "log.follow",
    ]);
    expect(await channels("workflow")).toEqual(["workflow-service.events", "workflow-service.gateChanges"]);
    expect(await channels("proxy")).toEqual([]);
  });
});

describe("a running service", () => {
  it("shows its documents to callers with its token, as the command prints them; the proxy shows none", async () => {
    await using service = await startPortico();
    const { agentServiceToken, workflowServiceToken } = JSON.parse(service.read("credentials.json")) as Record<string, string>;
    const tokens = {
      agent: { "x-agent-service-token": agentServiceToken! },
      workflow: { "x-workflow-service-token": workflowServiceToken! },
    };
    for (const [surface, headers] of Object.entries(tokens)) {
      for (const kind of ["openapi", "asyncapi"]) {
        const url = `${service.url(surface)}/${kind}.json`;
        expect((await fetch(url)).status, url).toBe(401);
        const answer = await fetch(url, { headers });
        expect(answer.status, url).toBe(200);
        const { stdout } = await service.run(kind, "local", "--surface", surface);
        expect(await answer.json()).toEqual(JSON.parse(stdout));
      }
    }
    // Only three paths exist there (specification 4.1); its document is printed by the command line alone.
    const proxy = new URL("/openapi.json", service.url("proxy"));
    const token = await service.token("demo");
    expect((await fetch(proxy, { headers: { authorization: `Bearer ${token}` } })).status).toBe(404);
  });

  it("shows what plugins of third parties have on its surface, too", async () => {
    const folder = temporaryFolder();
    try {
      const greetings = definePlugin({
        name: "greetings",
        summary: "Greets.",
        config: v.strictObject({}),
        needs: {},
        contract: defineContract(
          { surface: "agent", auth: "open", envelope: ({ code }) => ({ error: code }) },
          { greet: { method: "GET", path: "/greet", summary: "Greets", success: reply.json(v.string()) } },
        ),
        setup: () => ({ greet: () => "Hello" }),
      });
      const settings = v.parse(platformSchema, { dataDir: join(folder.path, "data"), log: { level: "error" } });
      const preset = { name: "mine", extends: agent({ settings, providers: [] }), plugins: [greetings({})] };
      await using app = await createApp(preset);
      const credentials = readFileSync(join(folder.path, "data/credentials.json"), "utf8");
      const { agentServiceToken } = JSON.parse(credentials) as { agentServiceToken: string };
      const request = new Request("http://host/openapi.json", { headers: { "x-agent-service-token": agentServiceToken } });
      const document = (await (await app.surface("agent").fetch(request)).json()) as OpenAPIDocument;
      expect(Object.keys(document.paths)).toContain("/greet");
      expect(document.tags).toContainEqual({ name: "greetings", description: "Greets." });
    } finally {
      folder.remove();
    }
  });
});
