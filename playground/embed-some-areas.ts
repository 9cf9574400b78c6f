// Some areas of a platform: an agent service without webhooks, without files, and without management of safe tokens.
import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type App, createApp } from "@portico/core";
import { agent, readPlatformOptions } from "@portico/presets/agent";

/** The preset `agent` without the areas that are listed in `without`. */
export async function start(folder: string): Promise<App> {
  const options = await readPlatformOptions({
    dataDir: join(folder, "data"),
    autoProviders: false,
    log: { level: "error" },
    agent: { agentsDir: join(folder, "agents"), tokens: [{ token: "the-token-of-ada", userId: "ada", role: "owner" }] },
  });
  return createApp({
    name: "conversations-alone",
    extends: agent(options),
    without: ["agent-webhook", "attachments-media", "safe-tokens"],
  });
}

if (import.meta.main) {
  await using folder = await mkdtempDisposable(join(tmpdir(), "story-"));
  await using app = await start(folder.path);
  const headers = { "x-agent-service-token": "the-token-of-ada" };
  const call = (path: string) => app.surface("agent").fetch(new Request(`http://desk.local${path}`, { headers }));
  for (const path of ["/api/conversations", "/api/safe-tokens"]) console.log(`${path}: ${(await call(path)).status}`);
  const { capabilities } = (await (await call("/api/handshake")).json()) as { capabilities: object };
  console.log(capabilities);
}
