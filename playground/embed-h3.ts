// Surfaces inside an h3 application.
import { createServer } from "node:http";
import { attach } from "@portico/core/node";
import { H3 } from "h3";
import { toNodeHandler } from "h3/node";
import { openDesk } from "./desk.ts";
import { type EmbeddingStory, listening, tell } from "./embedding-story.ts";

export async function start(): Promise<EmbeddingStory> {
  const { app, tokens } = await openDesk();
  const host = new H3().get("/", () => "a page of the host's own");
  for (const name of app.surfaces) host.mount(`/${name}`, { fetch: app.surface(name).fetch });
  const server = createServer(toNodeHandler(host)).listen(0, "127.0.0.1");
  const attached = attach(server, app.surface("agent"), { under: "/agent" });
  return { tokens, ...(await listening(app, server, attached)) };
}

if (import.meta.main) {
  await using story = await start();
  await tell(story);
}
