// Surfaces inside a Hono application, which is a fetch host.
import { Hono } from "hono";
import { openDesk } from "./desk.ts";
import { type EmbeddingStory, tell } from "./embedding-story.ts";

export async function start(): Promise<EmbeddingStory> {
  const desk = await openDesk();
  const host = new Hono()
    .get("/", (context) => context.text("a page of the host's own"))
    .mount("/models", desk.app.surface("proxy").fetch)
    .mount("/notebook", desk.app.surface("notebook").fetch);
  return {
    desk,
    call: async (path, init) => host.fetch(new Request(`http://host.local${path}`, init)),
    [Symbol.asyncDispose]: () => desk[Symbol.asyncDispose](),
  };
}

if (import.meta.main) {
  await using story = await start();
  await tell(story);
}
