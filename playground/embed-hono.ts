// Surfaces inside a Hono application.
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { attach } from "@portico/core/node";
import { Hono } from "hono";
import { openDesk } from "./desk.ts";
import { type EmbeddingStory, listening, tell } from "./embedding-story.ts";

export async function start(): Promise<EmbeddingStory> {
  const { app, tokens } = await openDesk();
  const host = new Hono().get("/", (context) => context.text("a page of the host's own"));
  for (const name of app.surfaces) host.mount(`/${name}`, app.surface(name).fetch);
  // Without `overrideGlobalObjects: false`, Hono cannot mount requests with a body on Deno and Bun.
  const server = createServer(getRequestListener(host.fetch, { overrideGlobalObjects: false })).listen(0, "127.0.0.1");
  const attached = attach(server, app.surface("agent"), { under: "/agent" });
  return { tokens, ...(await listening(app, server, attached)) };
}

if (import.meta.main) {
  await using story = await start();
  await tell(story);
}
