// The agent service inside your own application: its agents are in one folder, its data is in another.
import { mkdir, mkdtempDisposable, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { demo } from "@portico/adapters/models/demo";
import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { agentFolder } from "@portico/adapters/stores/agent-folder";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { type App, createApp, Secret } from "@portico/core";
import { attach, toNodeHandler } from "@portico/core/node";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { ask, listening } from "./embedding-story.ts";

const TOKEN = "the-token-of-ada";

/** Surface `agent`. Replace the offline model `demo` with a real one. The transport of the realtime channel can be replaced, too. */
export function openAgents(folder: string): Promise<App> {
  return createApp({
    name: "agents",
    adapters: [
      ...sqliteStore({ dir: join(folder, "data") }),
      ...agentFolder({ dir: join(folder, "agents") }),
      tokenIdentity({ tokens: [{ token: new Secret(TOKEN), userId: "ada", role: "owner" }] }),
      demo({}),
      socketIoRealtime({}),
    ],
    plugins: [conversationsRuns({})],
  });
}

/** Serves the surface with `node:http`. */
export async function start(folder: string) {
  const app = await openAgents(folder);
  const server = createServer(toNodeHandler(app.surface("agent"))).listen(0, "127.0.0.1");
  return listening(app, server, attach(server, app.surface("agent")));
}

if (import.meta.main) {
  await using folder = await mkdtempDisposable(join(tmpdir(), "story-"));
  await mkdir(join(folder.path, "agents/helper"), { recursive: true });
  await writeFile(join(folder.path, "agents/helper/agent.json"), JSON.stringify({ name: "Helper" }));
  await using story = await start(folder.path);
  console.log(`agent: ${await ask(story.url, { token: TOKEN, agentId: "helper" })}`);
}
