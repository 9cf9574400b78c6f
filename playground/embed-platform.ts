// The whole platform inside an Express application: agents, workflows and the model proxy, stored in one folder.
import { mkdir, mkdtempDisposable, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "@portico/core";
import { attach, toNodeHandler } from "@portico/core/node";
import express from "express";
import { local, readPlatformOptions } from "@portico/presets/local";
import { ask, type Host, listening } from "./embedding-story.ts";

/** The keys are the same as in a configuration file. Environment variables override them. */
export async function start(folder: string): Promise<Host & { readonly url: string }> {
  const options = await readPlatformOptions({
    dataDir: join(folder, "data"),
    autoProviders: false,
    log: { level: "error" },
    agent: { agentsDir: join(folder, "agents"), tokens: [{ token: "the-token-of-ada", userId: "ada", role: "owner" }] },
  });
  const app = await createApp(local(options));
  const host = express().get("/", (_request, response) => void response.send("a page of the host's own"));
  for (const name of app.surfaces) host.use(`/${name}`, toNodeHandler(app.surface(name)));
  const server = host.listen(0, "127.0.0.1");
  const attached = attach(server, app.surface("agent"), { under: "/agent" });
  return listening(app, server, attached);
}

if (import.meta.main) {
  await using folder = await mkdtempDisposable(join(tmpdir(), "story-"));
  await mkdir(join(folder.path, "agents/helper"), { recursive: true });
  await writeFile(join(folder.path, "agents/helper/agent.json"), JSON.stringify({ name: "Helper" }));
  await using story = await start(folder.path);
  console.log(`agent: ${await ask(`${story.url}/agent`, { token: "the-token-of-ada", agentId: "helper" })}`);
}
