import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type App, createApp, ports } from "@portico/core";
import { readPlatformOptions } from "@portico/presets/local";
import { afterEach, beforeEach, expect, it } from "vitest";
import { sampleNamePreset, sampleNameSchema } from "../src/preset.ts";

let folder: string;
let app: App;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sample-name-"));
  const config = {
    dataDir: join(folder, "data"),
    autoProviders: false,
    log: { level: "silent" as const },
    workflow: { definitionsDir: join(folder, "workflows") },
    agent: { agentsDir: join(folder, "agents"), tokens: [{ token: "owner-token", userId: "owner", role: "owner" as const }] },
    sampleName: { greeting: "Hello" },
  };
  app = await createApp(sampleNamePreset(await readPlatformOptions(config, { schema: sampleNameSchema, env: {} })));
});
afterEach(async () => {
  await app.close();
  await rm(folder, { recursive: true });
});

it("has the surfaces of a platform, and accepts their owner's token", async () => {
  expect(app.surfaces).toEqual(["proxy", "workflow", "agent"]);
  const headers = { "x-agent-service-token": "owner-token" };
  const answer = await app.surface("agent").fetch(new Request("http://sample-name.test/api/handshake", { headers }));
  expect(await answer.json()).toMatchObject({ identity: { userId: "owner", role: "owner" } });
});

it("has a tool that uses the settings", async () => {
  const source = app.port(ports.tools).find(({ id }) => id === "sample-name");
  const call = { toolId: "greeting", arguments: {}, caller: {} };
  expect(await source?.call(call, new AbortController().signal)).toEqual({
    content: [{ type: "text", text: "Hello" }],
    isError: false,
  });
});
