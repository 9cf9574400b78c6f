// Surfaces inside a Fastify application: as middleware, which runs before Fastify's own body parsers.
import middie from "@fastify/middie";
import { attach, toNodeHandler } from "@portico/core/node";
import fastify from "fastify";
import { openDesk } from "./desk.ts";
import { type EmbeddingStory, listening, tell } from "./embedding-story.ts";

export async function start(): Promise<EmbeddingStory> {
  const { app, tokens } = await openDesk();
  const host = fastify();
  host.get("/", () => "a page of the host's own");
  await host.register(middie);
  for (const name of app.surfaces) host.use(`/${name}`, toNodeHandler(app.surface(name)));
  await host.listen({ host: "127.0.0.1", port: 0 });
  const attached = attach(host.server, app.surface("agent"), { under: "/agent" });
  return { tokens, ...(await listening(app, host.server, attached)) };
}

if (import.meta.main) {
  await using story = await start();
  await tell(story);
}
