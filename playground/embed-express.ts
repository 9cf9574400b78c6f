// Surfaces inside an Express application: as Node listeners.
import { attach, toNodeHandler } from "@portico/core/node";
import express from "express";
import { openDesk } from "./desk.ts";
import { type EmbeddingStory, listening, tell } from "./embedding-story.ts";

export async function start(): Promise<EmbeddingStory> {
  const { app, tokens } = await openDesk();
  const host = express().get("/", (_request, response) => void response.send("a page of the host's own"));
  // Mount surfaces before any body parser, because a surface reads the body itself.
  for (const name of app.surfaces) host.use(`/${name}`, toNodeHandler(app.surface(name)));
  const server = host.listen(0, "127.0.0.1");
  const attached = attach(server, app.surface("agent"), { under: "/agent" });
  return { tokens, ...(await listening(app, server, attached)) };
}

if (import.meta.main) {
  await using story = await start();
  await tell(story);
}
